"""Both modes agree on the workloads of `make bench-heat-modes`, a minute in a second."""

from dataclasses import replace

import pytest

from benchmarks.modes.runs import by_events, by_rates
from benchmarks.modes.workload import ModeStream, ModeWorkload, table
from benchmarks.modes.workloads import workloads
from dynamoheat import ModelParameters, Split, ThrottleReason

UNIT = 100.0
LIMITS = ModelParameters(
    partition_wcu=UNIT,
    partition_rcu=3 * UNIT,
    quota_wcu=40 * UNIT,
    quota_rcu=120 * UNIT,
    time_scale=60,
)
WORKLOADS = workloads(LIMITS, minutes=40)


def by_name(name: str) -> ModeWorkload:
    return next(workload for workload in WORKLOADS if workload.name == name)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.name)
def test_both_modes_accept_throttle_and_split_alike(workload: ModeWorkload) -> None:
    events, rates = by_events(workload, seed=1), by_rates(workload, seed=1)
    offered = events.accepted + events.refused
    assert rates.accepted == pytest.approx(events.accepted, rel=0.01)
    # A heat window is a second here, as deep as a partition's bucket: chance weighs more.
    assert rates.refused == pytest.approx(events.refused, rel=0.02, abs=0.01 * offered)
    assert len(rates.splits) == pytest.approx(len(events.splits), rel=0.15, abs=1)
    for reason in ThrottleReason:
        share = rates.throttled[reason] / offered
        assert share == pytest.approx(events.throttled[reason] / offered, abs=0.01)


def exactly(split: Split) -> tuple[object, ...]:
    return split.at, split.trigger, split.parent, split.children, split.cut


def test_growth_is_the_same_to_the_second_and_the_cut() -> None:
    ramp = ModeWorkload(
        name="three stages",
        streams=(ModeStream(rate=lambda now: (390.0, 700.0, 1_050.0)[int(now) // 20]),),
        settings=table(),
        parameters=replace(LIMITS, split_threshold=100.0),
        seconds=60,
    )
    events, rates = by_events(ramp, seed=1), by_rates(ramp, seed=1)
    assert len(events.splits) > 12
    assert list(map(exactly, rates.splits)) == list(map(exactly, events.splits))


@pytest.mark.parametrize("seed", range(6))
def test_the_first_splits_for_heat_are_at_the_same_time_of_the_same_partitions(seed: int) -> None:
    hot = replace(by_name("a hot key"), seconds=20)
    events, rates = by_events(hot, seed=seed), by_rates(hot, seed=seed)
    (first, *_), (other, *_) = events.splits, rates.splits
    assert (first.at, first.parent) == (other.at, other.parent)
    assert first.cut[0] == other.cut[0]
    assert float(first.cut[1]) == pytest.approx(float(other.cut[1]), abs=0.15)


@pytest.mark.parametrize("step", [0.5, 10.0])
def test_other_steps_agree_too(step: float) -> None:
    steady = replace(by_name("index holds back"), seconds=60)
    events, rates = by_events(steady, seed=1), by_rates(steady, seed=1, step=step)
    assert rates.accepted == pytest.approx(events.accepted, rel=0.01)


def test_retries_agree_in_how_much_waits() -> None:
    waves = ModeWorkload(
        name="waves",
        streams=(ModeStream(rate=lambda now: 180 if now % 40 < 10 else 20, keys={"hot": 1.0}),),
        settings=table(warm_write=40 * UNIT),
        parameters=LIMITS,
        seconds=200,
        retried=True,
    )
    events, rates = by_events(waves, seed=1), by_rates(waves, seed=1)
    assert rates.accepted == pytest.approx(events.accepted, rel=0.01)
    assert rates.refused == pytest.approx(events.refused, rel=0.05)
