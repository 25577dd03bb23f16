"""Published measurements of the real DynamoDB, replayed in virtual time with the model's defaults."""

from collections import deque
from itertools import count, cycle
from random import Random
from uuid import UUID

import pytest

from heat import Parameters
from tests.heat.traffic import TABLE, batch, item, load, model, put, settings


def test_one_key_with_ascending_sort_keys_takes_a_steady_1000_writes_a_second() -> None:
    heat = model(settings())
    passed = load(heat, (item("one", f"{n:09}") for n in count()), 1_400, 20)
    assert sum(passed[2:]) / 18 == pytest.approx(1_000, rel=0.02)


def test_one_key_with_ascending_sort_keys_still_does_not_split_after_an_hour() -> None:
    heat = model(settings(), Parameters(partition_wcu=50, time_scale=60))
    load(heat, (item("one", f"{n:09}") for n in count()), 70, 60)
    assert heat.resource(TABLE).splits == []


def test_10000_provisioned_units_over_240_shuffled_keys_load_within_a_minute() -> None:
    heat = model(settings(write=10_000, read=10))
    items = [item(f"key{n % 240}", str(n)) for n in range(250_000)]
    Random(4).shuffle(items)
    waiting = deque(items)
    by_second: list[int] = []
    while waiting and len(by_second) < 60:
        done = 0
        for step in range(20):
            now = len(by_second) + (step + 1) / 20
            sent = [waiting.popleft() for _ in range(min(len(waiting), 550))]
            verdicts = heat.admit("BatchWriteItem", batch(*sent), now).verdicts
            waiting.extend(one for one, no in zip(sent, verdicts, strict=True) if no)
            done += verdicts.count(None)
        by_second.append(done)
    assert not waiting
    assert len(by_second) < 60
    assert max(by_second) > 6_000


def test_one_key_takes_9000_eventually_consistent_queries_a_second_before_any_split() -> None:
    heat = model(settings())
    random = Random(5)
    units = []
    for second in range(6):
        taken = 0.0
        for step in range(15_000):
            query = {
                "TableName": TABLE,
                "KeyConditionExpression": "pk = :p AND sk <= :s",
                "ExpressionAttributeValues": {
                    ":p": {"S": "one"},
                    ":s": {"S": str(random.random())},
                },
                "ScanIndexForward": False,
                "Limit": 1,
            }
            taken += heat.admit("Query", query, second + step / 15_000).units
        units.append(taken)
    assert sum(units[3:]) / 3 == pytest.approx(4_500, rel=0.03)
    assert heat.resource(TABLE).splits == []


def test_a_writer_at_117_a_second_for_17_seconds_lives_on_the_burst_of_100() -> None:
    heat = model(settings(write=100))
    start = 60.0  # the table has been there for a minute
    for n in range(117 * 17):
        assert not heat.admit("PutItem", put(item(f"k{n}")), start + n / 117).throttles


def uuids() -> "deque[str]":
    random = Random(6)
    return deque(str(UUID(int=random.getrandbits(128))) for _ in range(400_000))


def test_a_new_on_demand_table_is_clean_to_3000_and_capped_at_4000() -> None:
    heat = model(settings())
    keys = uuids()
    items = (item(keys.popleft()) for _ in count())
    ramp = load(heat, items, lambda now: min(now * 100, 6_000), 70)
    clean = [
        passed / (100 * (second + 0.5)) for second, passed in enumerate(ramp[:30]) if second > 1
    ]
    assert min(clean) > 0.97
    assert sum(ramp[61:]) / len(ramp[61:]) == pytest.approx(4_000, rel=0.03)


def test_a_table_first_provisioned_at_40000_takes_40000_on_demand_at_once() -> None:
    heat = model(settings(write=40_000, read=10))
    heat.update_table(settings(), 0.5)
    keys = uuids()
    passed = load(heat, (item(keys.popleft()) for _ in count()), 40_000, 5, start=1.0)
    assert sum(passed) / 5 == pytest.approx(40_000, rel=0.03)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("passes", [True, False])
def test_1000_conditional_updates_cost_1000_units_whatever_becomes_of_them(
    there: bool, passes: bool
) -> None:
    heat = model(settings())
    update = {
        "TableName": TABLE,
        "Key": item("p"),
        "UpdateExpression": "SET n = :n",
        "ReturnValues": "ALL_NEW",
    }
    if there:
        heat.remember(TABLE, item("p", pad=100))
    for n in range(1_000):
        admission = heat.admit("UpdateItem", update, n * 0.01)
        if passes:
            heat.settle(
                admission, {"Attributes": item("p", pad=100) | {"n": {"N": str(n)}}}, n * 0.01
            )
        else:
            heat.fail(admission, {}, n * 0.01)
        assert admission.units == 1
    assert heat.resource(TABLE).meter.total.consumed_write == 1_000


def test_an_uneven_load_of_300_on_400_units_over_4_partitions_is_not_throttled() -> None:
    heat = model(settings(write=4_000, read=1))  # five partitions, of which four get traffic
    heat.update_table(settings(write=400, read=1), 0.0)
    partitions = list(heat.resource(TABLE).partitions)[:4]
    keys: dict[int, str] = {}
    for n in range(999):
        keys.setdefault(heat.resource(TABLE).partitions.find(f"k{n}").number, f"k{n}")
    shares = [keys[part.number] for part in partitions]
    pattern = cycle([shares[0], shares[1], shares[2], *[shares[3]] * 3])  # 50, 50, 50, 150
    passed = load(heat, (item(next(pattern), str(n)) for n in count()), 300, 60)
    assert passed == [300] * 60


def test_150_units_unused_for_five_minutes_carry_200_for_fifteen() -> None:
    heat = model(settings(write=150))
    passed = load(heat, (item(f"k{n}") for n in count()), 200, 1_000, start=400.0, steps=4)
    assert passed[:890] == [200] * 890
    assert sum(passed[910:]) / 90 == pytest.approx(150, rel=0.02)
