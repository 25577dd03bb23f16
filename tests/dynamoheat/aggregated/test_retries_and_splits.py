from dataclasses import replace

import pytest

from dynamoheat import ModelParameters, ProvisionedThroughput, TableSettings
from dynamoheat.aggregated import AggregatedHeat, Entries, Keys, Reads, Sorts, Writes
from dynamoheat.partitions import position
from tests.dynamoheat.traffic import INDEX, TABLE, settings

WIDE = 40_000.0  # write units a second: forty partitions
ANY = Writes(TABLE, Keys.everywhere())
HOT = Writes(TABLE, Keys.one("hot"))


def model(
    described: TableSettings, parameters: ModelParameters | None = None, step: float = 1.0
) -> AggregatedHeat:
    heat = AggregatedHeat(parameters, step=step)
    heat.create_table(described)
    return heat


def test_what_is_retried_gets_through_later_and_nothing_else_is_kept() -> None:
    heat = model(settings(maximum_write=100))
    retried, lost = Writes(TABLE, Keys.everywhere(), retried=True), ANY
    heat.offer({})
    outcome = heat.offer({retried: 400.0, lost: 400.0})
    assert outcome.by_traffic[retried].accepted == pytest.approx(100)
    assert heat.waiting(retried) == pytest.approx(300)
    assert heat.waiting(lost) == 0
    later = [heat.offer({}) for _ in range(4)]
    assert [outcome.writes.accepted for outcome in later] == pytest.approx([100, 100, 100, 0])
    assert later[0].by_traffic[retried].retried == pytest.approx(300)


def test_what_waits_for_a_partition_waits_for_its_children_after_a_split() -> None:
    heat = model(settings(), replace(ModelParameters(), on_demand_partitions=1))
    retried = Writes(TABLE, Keys.one("hot"), retried=True)
    heat.offer({retried: 5_000.0})
    waiting = heat.waiting(retried)
    partitions = heat.resource(TABLE).partitions
    partitions.split(next(iter(partitions)), (position("hot")[0], 0.5), heat.now)
    outcome = heat.offer({})
    assert outcome.writes.offered == pytest.approx(waiting)
    assert len(outcome.loads(TABLE).written) == 2


def test_what_waits_for_a_table_that_is_deleted_is_lost() -> None:
    heat = model(settings(index=ProvisionedThroughput()))
    writes = Writes(TABLE, Keys.everywhere(), retried=True)
    reads = Reads(TABLE, Keys.one("hot"), index=INDEX, retried=True)
    entries = Writes(TABLE, HOT.keys, {INDEX: Entries(HOT.keys)}, retried=True)
    heat.offer({writes: 50_000.0, reads: 50_000.0, entries: 50_000.0})
    heat.update_table(settings())
    assert heat.waiting(writes) > heat.waiting(reads) == heat.waiting(entries) == 0
    heat.create_table(settings())
    assert heat.waiting(writes) == 0
    heat.offer({})


@pytest.mark.parametrize(
    ("keys", "splits"),
    [
        (Keys.one("hot", Sorts.SPREAD), True),
        (Keys.one("hot", Sorts.GROWING), False),
        (Keys.one("hot", Sorts.ONE), False),
        (Keys.arc(0.0, 0.01), True),
    ],
)
def test_heat_splits_what_a_cut_can_divide(keys: Keys, splits: bool) -> None:
    heat = model(settings(warm_write=WIDE), step=10)
    traffic = Writes(TABLE, keys)
    for _ in range(360):
        heat.offer({traffic: 1_500.0})
    found = heat.resource(TABLE).splits
    assert bool(found) is splits
    assert (heat.offer({traffic: 1_500.0}).throttled == {}) is splits


def test_the_cut_of_an_arc_follows_its_traffic_not_the_middle_of_the_partition() -> None:
    heat = model(settings(warm_write=WIDE), step=10)
    for _ in range(120):
        heat.offer({Writes(TABLE, Keys.arc(0.0, 0.01)): 1_500.0})
    first = heat.resource(TABLE).splits[0].cut[0] / 2**64
    assert first == pytest.approx(0.005, abs=0.001)


def test_a_table_without_a_sort_key_does_not_split_inside_a_key() -> None:
    plain = settings(warm_write=WIDE)
    heat = model(replace(plain, key=replace(plain.key, sort=None)), step=10)
    for _ in range(360):
        heat.offer({HOT: 1_500.0})
    assert heat.resource(TABLE).splits == []
