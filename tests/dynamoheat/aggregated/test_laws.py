"""Laws of the aggregated mode under any traffic."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoheat import ModelParameters, ProvisionedThroughput, TableSettings
from dynamoheat.aggregated import (
    AggregatedHeat,
    Entries,
    Keys,
    Reads,
    Sorts,
    StepOutcome,
    Traffic,
    Writes,
)
from tests.dynamoheat.traffic import INDEX, TABLE, settings

LIMITS = ModelParameters(
    partition_wcu=5, partition_rcu=15, on_demand_partitions=2, quota_wcu=30, time_scale=60
)
NO_SPLITS = replace(LIMITS, split_threshold=1e9)
NAMES = ("a", "b", "c", "d")
KEYS = st.one_of(
    st.builds(
        Keys.of,
        st.dictionaries(st.sampled_from(NAMES), st.floats(0.1, 5), min_size=1),
        st.sampled_from(Sorts),
    ),
    st.just(Keys.everywhere()),
    st.just(Keys.arc(0.1, 0.4)),
)
ENTRIES = st.fixed_dictionaries(
    {}, optional={INDEX: st.builds(Entries, KEYS, st.sampled_from([None, 100, 3_000]))}
)
INDEXED = [
    settings(index=ProvisionedThroughput()),
    settings(maximum_write=8, index=ProvisionedThroughput(maximum_write=4)),
    settings(write=6, read=9, index=ProvisionedThroughput(provisioned_write=3, provisioned_read=3)),
]
PLAIN = [settings(), settings(maximum_write=7), settings(write=6, read=9)]


def writes(entries: bool, retried: bool = True) -> st.SearchStrategy[Writes]:
    return st.builds(
        Writes,
        st.just(TABLE),
        KEYS,
        ENTRIES if entries else st.just({}),
        item_bytes=st.sampled_from([500, 2_500]),
        retried=st.booleans() if retried else st.just(False),
    )


READS = st.builds(
    Reads, st.just(TABLE), KEYS, consistency=st.sampled_from([0.5, 1.0]), retried=st.booleans()
)


@st.composite
def runs(draw: st.DrawFn, traffic: st.SearchStrategy[Traffic]) -> list[Mapping[Traffic, float]]:
    """Rates of a few steps for a few kinds of traffic."""
    kinds = draw(st.lists(traffic, min_size=1, max_size=4))
    rates = st.fixed_dictionaries(
        {kind: st.sampled_from([0.0, 0.3, 2.0, 7.0, 60.0]) for kind in kinds}
    )
    return draw(st.lists(rates, min_size=1, max_size=30))


def model(described: TableSettings, limits: ModelParameters, step: float = 1.0) -> AggregatedHeat:
    heat = AggregatedHeat(limits, step=step)
    heat.create_table(described)
    return heat


def run(heat: AggregatedHeat, offers: list[Any]) -> list[StepOutcome]:
    return [heat.offer(rates) for rates in offers]


@given(st.sampled_from(INDEXED), runs(st.one_of(writes(entries=True), READS)))
def test_what_is_offered_is_accepted_or_throttled_or_waits(
    described: TableSettings, offers: list[Any]
) -> None:
    heat = model(described, LIMITS)
    waited: dict[Traffic, float] = {}
    for rates in offers:
        outcome = heat.offer(rates)
        for traffic, tally in outcome.by_traffic.items():
            assert tally.offered == pytest.approx(tally.accepted + tally.refused)
            new = rates.get(traffic, 0.0) * heat.step
            assert tally.offered == pytest.approx(new + waited.get(traffic, 0.0))
            assert heat.waiting(traffic) == pytest.approx(tally.refused if traffic.retried else 0)
            waited[traffic] = heat.waiting(traffic)


@given(st.sampled_from(INDEXED), runs(st.one_of(writes(entries=True), READS)))
def test_no_bucket_is_overdrawn_and_no_index_owes_more_than_its_buffer(
    described: TableSettings, offers: list[Any]
) -> None:
    heat = model(described, LIMITS)
    table, index = heat.resource(TABLE), heat.resource(TABLE, INDEX)
    buffer = LIMITS.index_buffer_seconds * LIMITS.partition_wcu
    for rates in offers:
        heat.offer(rates)
        for limit in (*table.writes.limits, *table.reads.limits, *index.reads.limits):
            assert -1e-6 < limit.bucket.tokens <= limit.bucket.depth
        for partition in table.partitions:
            assert -1e-6 < partition.write.tokens <= partition.write.depth
            assert -1e-6 < partition.read.tokens <= partition.read.depth
        assert index.behind(heat.now) <= buffer + 1e-6
        assert all(limit.bucket.tokens >= -buffer - 1e-6 for limit in index.writes.limits)


@given(st.sampled_from(INDEXED), runs(st.one_of(writes(entries=True), READS)))
def test_partitions_and_meters_and_outcomes_count_the_same_units(
    described: TableSettings, offers: list[Any]
) -> None:
    heat = model(described, LIMITS)
    outcomes = run(heat, offers)
    total = heat.resource(TABLE).meter.total
    for tallies, consumed in (
        ([outcome.writes for outcome in outcomes], total.consumed_write),
        ([outcome.reads for outcome in outcomes], total.consumed_read),
    ):
        assert sum(tally.accepted for tally in tallies) == pytest.approx(consumed)
    loads = [outcome.loads(TABLE) for outcome in outcomes]
    assert sum(sum(load.written.values()) for load in loads) == pytest.approx(total.consumed_write)
    refused = sum(sum(outcome.throttled.values()) for outcome in outcomes)
    assert sum(sum(load.throttled.values()) for load in loads) == pytest.approx(refused)


@given(
    st.sampled_from(PLAIN),
    runs(writes(entries=False, retried=False)),
    st.sampled_from(["partition_wcu", "on_demand_partitions", "quota_wcu", "burst_seconds"]),
)
def test_more_capacity_never_accepts_less(
    described: TableSettings, offers: list[Any], limit: str
) -> None:
    more = replace(NO_SPLITS, **{limit: getattr(NO_SPLITS, limit) * 2})
    accepted = [
        sum(outcome.writes.accepted for outcome in run(model(described, limits), offers))
        for limits in (NO_SPLITS, more)
    ]
    assert accepted[1] >= accepted[0] - 1e-6


@given(st.sampled_from(INDEXED), runs(st.one_of(writes(entries=True), READS)))
def test_equal_offers_give_equal_states(described: TableSettings, offers: list[Any]) -> None:
    states = []
    for _ in range(2):
        heat = model(described, LIMITS)
        run(heat, offers)
        states.append(heat.snapshot())
    assert states[0] == states[1]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.floats(0.1, 5), min_size=2),
    st.floats(0.1, 40),
    st.sampled_from(PLAIN),
)
def test_keys_together_and_each_by_itself_get_the_same(
    shares: dict[str, float], rate: float, described: TableSettings
) -> None:
    total = sum(shares.values())
    together = {Writes(TABLE, Keys.of(shares)): rate}
    apart = {Writes(TABLE, Keys.one(key)): rate * share / total for key, share in shares.items()}
    for _ in range(3):
        one, other = (
            model(described, NO_SPLITS).offer(offered).writes for offered in (together, apart)
        )
        assert one.accepted == pytest.approx(other.accepted)
        assert one.throttled == pytest.approx(other.throttled)


@given(KEYS, st.floats(0.1, 40), st.sampled_from(PLAIN), st.sampled_from([2.0, 10.0, 30.0]))
def test_the_length_of_steps_does_not_matter_under_a_constant_rate(
    keys: Keys, rate: float, described: TableSettings, step: float
) -> None:
    accepted = []
    for length in (1.0, step):
        heat = model(described, NO_SPLITS, length)
        traffic = Writes(TABLE, keys)
        outcomes = run(heat, [{traffic: rate}] * round(60 / length))
        accepted.append(sum(outcome.writes.accepted for outcome in outcomes))
    assert accepted[1] == pytest.approx(accepted[0], rel=0.02)
