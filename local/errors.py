"""The one error of the local cloud: a sentence that says what is wrong and what to do next."""

__all__ = ["LocalCloudError"]


class LocalCloudError(Exception):
    """Something the local cloud needs is missing, taken or broken; the message is for a person."""
