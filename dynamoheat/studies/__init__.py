"""Studies of the model: validation against published figures, earlier designs, figures."""
