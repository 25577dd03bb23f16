"""Errors of the model."""

__all__ = ["HeatError", "MalformedRequestError", "UnknownTableError"]


class HeatError(Exception):
    """Base of the model's errors."""


class UnknownTableError(HeatError):
    """A request names a table or an index that was not created in the model."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown table or index: {name}")
        self.name = name


class MalformedRequestError(HeatError):
    """A request that is not valid, or an operation that consumes no capacity units.

    Nothing was consumed. Forward it to the engine, which answers with the proper error.
    """
