"""The error that stops a command before it changes anything."""

__all__ = ["DeployError"]


class DeployError(Exception):
    """A command can't go on. The message tells its user what to do."""
