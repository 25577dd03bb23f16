"""Prepared events: what is stored of an event, and what became of the attempts to store it."""

from dataclasses import dataclass
from typing import Final

from spillway import keys
from spillway.backoff import DeadlinePassedError
from spillway.storage.port import Item, StorageError

__all__ = ["PreparedEvent"]

# Names of the attributes, the index's partition key and `expires` at their longest.
_ITEM_OVERHEAD: Final = (
    sum(
        len(name)
        for name in (
            keys.PARTITION_KEY,
            keys.SORT_KEY,
            keys.PAYLOAD,
            keys.EXPIRES,
            keys.INDEX_PARTITION_KEY,
        )
    )
    + len("#255")
    + len("#2001-01-01T00:01#255")
    + 6  # a number of ten digits
)


@dataclass(slots=True, eq=False)
class PreparedEvent:
    """One distinct event of a write on its way into the table; mutable, owned by one write.

    Attributes:
        indexes: positions in the request that hold this event.
        routing: its 64-bit hash, which any shard count turns into a shard.
        expires: epoch seconds at which it expires, None keeps it.
        failure: why the last attempt did not store it.
        outcome_unknown: an attempt may have stored it.
        sent: the item of the last attempt.
        epoch_id: the epoch that it was sent under.
        unsettled: the item of an attempt whose outcome is not known, to be sent again before anything else.
        throttled: a key range has throttled it before.
        shard: the shard chosen at random, kept within an epoch so that a retry doubles nothing; None until then.
    """

    indexes: list[int]
    series: str
    time: str
    sharding_key: str | None
    sort_key: str
    routing: int
    payload: str
    expires: int | None
    failure: StorageError | None = None
    outcome_unknown: bool = False
    throttled: bool = False
    shard: int | None = None
    sent: Item | None = None
    unsettled: Item | None = None
    epoch_id: int = 0

    @property
    def stored_bytes(self) -> int:
        """The size of the item at its largest; the series is in both partition keys."""
        names = 2 * len(self.series.encode()) + len(self.sort_key.encode())
        return _ITEM_OVERHEAD + names + len(self.payload.encode())

    @property
    def write_units(self) -> int:
        """Write units that storing it costs in the table: one for each started KB."""
        return -(-self.stored_bytes // 1_024)

    def fail(self, error: StorageError) -> None:
        """Note why it is not known to be stored; a deadline that passed does not hide what went wrong before."""
        if self.failure is None or not isinstance(error, DeadlinePassedError):
            self.failure = error

    def leave_unsettled(self, item: Item, error: StorageError) -> None:
        """Note that an item may have been stored: it is sent again before anything else."""
        self.fail(error)
        self.outcome_unknown = True
        self.unsettled = item
