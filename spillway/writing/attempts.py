"""What a write knows of an event between attempts.

States are immutable: an attempt returns new ones.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from spillway.dynamodb.port import Item, OutcomeUnknownError, StorageError
from spillway.dynamodb.retries import DeadlinePassedError
from spillway.writing.preparation import PreparedEvent

__all__ = ["STORED", "AddressedEvent", "Outcome", "PendingEvent"]

Outcome = StorageError | None
"""What an attempt to write one event came to: None where it is stored."""

STORED: Final[Outcome] = None


class PendingEvent(Struct, frozen=True, eq=False):
    """An event of a write that is not known to be stored.

    Attributes:
        event: what is to be stored.
        indexes: positions in the request that hold the event.
        failure: why the last attempt did not store it; None before the first.
        outcome_unknown: an attempt may have stored it.
        has_throttled: a key range has throttled it before.
        sent: the item of the last attempt; None where nothing was sent.
        epoch_id: the epoch that it was last addressed under.
        shard: the shard that it was last addressed to. In random mode a retry goes there again.
        in_doubt: the item of an attempt whose outcome is unknown, sent again before anything else.
    """

    event: PreparedEvent
    indexes: tuple[int, ...]
    failure: StorageError | None = None
    outcome_unknown: bool = False
    has_throttled: bool = False
    sent: Item | None = None
    epoch_id: int = 0
    shard: int | None = None
    in_doubt: Item | None = None

    def fail_unsent(self, error: StorageError) -> "PendingEvent":
        """Return the event after an attempt that could not address it."""
        return replace(self, failure=self.latest_failure(error), sent=None)

    def leave_in_doubt(self, item: Item, error: StorageError) -> "PendingEvent":
        """Return the event after an item was sent that may or may not be stored."""
        return replace(
            self, failure=self.latest_failure(error), outcome_unknown=True, in_doubt=item
        )

    def latest_failure(self, error: StorageError) -> StorageError:
        """Return the failure to report after `error`.

        A passed deadline does not hide an earlier one.
        """
        if self.failure is not None and isinstance(error, DeadlinePassedError):
            return self.failure
        return error


class AddressedEvent(Struct, frozen=True, eq=False):
    """An event on its way into one shard.

    Attributes:
        pending: the event.
        item: the item that holds it, partition keys included.
        epoch_id: the epoch that it is addressed under.
        shard: the shard of the table.
        candidate_keys: all partition keys that may hold a copy, those of the newest epoch first.
            Empty where copies are not looked up, or where `item` has the only one.
    """

    pending: PendingEvent
    item: Item
    epoch_id: int
    shard: int | None
    candidate_keys: tuple[str, ...] = ()

    def fail(self, error: StorageError) -> PendingEvent:
        """Return the event after an attempt that is not known to have stored it."""
        is_unknown = isinstance(error, OutcomeUnknownError)
        return replace(
            self.pending,
            failure=self.pending.latest_failure(error),
            outcome_unknown=self.pending.outcome_unknown or is_unknown,
            sent=self.item,
            epoch_id=self.epoch_id,
            shard=self.shard,
            in_doubt=self.item if is_unknown else None,
        )
