"""The demo: load real flights, read them back in order, compare them with their file."""
