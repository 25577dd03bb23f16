"""What the model cannot take."""

__all__ = ["HeatError", "MalformedRequestError", "UnknownTableError"]


class HeatError(Exception):
    """Base of the model's errors."""


class UnknownTableError(HeatError):
    """A request names a table or an index that the model was not told of."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown table or index: {name}")
        self.name = name


class MalformedRequestError(HeatError):
    """A request that DynamoDB would refuse as not valid, or an operation without capacity units.

    Pass it on to the engine, which says what is wrong with it; nothing was consumed.
    """
