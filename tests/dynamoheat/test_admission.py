import json
from typing import Any

import pytest

from dynamoheat import (
    Heat,
    HeatError,
    MalformedRequestError,
    ModelParameters,
    Rule,
    ThrottleReason,
    ThroughputSettings,
    UnknownTableError,
)
from tests.dynamoheat.traffic import INDEX, TABLE, batch, get, item, model, put, settings

TEN = ModelParameters(partition_wcu=10, partition_rcu=10, on_demand_partitions=1)


def tokens(heat: Heat, now: float) -> list[float]:
    return [
        value
        for resource in heat.table(TABLE).resources()
        for value in (
            *(part.write.fill(now) for part in resource.partitions),
            *(limit.bucket.fill(now) for limit in resource.writes.limits),
        )
    ]


def test_a_mixed_batch_refuses_exactly_the_items_of_the_hot_partition() -> None:
    heat = model(settings(), ModelParameters(partition_wcu=10))
    partitions = heat.resource(TABLE).partitions
    cold = next(
        f"c{n}" for n in range(99) if partitions.find(f"c{n}") is not partitions.find("hot")
    )
    assert not heat.admit(
        "BatchWriteItem", batch(*(item("hot", str(n)) for n in range(10))), 0.0
    ).throttles
    mixed = [item("hot", "x"), item(cold, "1"), item("hot", "y"), item(cold, "2")]
    admission = heat.admit("BatchWriteItem", batch(*mixed), 0.0)
    reasons = [verdict and verdict.reason for verdict in admission.verdicts]
    hot = ThrottleReason.TABLE_WRITE_KEY_RANGE
    assert reasons == [hot, None, hot, None]
    assert not admission.is_rejected
    assert admission.units == 2


def test_a_refused_item_consumes_nothing_anywhere() -> None:
    heat = model(settings(index=ThroughputSettings()), TEN)
    for n in range(20):
        heat.admit("PutItem", put(item(f"p{n}", kind="hot")), 0.0)
    before = tokens(heat, 0.0)
    consumed = heat.resource(TABLE).meter.total.consumed_write
    admission = heat.admit("PutItem", put(item("q", kind="hot")), 0.0)
    assert admission.is_rejected
    assert tokens(heat, 0.0) == before
    assert heat.resource(TABLE).meter.total.consumed_write == consumed
    assert admission.units == 0


def test_a_transaction_is_admitted_whole_or_refused_whole_with_the_items_reason() -> None:
    heat = model(settings(), ModelParameters(partition_wcu=10, on_demand_partitions=2))
    partitions = heat.resource(TABLE).partitions
    cold = next(
        f"c{n}" for n in range(99) if partitions.find(f"c{n}") is not partitions.find("hot")
    )
    for n in range(9):
        heat.admit("PutItem", put(item("hot", str(n))), 0.0)
    request = {"TransactItems": [{"Put": put(item(cold))}, {"Put": put(item("hot"))}]}
    before = tokens(heat, 0.0)
    admission = heat.admit("TransactWriteItems", request, 0.0)
    assert admission.is_rejected
    assert [v and v.reason for v in admission.verdicts] == [
        None,
        ThrottleReason.TABLE_WRITE_KEY_RANGE,
    ]
    assert admission.admitted_charges == []
    assert tokens(heat, 0.0) == before
    admission = heat.admit("TransactWriteItems", request, 1.0)
    assert not admission.throttles
    assert admission.units == 4


def test_a_transactional_read_is_admitted_whole_or_refused_whole() -> None:
    heat = model(settings(), TEN)
    request = {
        "TransactItems": [{"Get": {"TableName": TABLE, "Key": item(str(n))}} for n in range(5)]
    }
    assert not heat.admit("TransactGetItems", request, 0.0).throttles
    admission = heat.admit("TransactGetItems", request, 0.1)
    assert admission.is_rejected
    assert [bool(verdict) for verdict in admission.verdicts] == [True, False, False, False, False]


def test_a_throttled_bucket_admits_again_at_its_rate() -> None:
    heat = model(settings(), TEN)
    passed = 0
    for step in range(1000):
        passed += not heat.admit("PutItem", put(item("p", str(step))), step / 100).throttles
    assert passed == 10 + 99  # the full bucket, then ten a second


def test_eventually_consistent_reads_reach_one_and_a_half_times_the_limit() -> None:
    units = {}
    for consistent in (True, False):
        heat = model(settings(), ModelParameters(partition_rcu=300))
        admissions = [
            heat.admit("GetItem", get("p", consistent=consistent), step / 1000)
            for step in range(1000, 11_000)
        ]
        units[consistent] = sum(admission.units for admission in admissions) / 10
    assert units[True] == pytest.approx(330, rel=0.01)  # 300 a second, and the full bucket
    assert units[False] == pytest.approx(495, rel=0.01)


def test_a_large_item_passes_a_scaled_down_bucket_and_is_paid_for_by_waiting() -> None:
    heat = model(settings(), TEN)
    large = put(item("p", pad=40_000))
    assert not heat.admit("PutItem", large, 0.0).throttles
    assert heat.admit("PutItem", put(item("p", "2")), 3.0).is_rejected
    assert not heat.admit("PutItem", put(item("p", "2")), 3.2).throttles


def test_back_pressure_refuses_writes_that_do_not_touch_the_index_too() -> None:
    heat = model(settings(index=ThroughputSettings()), ModelParameters(partition_wcu=10))
    hot = [heat.admit("PutItem", put(item(f"p{n}", kind="hot")), 0.0) for n in range(40)]
    assert any(admission.throttles for admission in hot)
    admission = heat.admit("PutItem", put(item("elsewhere")), 0.0)
    assert [t.reason for t in admission.throttles] == [ThrottleReason.INDEX_WRITE_KEY_RANGE]
    assert not heat.admit("PutItem", put(item("elsewhere")), 1.5).throttles


def test_an_item_after_the_one_that_filled_the_buffer_is_refused_in_one_batch_too() -> None:
    heat = model(
        settings(index=ThroughputSettings(), warm_write=10_000),
        ModelParameters(partition_wcu=10),
    )
    kinds = ["k"] * 20 + [None]  # ten tokens, ten units of buffer, and one that needs no entry
    items = [item(f"p{n}", kind=kind) for n, kind in enumerate(kinds)]
    verdicts = heat.admit("BatchWriteItem", batch(*items), 1.0).verdicts
    assert verdicts[:-1] == [None] * 20
    assert verdicts[-1] is not None


def test_the_index_buffer_holds_what_the_parameters_say() -> None:
    for seconds in (0.0, 1.0, 3.0):
        heat = model(
            settings(index=ThroughputSettings(), warm_write=10_000),
            ModelParameters(partition_wcu=100, index_buffer_seconds=seconds),
        )
        passed = sum(
            not heat.admit("PutItem", put(item(f"p{n}", kind="hot")), 0.0).throttles
            for n in range(1000)
        )
        assert passed == 100 + 100 * seconds


def test_metrics_separate_table_and_index_and_count_requests_only_when_nothing_passed() -> None:
    heat = model(settings(index=ThroughputSettings()), ModelParameters(partition_wcu=10))
    for n in range(30):
        heat.admit("PutItem", put(item(f"p{n}", kind="hot")), 0.0)
    table, index = heat.resource(TABLE).meter, heat.resource(TABLE, INDEX).meter
    assert table.total.throttled == {}
    assert index.total.throttled == {ThrottleReason.INDEX_WRITE_KEY_RANGE: 10}
    assert index.total.write_throttle_events == 10
    assert table.total.requests == {"PutItem": 10}
    heat.admit("PutItem", put(item("later")), 61.0)
    assert [slot.start for slot in table.closed] == [0.0]
    assert (table.slot.start, table.slot.consumed_write) == (60.0, 1.0)
    assert table.closed[0].writes == 20


def test_insights_name_the_throttled_keys_of_the_table_but_not_those_an_index_held_up() -> None:
    heat = model(settings(index=ThroughputSettings()), TEN)
    for n in range(15):
        heat.admit("PutItem", put(item("p", str(n))), 0.0)
    insights = heat.resource(TABLE).insights
    (only,) = insights.report(Rule.THROTTLED, 0.0, 60.0)
    assert (only.keys, only.total, only.datapoints) == (("p",), 5.0, ((0.0, 5.0),))
    assert len(insights.report(Rule.THROTTLED_ITEMS, 0.0, 60.0)) == 5
    assert insights.report(Rule.CONSUMED, 0.0, 60.0) == []
    heat = model(settings(index=ThroughputSettings()), ModelParameters(partition_wcu=10))
    for n in range(30):
        heat.admit("PutItem", put(item(f"p{n}", kind="hot")), 0.0)
    assert heat.resource(TABLE, INDEX).insights.report(Rule.THROTTLED, 0.0, 60.0) == []


def test_insights_weigh_accessed_keys_three_to_one_where_they_are_asked_for() -> None:
    heat = model(settings())
    heat.resource(TABLE).insights.counts_accessed_keys = True
    heat.admit("PutItem", put(item("p")), 0.0)
    heat.admit("GetItem", get("p"), 0.0)
    heat.admit("GetItem", get("q"), 0.0)
    report = heat.resource(TABLE).insights.report(Rule.CONSUMED, 0.0, 60.0, max_count=1)
    assert [(one.keys, one.total) for one in report] == [(("p",), 4.0)]


def test_the_snapshot_is_json() -> None:
    heat = model(settings(index=ThroughputSettings(), local=True), TEN)
    for n in range(30):
        heat.admit("PutItem", put(item("p", str(n), kind="k")), 0.0)
    seen = json.loads(json.dumps(heat.snapshot(1.0)))["tables"][TABLE]
    assert seen["throttled"] == {"TableWriteKeyRangeThroughputExceeded": 20}
    assert seen["partitions"][0]["from"] == ["0000000000000000"]
    assert seen["partitions"][0]["write"]["consumed"] == 10
    assert set(seen["indexes"]) == {INDEX}


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("DescribeTable", {"TableName": TABLE}),
        ("PutItem", {}),
        ("PutItem", {"TableName": TABLE}),
        ("PutItem", {"TableName": TABLE, "Item": {"pk": {"S": "p"}}}),
        ("PutItem", {"TableName": TABLE, "Item": {"pk": "p", "sk": "s"}}),
        ("PutItem", {"TableName": TABLE, "Item": item("p") | {"x": {"Z": 1}}}),
        ("PutItem", {"TableName": TABLE, "Item": item("p") | {"x": {"N": "one"}}}),
        ("PutItem", {"TableName": TABLE, "Item": item("p") | {"x": {}}}),
        ("PutItem", {"TableName": 7, "Item": item("p")}),
        ("BatchWriteItem", {"RequestItems": [1]}),
        ("BatchWriteItem", {"RequestItems": {TABLE: [{"Nothing": 1}]}}),
        ("Query", {"TableName": TABLE, "KeyConditionExpression": "sk = :s"}),
        ("TransactWriteItems", {"TransactItems": [{"Drop": {"TableName": TABLE}}]}),
        ("Scan", {"TableName": TABLE, "Segment": "x"}),
    ],
)
def test_requests_that_are_not_valid_are_said_to_be_so_and_take_nothing(
    operation: str, request_: dict[str, Any]
) -> None:
    heat = model(settings())
    before = heat.snapshot(0.0)
    with pytest.raises(MalformedRequestError):
        heat.admit(operation, request_, 0.0)
    assert heat.snapshot(0.0) == before


def test_a_deeply_nested_item_is_not_valid_rather_than_fatal() -> None:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(3_000):
        value = {"L": [value]}
    with pytest.raises(MalformedRequestError):
        model(settings()).admit("PutItem", put(item("p") | {"deep": value}), 0.0)


def test_unknown_tables_and_indexes_are_named() -> None:
    heat = model(settings())
    with pytest.raises(UnknownTableError, match="other"):
        heat.admit("GetItem", {"TableName": "other", "Key": item("p")}, 0.0)
    with pytest.raises(HeatError, match=f"{TABLE}/index/none"):
        heat.admit("Scan", {"TableName": TABLE, "IndexName": "none"}, 0.0)


def test_a_table_may_be_named_by_its_arn() -> None:
    heat = model(settings())
    arn = f"arn:aws:dynamodb:us-east-1:123456789012:table/{TABLE}"
    assert heat.admit("GetItem", get("p") | {"TableName": arn}, 0.0).units == 1
