"""Probes: why items came back unprocessed, which DynamoDB does not say, found by writing a few of them alone.

A throttled PutItem names its reason. Probes write events that have to be written anyway.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from spillway.scaling.pressure import Pressure, Throttled
from spillway.storage.port import (
    Call,
    Item,
    OutcomeUnknownError,
    StorageError,
    ThrottledError,
    ThrottlingReason,
)

__all__ = ["Probed", "guess", "probe"]

_MOST_PROBES: Final = 3
_FAR_ABOVE: Final = 2.0  # times the share that each partition key would have if all were alike
_GUESSED: Final = ThrottlingReason("TableWriteKeyRangeThroughputExceeded", "")


@dataclass(slots=True)
class Probed:
    """What came of probing.

    Attributes:
        stored: items that are stored now.
        unknown: items that may be, and what went wrong.
        exhausted: every probe was answered, and none of the answers named a reason.
        without_reason: a PutItem was throttled all the same, so the endpoint gives no reasons.
    """

    stored: list[Item] = field(default_factory=list)
    unknown: list[tuple[Item, StorageError]] = field(default_factory=list)
    exhausted: bool = False
    without_reason: bool = False


def probe(call: Call, table: str, pressure: Pressure) -> Probed:
    """Explain the unexplained writes of a pressure by the first reason that a probe is given, if one is.

    Sends at most three PutItems, to the partition keys that throttled most.
    """
    probed = Probed()
    for write in _chosen(pressure.unexplained):
        try:
            call("PutItem", {"TableName": table, "Item": write.item})
        except ThrottledError as error:
            if error.reasons:
                pressure.explain_rest(error.reasons)
                break
            probed.without_reason = True
        except OutcomeUnknownError as error:
            probed.unknown.append((write.item, error))
            break
        except StorageError:
            break
        else:
            probed.stored.append(write.item)
    else:
        probed.exhausted = True
    return probed


def guess(pressure: Pressure) -> None:
    """Take a partition key that throttled far above the others for the cause of what is unexplained, if there is one."""
    if _one_stands_out(pressure.unexplained):
        pressure.explain_rest((_GUESSED,))


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
