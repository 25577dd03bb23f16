"""Key conditions: the client sends them as a tree of arrays, DynamoDB wants text."""

from typing import Any, Final

from amazondax.AttributeValueDecoder import _decode_attribute_value
from amazondax.CborSExprGenerator import Func

from tests.dynamodb.dax.double.codec import Decoder, decode_bytes

# The client offers no public way to read one side of its protocol.
# ruff: noqa: SLF001
__all__ = ["KeyCondition"]

_FORMS: Final = {
    (Func.DocumentPath, 1): "{}",
    (Func.Equal, 2): "{} = {}",
    (Func.And, 2): "{} AND {}",
    (Func.Between, 3): "{} BETWEEN {} AND {}",
}


class KeyCondition:
    """A key condition as DynamoDB takes it: text, names and values. Knows what Spillway sends, and refuses the rest."""

    def __init__(self, content: bytes) -> None:
        self._names: dict[str, str] = {}
        decoder = decode_bytes(content)
        if (decoder._decode_array_header(), decoder.decode_int()) != (3, 1):
            raise ValueError("an unknown format of expressions")
        tree = decoder.decode_object()
        self._values = {f":v{n}": value for n, value in enumerate(_values(decoder))}
        self._text = self._written(tree)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of a Query."""
        return {
            "KeyConditionExpression": self._text,
            "ExpressionAttributeNames": self._names,
            "ExpressionAttributeValues": self._values,
        }

    def _written(self, tree: Any) -> str:
        match tree:
            case [int(operation), *operands]:
                return self._operation(operation, operands)
            case str(name):
                self._names[f"#n{len(self._names)}"] = name
                return f"#n{len(self._names) - 1}"
        raise ValueError(f"an unknown part of a key condition: {tree!r}")

    def _operation(self, operation: int, operands: list[Any]) -> str:
        if operation == Func.Variable:
            return f":v{operands[0]}"
        form = _FORMS.get((operation, len(operands)))
        if form is None:
            raise ValueError(f"operation {operation} in a key condition")
        return form.format(*map(self._written, operands))


def _values(decoder: Decoder) -> list[Any]:
    return [_decode_attribute_value(each) for each in decoder.decode_array_iter()]
