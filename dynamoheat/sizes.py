"""Sizes of items and pages in bytes, and the capacity units that they cost. No state.

Rules: developer guide, CapacityUnitCalculations, read-write-operations and GSI. An attribute costs
the UTF-8 bytes of its name plus its value. Storage bills 100 bytes an item on top; capacity units
do not, so neither do these functions.

What an index write costs was measured against DynamoDB on 2026-08-12/13 by the dynoxide project
(issues 176 and 178, pull requests 177 and 188). An entry that changes in place is charged once, for
its larger image. An entry that moves is charged twice, each half for its own image. A transaction
doubles what the table consumes, but not what its indexes consume.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal
from typing import Any, Final

__all__ = [
    "EVENTUAL",
    "READ_UNIT_BYTES",
    "STRONG",
    "TRANSACTIONAL",
    "WRITE_UNIT_BYTES",
    "Item",
    "attributes_bytes",
    "index_write_units",
    "item_bytes",
    "key_text",
    "number_bytes",
    "read_units",
    "sortable_value",
    "value_bytes",
    "write_units",
]

EVENTUAL: Final = 0.5
STRONG: Final = 1.0
TRANSACTIONAL: Final = 2.0
READ_UNIT_BYTES: Final = 4096
WRITE_UNIT_BYTES: Final = 1024

Value = Mapping[str, Any]
Item = Mapping[str, Value]

_MAX_NUMBER_BYTES: Final = 21
_EXACT: Final = Context(prec=64)  # numbers have up to 38 digits; the default context rounds to 28


def read_units(size: int, consistency: float) -> float:
    """Return the units of reading `size` bytes: an item, or a whole page of a query or scan.

    Reading nothing costs as much as the smallest item. `consistency` is EVENTUAL, STRONG or
    TRANSACTIONAL.
    """
    return (-(-size // READ_UNIT_BYTES) or 1) * consistency


def write_units(before: int, after: int = 0) -> float:
    """Return the units of writing an item: by the larger size before and after (0: absent)."""
    return float(-(-(max(after, before)) // WRITE_UNIT_BYTES) or 1)


def index_write_units(before: int | None, after: int | None, *, moved: bool) -> float:
    """Return the units of an index entry that appears, disappears, moves or changes in place.

    Sizes are those of the entry, None where the item has no entry. An unchanged entry costs
    nothing: do not call this for it.
    """
    if before is None or after is None:
        return 0.0 if before is after else write_units(before or 0, after or 0)
    return write_units(before) + write_units(after) if moved else write_units(before, after)


def item_bytes(item: Item) -> int:
    """Return the size of an item in bytes. LookupError or ValueError if it is not valid."""
    texts = [*item]  # names and strings are measured together, at once
    total = 0
    for value in item.values():
        if "S" in value:
            texts.append(value["S"])
        elif "N" in value:
            total += number_bytes(value["N"])
        else:
            total += value_bytes(value)
    together = "".join(texts)
    return total + (len(together) if together.isascii() else _utf8(together))


def attributes_bytes(item: Item, names: Iterable[str]) -> int:
    """Return the size of some of an item's attributes. Names that the item lacks cost nothing."""
    return item_bytes({name: item[name] for name in names if name in item})


def value_bytes(value: Value) -> int:
    """Return the size of one attribute value such as `{"S": "abc"}`, without its name.

    ValueError unless it has exactly one type.
    """
    ((kind, content),) = value.items()
    return _SIZES[kind](content)


def number_bytes(text: str) -> int:
    """Return the size of a number: one byte, one for each pair of digits, one for a minus sign.

    Pairs are aligned to the decimal point, so 120 has two and 12 has one. Zero is one byte; the
    most is 21.
    """
    if text.isdecimal():
        if text[0] != "0" and text[-1] != "0":  # the common case, twice as fast
            return min(1 + (len(text) + 1) // 2, _MAX_NUMBER_BYTES)
        digits = text.lstrip("0")
        places = len(digits)
        if not places:
            return 1
        return min(
            1 + (places + 1) // 2 - (places - len(digits.rstrip("0"))) // 2, _MAX_NUMBER_BYTES
        )
    return _signed_or_fraction(text)


def key_text(value: Value) -> str:
    """Return a key attribute's value as text.

    Equal keys give equal texts: `1` and `1.0` are one number.
    """
    content: str | None = value.get("S")
    if content is not None:
        return content
    return str(_EXACT.normalize(Decimal(value["N"]))) if "N" in value else str(value["B"])


def sortable_value(value: Value) -> Any:
    """Return a sort key's value as an object that compares in DynamoDB's order within its type."""
    content = value.get("S")
    if content is not None:
        return content  # code points order as their UTF-8 bytes do
    return Decimal(value["N"]) if "N" in value else b64decode(value["B"])


def _utf8(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _signed_or_fraction(text: str) -> int:
    sign, digits, exponent = _EXACT.normalize(Decimal(text)).as_tuple()
    if digits == (0,) or not isinstance(exponent, int):
        return 1
    pairs = (exponent + len(digits) - 1) // 2 - exponent // 2 + 1
    return min(1 + pairs + sign, _MAX_NUMBER_BYTES)


def _binary(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=", -2)


def _list(values: Iterable[Value]) -> int:
    return 3 + sum(value_bytes(value) + 1 for value in values)


def _map(values: Item) -> int:
    return 3 + sum(_utf8(name) + value_bytes(value) + 1 for name, value in values.items())


_SIZES: Final[dict[str, Callable[[Any], int]]] = {
    "S": _utf8,
    "N": number_bytes,
    "B": _binary,
    "BOOL": lambda _: 1,
    "NULL": lambda _: 1,
    "L": _list,
    "M": _map,
    "SS": lambda texts: sum(map(_utf8, texts)),
    "NS": lambda texts: sum(map(number_bytes, texts)),
    "BS": lambda texts: sum(map(_binary, texts)),
}
