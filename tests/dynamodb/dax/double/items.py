"""Items as they travel: the key apart, the other values by position, under a numbered list of their names."""

import threading
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any, Final

from amazondax import AttributeValueDecoder, AttributeValueEncoder
from amazondax.CborEncoder import CborEncoder

from spillway.dynamodb.port import Item
from tests.dynamodb.dax.double.codec import decode_bytes, encoded

# The client offers no public way to read one side of its protocol.
# ruff: noqa: SLF001
__all__ = ["Items"]

_EXACT: Final = Context(prec=60)


class Items:
    """Encodes and decodes items of tables whose keys are text. `key_names` gives the key attributes of each table."""

    def __init__(self, key_names: Mapping[str, tuple[str, ...]]) -> None:
        self._key_names = key_names
        self._lists: list[tuple[str, ...]] = [()]  # the empty one is always number 1
        self._lock = threading.Lock()

    def schema(self, table: str) -> dict[str, str]:
        """Return the key attributes of a table with their types, partition key first."""
        return dict.fromkeys(self._key_names[table], "S")

    def names(self, number: int) -> list[str]:
        """Return the list of attribute names that has a number."""
        return list(self._lists[number - 1])

    def decode_key(self, table: str, content: bytes) -> Item:
        """Read a table's key."""
        decoder = decode_bytes(encoded(content))
        key: Item = AttributeValueDecoder._decode_key_bytes(decoder, self._described(table))
        return key

    def encode_key(self, table: str, item: Item) -> bytes:
        """Write a table's key out of an item."""
        return bytes(AttributeValueEncoder.encode_key(item, self._described(table)))

    def encode_index_key(self, key: Item) -> bytes:
        """Write a key of an index: all its attributes with their names."""
        return bytes(AttributeValueEncoder.encode_compound_key(key))

    def decode_index_key(self, content: bytes) -> Item:
        """Read a key of an index."""
        key: Item = AttributeValueDecoder._decode_compound_key(decode_bytes(content))
        return key

    def encode_values(self, table: str, item: Item) -> bytes:
        """Write what an item has beside its key."""
        names = tuple(sorted(set(item) - set(self._key_names[table])))
        encoder = CborEncoder()
        encoder.append_int(self._number(names))
        for name in names:
            AttributeValueEncoder.encode_attribute_value_direct(encoder, _shortened(item[name]))
        return bytes(encoder.as_bytes())

    def _number(self, names: tuple[str, ...]) -> int:
        with self._lock:
            if names not in self._lists:
                self._lists.append(names)
            return self._lists.index(names) + 1

    def _described(self, table: str) -> list[dict[str, str]]:
        return [
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in self.schema(table).items()
        ]


def _shortened(value: dict[str, Any]) -> dict[str, Any]:
    """Return a value whose numbers have no zeros at their end but an exponent, as decimals may travel."""
    ((kind, content),) = value.items()
    match kind:
        case "N" if content.endswith("0") and content != "0":
            return {"N": _EXACT.normalize(Decimal(content))}
        case "L":
            return {"L": [_shortened(each) for each in content]}
        case "M":
            return {"M": {name: _shortened(each) for name, each in content.items()}}
    return value
