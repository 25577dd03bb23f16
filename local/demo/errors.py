"""What can go wrong in the demo."""

__all__ = ["DemoError"]


class DemoError(Exception):
    """The demo cannot go on, or found something wrong; the message is a sentence for people."""
