"""Which alarm messages are worth acting on. Best effort, per process: duplicates are harmless."""

from collections.abc import Callable
from typing import Final

from spillway.control import AlarmState

__all__ = ["AlarmDeduplicator"]

_MAX_AGE_SECONDS: Final = 900.0  # an alarm that still lasts then is handled by the schedule
_MAX_ALARMS: Final = 1_000  # remembered


class AlarmDeduplicator:
    """Remembers the last state change handled of each alarm. `now` is the wall clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._handled_at: dict[str, float] = {}

    def skip_reason(self, alarm: AlarmState) -> str | None:
        """Return why a message is to be skipped, None if it is not."""
        handled_at = self._handled_at.get(alarm.name)
        if handled_at is not None and alarm.at == handled_at:
            return "duplicate"
        if handled_at is not None and alarm.at < handled_at:
            return "out of order"
        age = self._now() - alarm.at
        if age > _MAX_AGE_SECONDS:
            return "late"
        return "ahead of the clock" if age < -_MAX_AGE_SECONDS else None

    def mark_handled(self, alarm: AlarmState) -> None:
        """Remember a message that was handled. One that failed is not marked: it may come again."""
        if len(self._handled_at) >= _MAX_ALARMS:
            self._handled_at.clear()
        self._handled_at[alarm.name] = alarm.at
