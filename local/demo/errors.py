"""The error of the demo."""

__all__ = ["DemoError"]


class DemoError(Exception):
    """The demo cannot go on, or found a difference. The message is for a person."""
