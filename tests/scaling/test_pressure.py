import pytest

from dynamoheat.reasons import ThrottleReason
from spillway.dynamodb.port import ThrottlingReason
from spillway.scaling.evidence import ThrottleSummary
from spillway.scaling.policy import ThrottleKind
from tests.scaling.world import INDEX_KEY_RANGE, TABLE_KEY_RANGE, throttled

CAPACITY = ThrottlingReason("TableWriteProvisionedThroughputExceeded", "table/events")


@pytest.mark.parametrize("reason", ThrottleReason)
def test_each_of_the_sixteen_reasons_presses_on_what_it_names(reason: ThrottleReason) -> None:
    write = throttled(ThrottlingReason(str(reason), "r"), shard=3, index_shard=2, units=5)
    pressure = ThrottleSummary.of([write])
    key_range = "KeyRange" in reason
    on_index = reason.startswith("Index")
    assert dict(pressure.table) == ({3: 5} if key_range and not on_index else {})
    assert dict(pressure.index) == ({2: 5} if key_range and on_index else {})
    assert pressure.capacity == (set() if key_range else {ThrottlingReason(str(reason), "r")})
    assert pressure.cause is (ThrottleKind.KEY_RANGE if key_range else ThrottleKind.CAPACITY)


def test_a_reason_that_is_not_known_yet_grows_nothing() -> None:
    pressure = ThrottleSummary.of([throttled(ThrottlingReason("TableWriteMoodExceeded", ""))])
    assert pressure.cause is ThrottleKind.CAPACITY


def test_units_are_added_up_by_shard_and_sharding_key() -> None:
    pressure = ThrottleSummary.of(
        [
            throttled(TABLE_KEY_RANGE, shard=1, units=2, sharding_key="a"),
            throttled(TABLE_KEY_RANGE, shard=1, units=3, sharding_key="b"),
            throttled(TABLE_KEY_RANGE, INDEX_KEY_RANGE, shard=2, index_shard=1, units=4),
            throttled(INDEX_KEY_RANGE, shard=2, index_shard=1, units=7, sharding_key="a"),
            throttled(TABLE_KEY_RANGE, TABLE_KEY_RANGE, shard=2, units=1),
        ]
    )
    table, index = pressure.table_side(4, 100.0), pressure.index_side(2, None)
    assert (table.shards, table.demand, index.shards, index.demand) == (4, 100.0, 2, None)
    assert table.throttled == {1: 5, 2: 5}
    assert table.key_shares == {"a": 2, "b": 3}
    assert index.throttled == {1: 11}
    assert index.key_shares == {"a": 7}


def test_a_key_range_counts_before_capacity_since_only_there_growth_helps() -> None:
    assert (
        ThrottleSummary.of([throttled(CAPACITY), throttled(TABLE_KEY_RANGE)]).cause
        is ThrottleKind.KEY_RANGE
    )
    assert ThrottleSummary.of([throttled(CAPACITY), throttled()]).cause is ThrottleKind.CAPACITY
    assert ThrottleSummary.of([throttled()]).cause is ThrottleKind.UNKNOWN
    assert ThrottleSummary.of([]).cause is ThrottleKind.UNKNOWN


def test_what_was_found_for_some_explains_the_rest() -> None:
    pressure = ThrottleSummary.of([throttled(shard=0), throttled(shard=5, units=2)])
    pressure.explain_remaining((TABLE_KEY_RANGE,))
    assert pressure.table == {0: 1, 5: 2}
    assert pressure.unexplained == []
