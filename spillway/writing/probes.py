"""Probes: why items came back unprocessed, which DynamoDB does not say, found by writing a few of them alone.

A throttled PutItem names its reason. Probes write events that have to be written anyway.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from spillway.scaling.pressure import Pressure, Throttled
from spillway.storage.port import Call, Item, StorageError, ThrottledError, ThrottlingReason

__all__ = ["probe"]

_MOST_PROBES: Final = 3
_FAR_ABOVE: Final = 2.0  # times the share that each partition key would have if all were alike
_GUESSED: Final = ThrottlingReason("TableWriteKeyRangeThroughputExceeded", "")


def probe(call: Call, table: str, pressure: Pressure) -> list[Item]:
    """Explain the unexplained writes of a pressure; return the items that probing stored.

    Sends at most three PutItems, to the partition keys that throttled most. If all of them pass, a partition key that
    throttled far above the others is taken for the cause, else none is named.
    """
    stored: list[Item] = []
    for write in _chosen(pressure.unexplained):
        try:
            call("PutItem", {"TableName": table, "Item": write.item})
        except ThrottledError as error:
            if error.reasons:
                pressure.explain_rest(error.reasons)
                return stored
        except StorageError:
            return stored
        else:
            stored.append(write.item)
    if _one_stands_out(pressure.unexplained):
        pressure.explain_rest((_GUESSED,))
    return stored


def _chosen(writes: Sequence[Throttled]) -> list[Throttled]:
    """Return a write to each of the partition keys that throttled most; of a single one, several writes."""
    by_key: dict[str, list[Throttled]] = {}
    for write in writes:
        by_key.setdefault(write.partition, []).append(write)
    ranked = sorted(by_key.values(), key=len, reverse=True)
    if len(ranked) == 1:
        return ranked[0][:_MOST_PROBES]
    return [same_key[0] for same_key in ranked[:_MOST_PROBES]]


def _one_stands_out(writes: Sequence[Throttled]) -> bool:
    counts = Counter(write.partition for write in writes)
    return len(counts) > 1 and max(counts.values()) > _FAR_ABOVE * len(writes) / len(counts)
