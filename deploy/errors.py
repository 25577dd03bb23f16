"""What stops a command before anything is changed."""

__all__ = ["DeployError"]


class DeployError(Exception):
    """A command cannot go on; the message is for whoever typed it, and says what to do."""
