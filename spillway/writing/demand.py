"""Demand: what a write wants is sampled into the usage record, and the fleet's rate is acted on before it throttles."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from spillway.scaling.grower import Grower
from spillway.scaling.usage import Sample
from spillway.writing.prepared import PreparedEvent

__all__ = ["DemandWatch", "Task"]

Task = Callable[[], list[PreparedEvent]]
"""Work beside an attempt; what it returns was left unwritten, so nothing here."""


class DemandWatch:
    """Samples the distinct events of each write, once: retries are not demand."""

    def __init__(self, grower: Grower, *, index_has_payload: bool) -> None:
        self._grower = grower
        self._index_has_payload = index_has_payload

    def tasks(self, events: Sequence[PreparedEvent]) -> list[Task]:
        """Return a task for each series, to be run beside the first attempt; by chance most send nothing."""
        if self._grower.recorder is None:
            return []
        counts = Counter(event.series for event in events)
        return [partial(self._watch, series, count, events) for series, count in counts.items()]

    def _watch(
        self, series: str, count: int, events: Sequence[PreparedEvent]
    ) -> list[PreparedEvent]:
        recorder = self._grower.recorder
        if recorder is not None:
            demand = recorder.record(series, count, lambda: self._measure(series, events))
            if demand is not None:
                self._grower.prepare_for(series, demand)
        return []

    def _measure(self, series: str, events: Sequence[PreparedEvent]) -> Sample:
        units = [event.write_units for event in events if event.series == series]
        index_units = sum(units) if self._index_has_payload else len(units)
        return Sample(sum(units), index_units, len(units))
