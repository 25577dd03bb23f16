"""Studies of the model: validation against published measurements, earlier designs, and figures."""
