"""Requests that DynamoDB would refuse before it looks at capacity.

Asked only about requests that throttle: an engine refuses the others by itself. A batch that is not valid
must not become valid because the throttled half of it stays behind.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dynamoheat.items import Item, item_bytes
from dynamoheat.outcome import Admission

__all__ = ["KeyTypes", "surely_refused"]

KeyTypes = Mapping[str, str]  # by attribute

_MOST: Final = {
    "BatchGetItem": 100,
    "BatchWriteItem": 25,
    "TransactGetItems": 100,
    "TransactWriteItems": 100,
}
_LARGEST_ITEM: Final = 400 * 1024
_LONGEST_KEY: Final = 2048


def surely_refused(admission: Admission, key_types: Callable[[str], KeyTypes]) -> bool:
    """Say whether a request is too long or too large, names a key twice, or has a key that can't be one.

    `key_types` returns those of a table's key attributes that are known.
    """
    works = admission.asked.works
    if len(works) > _MOST.get(admission.operation, len(works)):
        return True
    if admission.operation in _MOST:
        homes = [(work[0][0].resource.table, work[0][3], work[0][4]) for work in works]
        if len(set(homes)) < len(homes):
            return True
    return any(
        item_bytes(item) > _LARGEST_ITEM or not _has_fitting_keys(item, key_types(table))
        for table, item in _items(admission.operation, admission.request)
    )


def _has_fitting_keys(item: Item, types: KeyTypes) -> bool:
    return all(_fits(item[name], kind) for name, kind in types.items() if name in item)


def _fits(value: Mapping[str, Any], kind: str) -> bool:
    content = value.get(kind)
    return content is not None and 0 < len(content) <= _LONGEST_KEY


def _items(operation: str, request: Mapping[str, Any]) -> Iterable[tuple[str, Item]]:
    """Yield a request's items and keys with their tables' names."""
    if operation == "BatchWriteItem":
        for table, entries in request["RequestItems"].items():
            yield from ((table, _item(action)) for entry in entries for action in entry.values())
    elif operation == "BatchGetItem":
        for table, wanted in request["RequestItems"].items():
            yield from ((table, key) for key in wanted["Keys"])
    elif "TransactItems" in request:
        for entry in request["TransactItems"]:
            yield from ((action["TableName"], _item(action)) for action in entry.values())
    elif "Item" in request or "Key" in request:
        yield request["TableName"], _item(request)


def _item(action: Mapping[str, Any]) -> Item:
    found: Item = action["Item"] if "Item" in action else action["Key"]
    return found
