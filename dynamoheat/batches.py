"""A partly throttled batch taken apart: what goes on to the engine, what goes back unprocessed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dynamoheat.reasons import Throttle

__all__ = ["divided"]

Request = Mapping[str, Any]
Items = dict[str, Any]  # as in RequestItems


def divided(request: Request, verdicts: Sequence[Throttle | None]) -> tuple[dict[str, Any], Items]:
    """Return a BatchWriteItem or BatchGetItem with its admitted items only, and the others.

    The others are shaped as UnprocessedItems or UnprocessedKeys. `verdicts` are one an item, in order.
    """
    admitted: Items = {}
    refused: Items = {}
    each = iter(verdicts)
    for name, wanted in request["RequestItems"].items():
        passing, others = _sorted(_entries(wanted), each)
        if passing:
            admitted[name] = _like(wanted, passing)
        if others:
            refused[name] = _like(wanted, others)
    return {**request, "RequestItems": admitted}, refused


def _sorted(
    entries: Sequence[Any], verdicts: Iterator[Throttle | None]
) -> tuple[list[Any], list[Any]]:
    passing: list[Any] = []
    others: list[Any] = []
    for entry in entries:
        (passing if next(verdicts) is None else others).append(entry)
    return passing, others


def _entries(wanted: Any) -> Sequence[Any]:
    entries: Sequence[Any] = wanted["Keys"] if isinstance(wanted, Mapping) else wanted
    return entries


def _like(wanted: Any, entries: list[Any]) -> Any:
    return {**wanted, "Keys": entries} if isinstance(wanted, Mapping) else entries
