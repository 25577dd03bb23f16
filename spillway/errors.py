"""Errors that Spillway raises to its callers.

Those of the storage stand in `spillway.dynamodb.port`.
"""

from typing import Final

__all__ = ["MAX_ECHO", "InvalidInputError", "SpillwayError", "shorten"]

MAX_ECHO: Final = 100  # characters of a caller's input that an error repeats


def shorten(text: str, max_characters: int = MAX_ECHO) -> str:
    """Return text of at most so many characters; a longer one ends with …."""
    return text if len(text) <= max_characters else f"{text[: max_characters - 1]}…"


class SpillwayError(Exception):
    """Base of every error that Spillway raises."""


class InvalidInputError(SpillwayError):
    """The caller's input can't be used; retrying it unchanged fails again.

    Attributes:
        code: a stable word for programs, such as `invalid_event`.
        where: the field that is wrong, such as `time`, in at most 100 characters, since the caller
            may have named it; empty where it is the whole.
        reason: one sentence for people, without the field's name.
    """

    def __init__(self, code: str, where: str, reason: str) -> None:
        self.where = shorten(where)
        super().__init__(f"{self.where}: {reason}" if where else reason)
        self.code = code
        self.reason = reason
