from dataclasses import replace
from itertools import count

import pytest

from dynamoheat import ModelParameters, ThroughputSettings
from dynamoheat.limits import PeakRate, ThroughputLimits
from tests.dynamoheat.traffic import TABLE, item, load, model, settings

FAST = ModelParameters(
    partition_wcu=100, partition_rcu=300, time_scale=60
)  # 400 W at first; a second a minute


SMALL = ModelParameters(partition_wcu=5, partition_rcu=15)  # a new table takes 20 writes a second


@pytest.mark.parametrize("time_scale", [1, 60])
def test_an_on_demand_table_doubles_its_previous_peak_once_it_counts(time_scale: float) -> None:
    heat = model(settings(), replace(SMALL, time_scale=time_scale))
    minute = 60 // int(time_scale)
    items = (item(f"k{n}") for n in count())
    warm, partitions = {}, {}
    for minutes in range(50):
        load(heat, items, 60, minute, start=float(minutes * minute), steps=4)
        warm[minutes] = heat.resource(TABLE).writes.warm_throughput
        partitions[minutes] = len(heat.resource(TABLE).partitions)
    assert [warm[at] for at in (10, 14, 20, 28, 35)] == pytest.approx([20, 20, 40, 40, 80], rel=0.1)
    assert partitions[4] == 4
    assert partitions[20] >= 8


def test_a_load_below_the_peak_changes_nothing() -> None:
    heat = model(settings(), SMALL)
    load(heat, (item(f"k{n}") for n in count()), 8, 3_000, steps=1)
    assert heat.resource(TABLE).writes.warm_throughput == 20


def test_a_peak_counts_as_previous_only_after_its_time() -> None:
    peak = PeakRate()
    peak.record(100, 60)
    peak.record(50, 70)
    peak.record(300, 90)
    assert [peak.advance(now) for now in (0, 59, 60, 89, 90, 500)] == [0, 0, 100, 100, 300, 300]


def test_warm_throughput_never_decreases() -> None:
    rates = ThroughputLimits(
        True, ThroughputSettings(warm_write=9_000), False, ModelParameters(), 0.0
    )
    rates.change(ThroughputSettings(), False, 1.0)
    rates.change(ThroughputSettings(provisioned_write=5), True, 2.0)
    assert rates.warm_throughput == 9_000
    rates.change(ThroughputSettings(provisioned_write=12_000), True, 3.0)
    rates.change(ThroughputSettings(), False, 4.0)
    assert rates.warm_throughput == 12_000


def test_a_lowered_maximum_takes_effect_at_once_and_minus_one_lifts_it() -> None:
    heat = model(settings(max_write=100))
    items = (item(f"k{n}") for n in count())
    assert sum(load(heat, items, 400, 3)[1:]) / 2 == 100
    heat.update_table(settings(max_write=50), 3.0)
    assert sum(load(heat, items, 400, 3, start=3.0)[1:]) / 2 == 50
    heat.update_table(settings(), 6.0)
    assert load(heat, items, 400, 3, start=6.0) == [400] * 3


def test_burst_is_kept_for_300_seconds_and_not_more() -> None:
    heat = model(settings(write=3))
    offered = (item(f"k{n}") for n in count())
    assert sum(load(heat, offered, 5_000, 1, start=10_000.0)) == pytest.approx(900, abs=3)
    heat = model(settings(write=3), ModelParameters(burst_seconds=0))
    offered = (item(f"k{n}") for n in count())
    assert sum(load(heat, offered, 5_000, 1, start=10_000.0)) == pytest.approx(3, abs=3)


def test_burst_lifts_no_partition_above_its_own_limit() -> None:
    heat = model(settings(write=500))
    passed = load(heat, (item("one", f"{n}") for n in count()), 5_000, 20, start=10_000.0)
    assert sum(passed[2:]) / 18 == pytest.approx(1_000, rel=0.01)


def test_parameters_that_make_no_sense_are_refused() -> None:
    for wrong in ({"partition_wcu": 0}, {"time_scale": -1}, {"max_split_seconds": 1}):
        with pytest.raises(ValueError, match=r"zero|less than"):
            ModelParameters(**wrong)
