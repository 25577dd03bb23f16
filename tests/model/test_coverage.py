"""The coverage rule holds under random schedules of writers, readers and operators."""

import pytest

from spillway.layouts.codec import decode_layout
from tests.model.coverage import CoverageModel, Tally

RUNS, STEPS = 50, 4_000
GROUPS = 5


@pytest.mark.parametrize("group", range(GROUPS))
def test_reads_return_every_event_that_was_acknowledged_before_they_began(group: int) -> None:
    tally = Tally()
    for seed in range(group, RUNS, GROUPS):
        tally.add(CoverageModel(seed, STEPS).run())
    assert tally.steps >= RUNS * STEPS // GROUPS
    done = (tally.acknowledged, tally.events_checked, tally.layout_changes, tally.crashes)
    assert min(done) > 10, f"the schedules show too little: {tally}"


def test_writers_grow_layouts_in_these_runs() -> None:
    model = CoverageModel(seed=1, max_steps=4_000)
    model.run()
    layouts = map(decode_layout, model.cluster.tables.layouts.values())
    assert any(each.why == "throttled" for layout in layouts for each in layout.decisions)
