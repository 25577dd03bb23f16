"""The error of the local cloud."""

__all__ = ["LocalCloudError"]


class LocalCloudError(Exception):
    """A part that the local cloud needs is missing, taken or broken.

    The message tells a person what is wrong and what to do. With the end of a log, it states the
    cause before and after the log's lines.
    """

    def __init__(self, cause: str, *, log_lines: str = "") -> None:
        """Take the cause, and the last lines of the log of the part that failed."""
        super().__init__(f"{cause}\n{log_lines}\n{cause}" if log_lines else cause)
