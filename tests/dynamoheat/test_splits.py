from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from random import Random

import pytest

from dynamoheat import Heat, ModelParameters, ProvisionedThroughput, TableSettings
from dynamoheat.partitions import HASHES, position
from tests.dynamoheat.traffic import INDEX, TABLE, Item, item, load, model, put, settings

# A minute of the model's is a second here; a partition takes 40 writes a second.
FAST = ModelParameters(partition_wcu=40, partition_rcu=120, time_scale=60)
WIDE = 4_000.0  # write units a second: a hundred partitions, and no growth beyond
EARLIEST, LATEST = 10, 15  # minutes from the first heat to the split


def spread(key: str = "hot", seed: int = 1) -> Iterator[Item]:
    random = Random(seed)
    while True:
        yield item(key, f"{random.random():.12f}")


def ascending(key: str = "hot") -> Iterator[Item]:
    return (item(key, f"{n:09}") for n in count())


def run(
    items: Iterator[Item], seconds: int, described: TableSettings | None = None, rate: float = 60
) -> Heat:
    heat = model(described or settings(warm_write=WIDE), FAST)
    load(heat, items, rate, seconds)
    return heat


def whys(heat: Heat, index: str | None = None) -> list[str]:
    return [split.why for split in heat.resource(TABLE, index).splits if split.why != "throughput"]


def low_keys() -> list[str]:
    """Partition keys in the lowest tenth of the first of a hundred partitions."""
    return [key for key in (f"k{n}" for n in range(20_000)) if position(key) < (HASHES // 1_000,)]


def test_a_hot_collection_with_spread_sort_keys_splits_inside_within_10_to_15_minutes() -> None:
    heat = run(spread(), LATEST + 2)
    splits = [split for split in heat.resource(TABLE).splits if split.why == "heat"]
    assert splits
    assert EARLIEST <= splits[0].at <= LATEST
    assert len(splits[0].cut) == 2  # inside the collection
    assert 0.4 < float(splits[0].cut[1]) < 0.6  # where the traffic is halved


def test_the_cut_follows_the_observed_keys_not_the_middle_of_the_range() -> None:
    low = sorted(low_keys(), key=position)
    random = Random(1)
    heat = run((item(random.choice(low), str(n)) for n in count()), LATEST + 2)
    first = next(split for split in heat.resource(TABLE).splits if split.why == "heat")
    middle = len(low) // 2
    assert position(low[middle - 5]) < first.cut < position(low[middle + 5])


@pytest.mark.parametrize(
    "items", [ascending(), (item("hot", f"{10**9 - n:09}") for n in count())], ids=["up", "down"]
)
def test_an_ever_moving_sort_key_never_splits(items: Iterator[Item]) -> None:
    heat = run(items, 3 * LATEST)
    assert whys(heat) == []
    assert any(part.unsplittable for part in heat.resource(TABLE).partitions)


def test_one_hot_item_never_splits() -> None:
    assert whys(run((item("hot", "one") for _ in count()), 3 * LATEST)) == []


def test_a_collection_under_a_local_index_never_splits_inside_but_between_keys_it_does() -> None:
    local = settings(local=True, warm_write=WIDE)
    assert whys(run(spread(), 3 * LATEST, local)) == []
    low = low_keys()
    keys = (item(low[n % len(low)], str(n)) for n in count())
    heat = run(keys, 2 * LATEST, local)
    assert "heat" in whys(heat)
    assert all(len(split.cut) == 1 for split in heat.resource(TABLE).splits)


def test_an_index_splits_for_its_own_heat() -> None:
    described = settings(index=ProvisionedThroughput(), warm_write=WIDE)
    random = Random(1)
    items = (item(f"p{n}", f"{random.random():.9f}", kind="hot") for n in count())
    heat = run(items, 2 * LATEST, described)
    assert "heat" in whys(heat, INDEX)
    assert whys(heat) == []


def test_a_partition_that_cools_down_does_not_split() -> None:
    heat = model(settings(warm_write=WIDE), FAST)
    load(heat, spread(), lambda now: 60 if now % 4 < 3 else 2, 3 * LATEST)
    assert whys(heat) == []


def test_a_split_that_has_begun_ends_though_the_traffic_has_stopped() -> None:
    heat = run(spread(), 7)
    assert whys(heat) == []
    for second in range(8, LATEST + 1):
        heat.advance(float(second))
    assert whys(heat) == ["heat"]
    split = heat.resource(TABLE).splits[-1]
    assert 0.4 < float(split.cut[1]) < 0.6


def test_a_partition_that_was_hot_for_less_than_the_detection_does_not_split() -> None:
    heat = run(spread(), 4)
    for second in range(5, 2 * LATEST):
        heat.advance(float(second))
    assert whys(heat) == []


def test_without_a_detection_only_hot_partitions_split_and_as_soon_as_the_work_is_done() -> None:
    at_once = replace(FAST, split_detection_seconds=0)
    heat = model(settings(warm_write=WIDE), at_once)
    load(heat, spread(), 60, LATEST)
    assert 5 < heat.resource(TABLE).splits[0].at <= 10
    assert {split.cut[0] for split in heat.resource(TABLE).splits} == {position("hot")[0]}


def test_no_more_splits_are_under_way_at_once_than_are_allowed() -> None:
    def max_at_once(allowed: int) -> int:
        heat = model(settings(warm_write=WIDE), replace(FAST, splits_at_once=allowed))
        random = Random(1)
        keys = [f"k{n}" for n in range(4)]
        most = 0
        for second in range(2 * LATEST):
            load(
                heat,
                (item(keys[n % 4], f"{random.random():.9f}") for n in count()),
                240,
                1,
                start=float(second),
            )
            under_way = [
                part for part in heat.resource(TABLE).partitions if part.split_at is not None
            ]
            most = max(most, len(under_way))
        assert "heat" in whys(heat)
        return most

    assert [max_at_once(allowed) for allowed in (1, 2, 4)] == [1, 2, 4]


def test_growth_of_the_table_does_not_start_a_hot_partitions_clock_again() -> None:
    heat = model(settings(), FAST)
    load(heat, spread(), 60, 4)
    before = heat.resource(TABLE).partitions.find("hot", "0")
    heat.update_table(settings(warm_write=WIDE), 4.0)
    after = heat.resource(TABLE).partitions.find("hot", "0")
    assert after is not before
    assert after.hot_since == before.hot_since is not None
    assert len(after.observed.places) == len(before.observed.places) > 0


def test_splits_raise_what_a_spread_key_can_take() -> None:
    heat = model(settings(warm_write=WIDE), FAST)
    passed = load(heat, spread(), 100, 3 * LATEST)
    assert sum(passed[1:5]) / 4 == pytest.approx(40, rel=0.05)
    assert sum(passed[-5:]) / 5 > 75


def test_a_full_partition_splits_for_size() -> None:
    heat = model(settings(), ModelParameters(partition_bytes=50_000, on_demand_partitions=1))
    random = Random(3)
    for n in range(150):
        heat.admit("PutItem", put(item(f"k{random.random()}", pad=500)), float(n))
    partitions = heat.resource(TABLE).partitions
    assert whys(heat) == ["size"]
    assert sum(part.bytes for part in partitions) == pytest.approx(150 * 530, rel=0.1)


def test_raising_provisioned_throughput_adds_partitions_and_lowering_keeps_them() -> None:
    heat = model(settings(write=1000, read=1500))
    assert len(heat.resource(TABLE).partitions) == 2
    heat.update_table(settings(write=4000, read=3000), 1.0)
    assert len(heat.resource(TABLE).partitions) == 5
    heat.update_table(settings(write=5, read=5), 2.0)
    heat.update_table(settings(), 3.0)
    heat.update_table(settings(write=5, read=5), 4.0)
    assert len(heat.resource(TABLE).partitions) == 5


@pytest.mark.parametrize(
    ("described", "partitions"),
    [
        (settings(), 4),
        (settings(write=500, read=1500), 1),
        (settings(write=1000, read=2500), 2),
        (settings(write=1000, read=3000), 2),
        (settings(write=10_000, read=3), 11),
        (settings(warm_write=40_000), 40),
        (settings(warm_read=30_000), 10),
    ],
)
def test_first_partitions_follow_throughput(described: TableSettings, partitions: int) -> None:
    assert len(model(described).resource(TABLE).partitions) == partitions


def test_first_partitions_follow_stored_data() -> None:
    described = TableSettings(name=TABLE, key=settings().key, stored_bytes=95 * 10**9)
    assert len(model(described).resource(TABLE).partitions) == 10


def test_equal_seeds_and_calls_give_equal_results_and_another_seed_other_splits() -> None:
    def outcome(seed: int) -> dict[str, object]:
        heat = model(settings(warm_write=WIDE), FAST, seed=seed)
        load(heat, spread(), 60, LATEST + 2)
        return heat.snapshot(LATEST + 2.0)

    assert outcome(1) == outcome(1)
    assert outcome(1) != outcome(2)
