from decimal import Decimal
from typing import Any

import pytest

from dynamoheat import Heat, IndexSettings, Key, TableSettings
from dynamoheat.partitions import HASHES, LAST, position
from dynamoheat.queries import query_start, scan_start

TABLE = TableSettings(
    name="events",
    key=Key("pk", "sk"),
    indexes=(IndexSettings(name="by-size", key=Key("kind", "size")),),
)


def start(index: str | None = None, **request: Any) -> tuple[str, Any]:
    heat = Heat()
    heat.create_table(TABLE, 0.0)
    table = heat.table("events")
    return query_start(request, table, table.indexes[index] if index else None)


VALUES = {":p": {"S": "p"}, ":a": {"S": "a"}, ":b": {"S": "b"}}


@pytest.mark.parametrize(
    ("condition", "forward", "backward"),
    [
        ("pk = :p", None, LAST),
        ("pk=:p AND sk = :a", "a", "a"),
        ("pk = :p AND sk > :a", "a", LAST),
        ("pk = :p AND sk >= :a", "a", LAST),
        ("sk < :b AND pk = :p", None, "b"),
        ("pk = :p and sk <= :b", None, "b"),
        ("pk = :p AND sk BETWEEN :a AND :b", "a", "b"),
        ("pk = :p AND sk between :a and :b", "a", "b"),
        ("(pk = :p) AND begins_with ( sk , :a )", "a", "a"),
        ("#k = :p AND #s >= :a", "a", LAST),
    ],
)
def test_a_page_starts_at_the_bound_that_the_order_meets_first(
    condition: str, forward: Any, backward: Any
) -> None:
    request: dict[str, Any] = {
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": {"#k": "pk", "#s": "sk"},
        "ExpressionAttributeValues": VALUES,
    }
    assert start(**request) == ("p", forward)
    assert start(**request, ScanIndexForward=False) == ("p", backward)


def test_a_later_page_starts_at_its_start_key() -> None:
    key = {"pk": {"S": "p"}, "sk": {"S": "m"}}
    assert start(ExclusiveStartKey=key, KeyConditionExpression="pk = :p") == ("p", "m")


def test_an_index_page_starts_at_the_indexs_own_keys() -> None:
    values = {":k": {"S": "k"}, ":n": {"N": "7"}}
    condition = "kind = :k AND size > :n"
    found = start("by-size", KeyConditionExpression=condition, ExpressionAttributeValues=values)
    assert found == ("k", Decimal(7))


def test_the_older_key_conditions_are_read_too() -> None:
    equal = {"AttributeValueList": [{"S": "p"}], "ComparisonOperator": "EQ"}
    below = {"AttributeValueList": [{"S": "b"}], "ComparisonOperator": "LT"}
    between = {"AttributeValueList": [{"S": "a"}, {"S": "b"}], "ComparisonOperator": "BETWEEN"}
    assert start(KeyConditions={"pk": equal, "sk": below}) == ("p", None)
    assert start(KeyConditions={"pk": equal, "sk": between}, ScanIndexForward=False) == ("p", "b")


def test_scans_start_at_their_segment_or_start_key() -> None:
    heat = Heat()
    heat.create_table(TABLE, 0.0)
    table = heat.table("events")
    assert scan_start({}, table, None) == 0
    assert scan_start({"Segment": 3, "TotalSegments": 4}, table, None) == HASHES // 4 * 3
    key = {"pk": {"S": "p"}, "sk": {"S": "m"}}
    assert (
        scan_start({"ExclusiveStartKey": key, "Segment": 3, "TotalSegments": 4}, table, None)
        == position("p")[0]
    )


def test_a_scan_is_charged_to_the_partition_where_its_page_starts() -> None:
    heat = Heat()
    heat.create_table(TABLE, 0.0)
    scan = {"TableName": "events", "Segment": 3, "TotalSegments": 4}
    admission = heat.admit("Scan", scan, 0.0)
    heat.settle(
        admission, {"Items": [{"pk": {"S": "x" * 9_000}}], "Count": 1, "ScannedCount": 1}, 0.0
    )
    assert [part.consumed_read for part in heat.resource("events").partitions] == [0, 0, 0, 1.5]
