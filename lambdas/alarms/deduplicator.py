"""The inbox: which messages are worth acting on. What it lets pass twice, in another process, does no harm."""

from collections.abc import Callable
from typing import Final

from spillway.control import AlarmState

__all__ = ["AlarmDeduplicator"]

_LATE: Final = 900.0  # seconds after which an alarm that still lasts is the schedule's
_MOST: Final = 1_000  # alarms remembered


class AlarmDeduplicator:
    """Remembers the last change of each alarm that was dealt with. `now` is the wall clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._handled: dict[str, float] = {}

    def objection(self, alarm: AlarmState) -> str | None:
        """Return why a message is to be dropped, None where it is not."""
        handled = self._handled.get(alarm.name)
        if handled is not None and alarm.at == handled:
            return "duplicate"
        if handled is not None and alarm.at < handled:
            return "out of order"
        late = self._now() - alarm.at
        if late > _LATE:
            return "late"
        return "ahead of the clock" if late < -_LATE else None

    def handled(self, alarm: AlarmState) -> None:
        """Remember a message that was dealt with: one that failed may come again."""
        if len(self._handled) >= _MOST:
            self._handled.clear()
        self._handled[alarm.name] = alarm.at
