"""The error of a tool that is not installed."""

__all__ = ["MissingToolError"]


class MissingToolError(Exception):
    """A tool that `make setup` installs is missing. The message says what to do."""
