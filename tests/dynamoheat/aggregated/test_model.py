from itertools import count

import pytest

from dynamoheat import (
    Heat,
    ModelParameters,
    TableSettings,
    ThrottleReason,
    ThroughputSettings,
    UnknownTableError,
)
from dynamoheat.aggregated import (
    AggregatedHeat,
    IndexEntries,
    KeyDistribution,
    Reads,
    Traffic,
    Writes,
)
from dynamoheat.autoscaling import ScaledTable, TargetTrackingPolicy
from dynamoheat.sizes import EVENTUAL, STRONG
from tests.dynamoheat.traffic import INDEX, TABLE, item, load, settings

WIDE = 40_000.0  # write units a second: forty partitions


def model(
    described: TableSettings, parameters: ModelParameters | None = None, step: float = 1.0
) -> AggregatedHeat:
    heat = AggregatedHeat(parameters, step=step)
    heat.create_table(described)
    return heat


def steady(
    heat: AggregatedHeat, rates: dict[Traffic, float], steps: int = 40
) -> dict[ThrottleReason, float]:
    """What is throttled a second once full buckets are used up."""
    for _ in range(steps):
        heat.offer(rates)
    return dict(heat.offer(rates).throttled)


EVEN = KeyDistribution.everywhere()
ANY = Writes(TABLE, KeyDistribution.everywhere())
HOT = Writes(TABLE, KeyDistribution.single("hot"))


@pytest.mark.parametrize(
    ("described", "traffic", "rate", "reason", "throttled"),
    [
        (settings(), ANY, 5_000, ThrottleReason.TABLE_WRITE_KEY_RANGE, 1_000),
        (settings(warm_write=WIDE), HOT, 1_500, ThrottleReason.TABLE_WRITE_KEY_RANGE, 500),
        (settings(warm_write=2 * WIDE), ANY, 42_000, ThrottleReason.TABLE_WRITE_ACCOUNT, 2_000),
        (settings(max_write=300), ANY, 400, ThrottleReason.TABLE_WRITE_MAXIMUM, 100),
        (settings(write=900), ANY, 1_000, ThrottleReason.TABLE_WRITE_PROVISIONED, 100),
        (
            settings(),
            Reads(TABLE, KeyDistribution.single("hot")),
            5_000,
            ThrottleReason.TABLE_READ_KEY_RANGE,
            500,
        ),
        (
            settings(),
            Reads(TABLE, KeyDistribution.single("hot"), consistency=STRONG),
            3_500,
            ThrottleReason.TABLE_READ_KEY_RANGE,
            500,
        ),
        (settings(read=50, write=1), Reads(TABLE, EVEN), 60,
         ThrottleReason.TABLE_READ_PROVISIONED, 10),
        (
            settings(index=ThroughputSettings()),
            Reads(TABLE, KeyDistribution.single("hot"), index=INDEX),
            5_000,
            ThrottleReason.INDEX_READ_KEY_RANGE,
            500,
        ),
        (
            settings(index=ThroughputSettings(), warm_write=WIDE),
            Writes(TABLE, EVEN, {INDEX: IndexEntries(KeyDistribution.single("hot"))}),
            1_250,
            ThrottleReason.INDEX_WRITE_KEY_RANGE,
            250,
        ),
        (
            settings(write=2_000, index=ThroughputSettings(provisioned_write=500)),
            Writes(TABLE, EVEN, {INDEX: IndexEntries(EVEN)}),
            900,
            ThrottleReason.INDEX_WRITE_PROVISIONED,
            400,
        ),
    ],
)  # fmt: skip
def test_each_limit_throttles_what_is_above_it_with_its_own_reason(
    described: TableSettings,
    traffic: Traffic,
    rate: float,
    reason: ThrottleReason,
    throttled: float,
) -> None:
    heat = model(described)
    assert steady(heat, {traffic: rate}) == pytest.approx({reason: throttled})
    index = INDEX if "Index" in reason else None
    assert set(heat.resource(TABLE, index).meter.total.throttled) == {reason}


def test_a_hot_key_and_its_neighbours_are_throttled_in_proportion_to_what_they_ask() -> None:
    heat = model(settings(warm_write=WIDE))
    neighbour = next(
        key
        for key in (f"k{n}" for n in range(1_000))
        if heat.resource(TABLE).partitions.find(key) is heat.resource(TABLE).partitions.find("hot")
    )
    calm = Writes(TABLE, KeyDistribution.single(neighbour))
    steady(heat, {HOT: 1_800.0, calm: 200.0})
    tallies = heat.offer({HOT: 1_800.0, calm: 200.0}).by_traffic
    assert tallies[HOT].accepted == pytest.approx(900)
    assert tallies[calm].accepted == pytest.approx(100)


@pytest.mark.parametrize(("consistency", "units"), [(STRONG, 3_000.0), (EVENTUAL, 4_500.0)])
def test_a_full_bucket_is_one_second_more_in_the_first_step(
    consistency: float, units: float
) -> None:
    heat = model(settings(), ModelParameters(quota_rcu=1e9))
    reads = Reads(TABLE, KeyDistribution.single("hot"), consistency=consistency)
    accepted = [heat.offer({reads: 10_000.0}).reads.accepted for _ in range(3)]
    assert accepted == pytest.approx([2 * units, units, units])


def test_what_gets_past_its_partition_is_what_an_index_refuses() -> None:
    provisioned = settings(write=40_000, index=ThroughputSettings(provisioned_write=1_500))
    entries = {INDEX: IndexEntries(KeyDistribution.everywhere())}
    hot, other = (
        Writes(TABLE, keys, entries) for keys in (HOT.keys, KeyDistribution.hash_range(0.9, 1.0))
    )
    heat = model(provisioned, ModelParameters(burst_seconds=1))
    steady(heat, {hot: 3_000.0, other: 1_000.0})
    tallies = heat.offer({hot: 3_000.0, other: 1_000.0}).by_traffic
    assert tallies[hot].throttled == pytest.approx(
        {ThrottleReason.TABLE_WRITE_KEY_RANGE: 1_000, ThrottleReason.INDEX_WRITE_PROVISIONED: 1_000}
    )
    assert tallies[other].throttled == pytest.approx({ThrottleReason.INDEX_WRITE_PROVISIONED: 500})


def test_a_full_index_refuses_writes_without_entries_too_until_it_has_caught_up() -> None:
    heat = model(settings(index=ThroughputSettings(), warm_write=WIDE))
    hot = Writes(
        TABLE, KeyDistribution.everywhere(), {INDEX: IndexEntries(KeyDistribution.single("k"))}
    )
    steady(heat, {hot: 2_000.0})
    outcome = heat.offer({hot: 2_000.0, ANY: 100.0})
    assert outcome.by_traffic[ANY].accepted == pytest.approx(50)
    assert heat.resource(TABLE, INDEX).partitions_in_debt
    assert heat.offer({ANY: 100.0}).throttled == {}
    heat.offer({})
    assert not heat.resource(TABLE, INDEX).partitions_in_debt


def test_small_entries_cost_an_index_less_than_their_items_cost_the_table() -> None:
    heat = model(settings(index=ThroughputSettings(), warm_write=WIDE))
    small = IndexEntries(KeyDistribution.single("k"), entry_bytes=100)
    large = Writes(TABLE, KeyDistribution.everywhere(), {INDEX: small}, item_bytes=4_000)
    assert steady(heat, {large: 4_000.0}) == {}
    entries = heat.offer({large: 4_000.0}).loads(TABLE, INDEX)
    assert sum(entries.written.values()) == pytest.approx(1_000)


def test_unused_provisioned_capacity_carries_a_burst() -> None:
    heat = model(settings(write=150))
    for _ in range(400):
        heat.offer({})
    accepted = [heat.offer({ANY: 200.0}).writes.accepted for _ in range(1_000)]
    assert accepted[:900] == pytest.approx([200] * 900)
    assert accepted[-90:] == pytest.approx([150] * 90)


def test_partitions_grow_by_the_bytes_of_new_items_and_split_for_size() -> None:
    heat = model(settings(), ModelParameters(partition_bytes=1e8, on_demand_partitions=1), step=60)
    new, old = ANY, Writes(TABLE, KeyDistribution.everywhere(), adds_items=False)
    for _ in range(5):
        heat.offer({old: 500.0})
    assert sum(part.bytes for part in heat.resource(TABLE).partitions) == 0
    for _ in range(5):
        heat.offer({new: 500.0})
    assert sum(part.bytes for part in heat.resource(TABLE).partitions) == pytest.approx(
        5 * 60 * 500 * 1024
    )
    assert {split.trigger for split in heat.resource(TABLE).splits} == {"size"}


@pytest.mark.parametrize("step", [0.5, 7.0, 60.0, 300.0])
@pytest.mark.parametrize("scale", [1.0, 600.0])
def test_peaks_are_learned_the_same_with_steps_of_any_length(step: float, scale: float) -> None:
    heat = model(settings(warm_write=1), ModelParameters(time_scale=scale), step)
    while heat.now < 2_100 / scale:
        heat.offer({ANY: 3_000.0})
    assert heat.resource(TABLE).writes.warm_throughput == pytest.approx(6_000)


def test_meters_count_whole_items_and_the_snapshot_is_the_event_modes() -> None:
    heat = model(settings(max_write=100))
    large = Writes(TABLE, KeyDistribution.everywhere(), item_bytes=2_500)  # three units
    for _ in range(10):
        heat.offer({large: 130.0})
    total = heat.resource(TABLE).meter.total
    assert (total.writes, total.throttled) == (
        (1_100) // 3,
        {ThrottleReason.TABLE_WRITE_MAXIMUM: (1_300 - 1_100) // 3},
    )
    seen = heat.snapshot()["tables"][TABLE]
    assert seen["consumed"]["write"] == pytest.approx(1_100)
    assert len(seen["partitions"]) == 4


def test_settings_can_change_while_time_passes() -> None:
    heat = model(settings(write=100))
    assert steady(heat, {ANY: 150.0}) == pytest.approx({ThrottleReason.TABLE_WRITE_PROVISIONED: 50})
    heat.update_table(settings(write=200))
    assert heat.offer({ANY: 150.0}).throttled == {}
    assert heat.now == 42


def test_auto_scaling_works_on_it_as_on_the_event_mode() -> None:
    rates, events = model(settings(write=20, read=10), step=60), Heat()
    events.create_table(settings(write=20, read=10), 0.0)
    policy = TargetTrackingPolicy(min_capacity=10, max_capacity=4_000, target=0.7)
    scaled = [ScaledTable(heat, TABLE, {(None, True): policy}) for heat in (rates.heat, events)]
    keys = (item(f"k{n}") for n in count())
    for minute in range(8):
        rates.offer({ANY: 100.0})
        load(events, keys, 100, 60, start=minute * 60.0, steps=5)
        for each in scaled:
            each.advance((minute + 1) * 60.0)
    assert len(scaled[0].changes) > 2
    assert scaled[0].changes == scaled[1].changes


def test_bad_offers_are_refused_before_anything_happens() -> None:
    heat = model(settings(local=True))
    unknown: list[Traffic] = [
        Writes("none", KeyDistribution.everywhere()),
        Writes(
            TABLE,
            KeyDistribution.everywhere(),
            {"none": IndexEntries(KeyDistribution.everywhere())},
        ),
        Reads(TABLE, KeyDistribution.single("k"), index="none"),
    ]
    for traffic in unknown:
        with pytest.raises(UnknownTableError, match="none"):
            heat.offer({ANY: 1.0, traffic: 1.0})
    with pytest.raises(ValueError, match="local"):
        heat.offer(
            {
                Writes(
                    TABLE,
                    KeyDistribution.single("k"),
                    {"by-size": IndexEntries(KeyDistribution.single("k"))},
                ): 1.0
            }
        )
    with pytest.raises(ValueError, match="below zero"):
        heat.offer({ANY: -1.0})
    with pytest.raises(ValueError, match="step"):
        AggregatedHeat(step=0)
    assert heat.now == heat.resource(TABLE).meter.total.consumed_write == 0
