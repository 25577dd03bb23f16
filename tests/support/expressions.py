"""The expressions that Spillway sends, evaluated as DynamoDB does; an unknown one fails loudly."""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Final

from spillway.dynamodb.port import Item

__all__ = ["apply_update", "is_met"]

_CONDITION: Final = re.compile(r"attribute_(not_)?exists\((#\w+)\)|(#\w+) (=|<=) (:\w+)")
_CLAUSE: Final = re.compile(r"(SET|REMOVE|ADD) (.*?)(?= SET | REMOVE | ADD |$)")
_ACTIONS: Final = {
    "SET": re.compile(r"(#\w+) = (:\w+)"),
    "REMOVE": re.compile(r"(#\w+)()"),
    "ADD": re.compile(r"(#\w+) (:\w+)"),
}


def is_met(
    condition: str, item: Item | None, names: Mapping[str, str], values: Mapping[str, Any]
) -> bool:
    """Return whether an item, None if there is none, meets a condition expression."""
    if " OR " in condition:
        return any(is_met(each, item, names, values) for each in condition.split(" OR "))
    match = _CONDITION.fullmatch(condition)
    assert match, f"unknown condition: {condition}"
    if match[2]:
        exists = item is not None and names[match[2]] in item
        return exists != bool(match[1])
    stored = None if item is None else item.get(names[match[3]])
    if match[4] == "=":
        return stored is not None and stored == values[match[5]]
    return stored is not None and Decimal(stored["N"]) <= Decimal(values[match[5]]["N"])


def apply_update(
    expression: str, item: Item, names: Mapping[str, str], values: Mapping[str, Any]
) -> None:
    """Change an item in place by an update expression."""
    for verb, name, value in _parse_update(expression):
        attribute = names[name]
        if verb == "REMOVE":
            item.pop(attribute, None)
        elif verb == "ADD":
            old = item.get(attribute, {"N": "0"})["N"]
            item[attribute] = {"N": str(Decimal(old) + Decimal(values[value]["N"]))}
        else:
            item[attribute] = values[value]


@cache
def _parse_update(expression: str) -> list[tuple[str, str, str]]:
    """Return each action's verb, name and value, the latter empty for REMOVE."""
    parsed: list[tuple[str, str, str]] = []
    for verb, body in _CLAUSE.findall(expression):
        for action in body.split(", "):
            match = _ACTIONS[verb].fullmatch(action)
            assert match, f"unknown action: {verb} {action}"
            parsed.append((verb, match[1], match[2]))
    assert parsed, f"unknown update: {expression}"
    return parsed
