"""Exports among concurrent processes: what was acknowledged before one began is in it, whatever layouts do meanwhile."""

from collections import Counter

import pytest

from spillway import Event
from tests.model.cluster import Process
from tests.model.coverage import CoverageModel, Tally
from tests.support.stores import identity

pytestmark = pytest.mark.slow

_SEEDS = range(4)
_STEPS = 6_000


class ExportModel(CoverageModel):
    """The coverage model, whose readers export ranges: each piece by a new process, from the cursor of the one before."""

    def _read_range(self, process: Process, sharding_key: str | None = None) -> None:
        if sharding_key is not None:
            super()._read_range(process, sharding_key)
            return
        series = self.random.choice(("s", "s#1"))
        start, end = self._range(series, process.now())
        expected = self._expected(series, start, end, None)
        mode = self.random.choice(("shards", "blocks", "round_robin"))
        found: list[Event] = []
        cursor = None
        while True:
            export = process.store.export(
                series, start, end, mode=mode, cursor=cursor, pool=2, timeout=60
            )
            for _ in range(self.random.randint(1, 3)):
                found += export.chunk(self.random.choice((1, 100, 10_000))).events
            cursor = export.cursor
            if cursor is None:
                break
        self._check_export(series, found, expected)

    def _check_export(self, series: str, found: list[Event], expected: dict[str, Event]) -> None:
        """Check that nothing is missing or invented; what processes write again meanwhile may come twice."""
        answer = Counter(map(identity, found))
        missing = [event for event in expected.values() if identity(event) not in answer]
        if missing:
            self._fail(f"an export of {series} misses {missing}")
        written = {identity(event): event for event in self.attempted.values()}
        for event in found:
            if written.get(identity(event)) != event:
                self._fail(f"an export of {series} invents {event}")
        self.tally.events_checked += len(expected)


@pytest.mark.parametrize("seed", _SEEDS)
def test_everything_acknowledged_before_an_export_is_in_it(seed: int) -> None:
    tally: Tally = ExportModel(seed, _STEPS).run()
    assert tally.reads > 10
    assert tally.events_checked > 100
    assert tally.layout_changes > 10
