from dataclasses import replace

import pytest

from dynamoheat import Heat, ModelParameters
from dynamoheat.studies.generations import (
    DesignAssumptions,
    Generation,
    ItemRequest,
    NewTable,
    open_table,
)
from dynamoheat.studies.generations.global_admission import HeatTable
from dynamoheat.studies.generations.workload import OPENING, Phase, RequestStream, Workload
from tests.dynamoheat.traffic import TABLE, item, model, put, settings

PUTS = [ItemRequest(f"k{n % 7}", str(n), 1.0) for n in range(9_000)]


def test_on_demand_is_the_model_itself() -> None:
    table = HeatTable(NewTable(read=1, write=1), splits=True, on_demand=True, seed=3)
    plain = model(settings(), seed=3)
    for number, ask in enumerate(PUTS):
        now = number / 6_000
        alone = plain.admit("PutItem", put(item(ask.key, ask.sort)), now)
        assert table.put(ask, now) == (not alone.throttles)
    assert [p.write.tokens for p in table.partitions] == pytest.approx(
        [p.write.tokens for p in plain.resource(TABLE).partitions]
    )


def test_todays_dynamodb_is_what_the_model_does_unless_told_otherwise() -> None:
    table = open_table(list(Generation)[-1], OPENING)
    assert isinstance(table, HeatTable)
    assert isinstance(table.heat, Heat)
    assert table.heat.parameters == ModelParameters()
    assert table.routers is None


@pytest.mark.parametrize("generation", list(Generation))
def test_each_generation_contains_those_before_it(generation: Generation) -> None:
    before = [each for each in Generation if generation.includes(each)]
    assert before == list(Generation)[: len(before)]
    assert before[-1] is generation


def hot_range(minutes: float) -> Workload:
    """One partition key, sort keys all over, above a partition's 1,000."""
    where = lambda random: ((("hot"), f"{random.random()}") for _ in iter(int, 1))  # noqa: E731
    return Workload((Phase("hot", minutes, (RequestStream(1_500, where),)),))


@pytest.mark.parametrize(
    ("generation", "splits"),
    [(Generation.GLOBAL_ADMISSION, False), (Generation.SPLIT_FOR_CONSUMPTION, True)],
)
def test_only_split_for_consumption_splits_a_hot_partition(
    generation: Generation, splits: bool
) -> None:
    quick = replace(ModelParameters(), min_split_seconds=60, max_split_seconds=120)
    table = open_table(
        generation, replace(OPENING, stored_bytes=0), assumptions=DesignAssumptions(limits=quick)
    )
    for at, _, ask in hot_range(9).events():
        table.put(ask, at)
    assert (len(table.partitions) > 4) == splits


def test_routers_let_nothing_through_that_the_tables_own_bucket_would_refuse() -> None:
    table = HeatTable(NewTable(read=1, write=500), splits=False, on_demand=False)
    passed = sum(table.put(ask, number / 900) for number, ask in enumerate(PUTS))
    assert passed < len(PUTS)
    assert not table.heat.resource("table").meter.total.throttled
