"""Each generation on the one skewed workload: what the documents say of it, by its figures."""

from pathlib import Path

import pytest

from dynamoheat.studies.generations import Generation, run
from dynamoheat.studies.generations.report import SHOWN, WHY, report
from dynamoheat.studies.generations.running import SAMPLE_SECONDS
from dynamoheat.studies.generations.workload import SKEWED
from tests.dynamoheat.studies.runs import GROUP, ran, ran_all

pytestmark = pytest.mark.xdist_group(GROUP)

DOCS = Path(__file__).parents[3] / "docs" / "dynamoheat.md"
EQUAL, BURST, ADAPTIVE, GLOBAL, SPLIT, DEMAND = Generation


def throttled(generation: Generation, phase: str) -> float:
    return ran(generation).phase(phase).share_throttled


def throttled_within(generation: Generation, phase: str, first: float, last: float) -> float:
    """Return the share throttled between two minutes of a phase."""
    names = [each.name for each in SKEWED.phases]
    start = SKEWED.starts[names.index(phase)]
    tallies = [
        sample.tally
        for sample in ran(generation).samples
        if start + 60 * first <= sample.at < start + 60 * last
    ]
    refused = sum(tally.throttled for tally in tallies)
    return refused / sum(tally.throttled + tally.accepted for tally in tallies)


def test_every_generation_throttles_less_than_the_one_before() -> None:
    totals = [ran(generation).total for generation in Generation]
    assert [each.throttled for each in totals] == sorted(
        (each.throttled for each in totals), reverse=True
    )
    assert len({each.throttled for each in totals}) == len(Generation)
    assert len({each.throttled + each.accepted for each in totals}) == 1


@pytest.mark.parametrize("generation", list(Generation))
def test_even_and_calm_traffic_within_the_throughput_throttles_nowhere(
    generation: Generation,
) -> None:
    assert throttled(generation, "even") == 0
    assert throttled(generation, "calm") < 0.005


def test_equal_division_throttles_a_hot_partition_at_its_share() -> None:
    for phase in ("spike", "hot key", "hot key moves", "hot range", "one time series"):
        assert throttled(EQUAL, phase) > 0.15
    hottest = max(max(row) for row in ran(EQUAL).rates())
    assert hottest <= 800 * 1.05
    late = len(ran(EQUAL).samples) // 2
    assert max(max(row[late:]) for row in ran(EQUAL).rates()) <= 400 * 1.05


def test_bursting_cured_the_spike_and_not_the_key_that_stays_hot() -> None:
    assert throttled(BURST, "spike") == 0
    assert throttled_within(BURST, "hot key", 0, 3) == 0
    assert throttled_within(BURST, "hot key", 8, 18) == pytest.approx(
        throttled(EQUAL, "hot key"), rel=0.05
    )


@pytest.mark.parametrize("phase", ["hot key", "hot key moves"])
def test_adaptive_capacity_cured_a_hot_key_after_minutes_each_time(phase: str) -> None:
    assert 0.03 < throttled(ADAPTIVE, phase) < 0.6 * throttled(BURST, phase)
    assert throttled_within(ADAPTIVE, phase, 4, 8) == pytest.approx(
        throttled_within(BURST, phase, 4, 8), rel=0.05
    )
    assert throttled_within(ADAPTIVE, phase, 14, 18) < 0.01


def test_global_admission_cured_the_waiting_and_not_the_range_above_a_partitions_limit() -> None:
    for phase in ("spike", "hot key", "hot key moves"):
        assert throttled(GLOBAL, phase) == 0
    assert throttled(GLOBAL, "hot range") > 0.2
    assert throttled_within(GLOBAL, "hot range", 0, 5) < throttled_within(
        ADAPTIVE, "hot range", 0, 5
    )


def test_splits_for_consumption_cured_the_hot_range_after_minutes() -> None:
    assert throttled_within(SPLIT, "hot range", 0, 4) == pytest.approx(
        throttled_within(GLOBAL, "hot range", 0, 4), rel=0.1
    )
    assert throttled_within(SPLIT, "hot range", 21, 25) < 0.01
    assert throttled(SPLIT, "above provisioned") > 0.1


def test_on_demand_cured_the_provisioned_limit_and_not_the_one_time_series() -> None:
    assert throttled(DEMAND, "above provisioned") < 0.01
    assert throttled(DEMAND, "one time series") > 0.2
    series = ran(DEMAND).phase("one time series").accepted / 600
    assert series == pytest.approx(500 + 1_000, rel=0.03)


def test_no_partition_ever_takes_more_than_its_limit() -> None:
    most = 1_000 * (1 + 1 / SAMPLE_SECONDS)  # and the bucket of one second
    for generation in Generation:
        assert max(max(row) for row in ran(generation).rates()) <= most


def test_the_documentation_shows_what_the_command_prints() -> None:
    assert report(ran_all()) in DOCS.read_text()


def test_each_generation_has_its_sentence_and_each_phase_its_column() -> None:
    assert set(WHY) == set(Generation)
    assert set(SHOWN) | {"calm"} == {phase.name for phase in SKEWED.phases}


def test_equal_seeds_give_equal_runs() -> None:
    assert run(BURST, seed=5) == run(BURST, seed=5)
