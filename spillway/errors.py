"""Errors that Spillway raises to its callers.

Those of the storage stand in `spillway.dynamodb.port`.
"""

__all__ = ["InvalidInputError", "SpillwayError"]


class SpillwayError(Exception):
    """Base of every error that Spillway raises."""


class InvalidInputError(SpillwayError):
    """The caller's input can't be used; retrying it unchanged fails again.

    Attributes:
        code: a stable word for programs, such as `invalid_event`.
        where: the field that is wrong, such as `time`; empty where it is the whole.
        reason: one sentence for people, without the field's name.
    """

    def __init__(self, code: str, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.code = code
        self.where = where
        self.reason = reason
