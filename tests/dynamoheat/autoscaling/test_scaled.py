from collections.abc import Callable
from itertools import count, pairwise
from math import pi, sin

import pytest

from dynamoheat import Heat, ModelParameters, ThroughputSettings
from dynamoheat.autoscaling import ScaledTable, TargetTrackingPolicy
from tests.dynamoheat.traffic import INDEX, TABLE, item, load, model, settings

FAST = ModelParameters(time_scale=60, burst_seconds=0)  # a minute is a second, a day 24 minutes
POLICY = TargetTrackingPolicy(min_capacity=10, max_capacity=1_000)


def lived(
    heat: Heat, scaled: ScaledTable, demand: Callable[[int], float], minutes: int, first: int = 0
) -> tuple[list[float], list[float]]:
    """Offer a demand by minute, scaled from `first` on; return provisioned and admitted units."""
    provisioned, passed = [], []
    items = (item(f"k{n}", kind=f"i{n}") for n in count())
    for minute in range(minutes):
        if minute == first:
            scaled.advance(float(minute))
        passed += load(heat, items, demand(minute), 1, start=float(minute), steps=10)
        if minute >= first:
            scaled.advance(float(minute + 1))
        provisioned.append(heat.table(TABLE).settings.throughput.provisioned_write or 0.0)
    return provisioned, passed


def table(write: float) -> Heat:
    return model(settings(write=write, read=10), FAST)


def writes(heat: Heat, policy: TargetTrackingPolicy = POLICY, *, delay: float = 0.0) -> ScaledTable:
    return ScaledTable(heat, TABLE, {(None, True): policy}, delay=delay)


def test_throttled_traffic_is_not_seen_so_a_far_greater_demand_is_followed_by_steps() -> None:
    heat = table(100)
    provisioned, passed = lived(heat, writes(heat), lambda _: 500, 20, first=3)
    rises = sorted({*provisioned})
    assert rises[:3] == pytest.approx([100, 143, 205], rel=0.02)
    assert all(after <= before / 0.7 * 1.05 + 1 for before, after in pairwise(rises))
    assert provisioned[-1] >= 500 / 0.7 * 0.95
    assert passed[-1] == 500


def test_while_a_capacity_is_being_updated_the_old_one_holds() -> None:
    heat = table(100)
    provisioned, _ = lived(heat, writes(heat, delay=3.0), lambda _: 80, 10)
    assert provisioned[1:5] == [100, 100, 100, provisioned[4]]
    assert provisioned[4] > 100


def test_a_day_of_waves_lowers_capacity_no_more_often_than_is_allowed() -> None:
    heat = table(400)
    scaled = writes(heat)
    provisioned, _ = lived(heat, scaled, lambda minute: 100 + 90 * sin(minute * 2 * pi / 40), 1440)
    falls = [change for change in scaled.changes if change.after < change.before]
    assert 10 < len(falls) <= 27
    assert scaled.rejected_decreases > 0
    assert min(provisioned) >= 10


def test_an_index_is_scaled_by_its_own_consumption_and_keeps_the_tables() -> None:
    throughput = ThroughputSettings(provisioned_write=100, provisioned_read=10)
    heat = model(settings(write=400, read=10, index=throughput), FAST)
    scaled = ScaledTable(heat, TABLE, {(INDEX, True): POLICY})
    provisioned, _ = lived(heat, scaled, lambda _: 90, 10)
    changed = heat.table(TABLE).settings.indexes[0].throughput
    assert provisioned[-1] == 400
    assert changed.provisioned_write == pytest.approx(90 / 0.7, abs=2)
    assert changed.provisioned_read == 10
    assert heat.resource(TABLE, INDEX).writes.provisioned == changed.provisioned_write
    assert {change.index for change in scaled.changes} == {INDEX}


def test_reads_are_left_alone_by_a_policy_for_writes() -> None:
    heat = table(100)
    lived(heat, writes(heat), lambda _: 90, 5)
    assert heat.table(TABLE).settings.throughput.provisioned_read == 10


def test_an_idle_table_keeps_its_capacity() -> None:
    heat = table(100)
    scaled = writes(heat)
    for minute in range(200):
        scaled.advance(float(minute))
    assert scaled.changes == []
