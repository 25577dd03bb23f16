"""Cold starts: how long a fresh interpreter takes to import a function and answer its first call."""
