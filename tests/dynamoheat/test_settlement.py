from typing import Any

import pytest

from dynamoheat import Admission, Heat, MalformedRequestError, ModelParameters, ThroughputSettings
from tests.dynamoheat.traffic import INDEX, TABLE, batch, get, item, model, put, settings

WIDE = settings(index=ThroughputSettings(), local=True)


def units(admission: Admission) -> dict[str, float]:
    (shape,) = admission.consumed_capacity("INDEXES")
    found = {"table": shape["Table"]["CapacityUnits"], "sum": shape["CapacityUnits"]}
    for group in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        for name, part in shape.get(group, {}).items():
            found[name] = part["CapacityUnits"]
    return found


def done(heat: Heat, operation: str, request: dict[str, Any], answer: dict[str, Any]) -> Admission:
    admission = heat.admit(operation, request, 0.0)
    heat.settle(admission, answer, 0.0)
    return admission


def test_a_put_over_a_cached_item_costs_the_larger_image_and_the_change_of_its_entry() -> None:
    heat = model(WIDE)
    assert units(done(heat, "PutItem", put(item("p", kind="a", pad=3000)), {})) == {
        "table": 3, INDEX: 3, "sum": 6,
    }  # fmt: skip
    assert units(done(heat, "PutItem", put(item("p", kind="a", pad=3000)), {})) == {
        "table": 3,
        "sum": 3,
    }
    assert units(done(heat, "PutItem", put(item("p", kind="b", pad=10)), {})) == {
        "table": 3, INDEX: 4, "sum": 7,
    }  # fmt: skip
    assert units(done(heat, "PutItem", put(item("p")), {})) == {"table": 1, INDEX: 1, "sum": 2}


def test_a_local_index_charges_the_tables_partition_under_its_own_name() -> None:
    heat = model(WIDE)
    sized = item("p") | {"size": {"S": "large"}}
    assert units(done(heat, "PutItem", put(sized), {})) == {"table": 1, "by-size": 1, "sum": 2}
    assert heat.resource(TABLE).meter.total.consumed_write == 2
    assert sum(part.write_units for part in heat.resource(TABLE).partitions) == 2


def test_an_old_image_from_the_engine_corrects_a_guess_and_moves_the_tokens() -> None:
    heat = model(WIDE)
    request = put(item("p", kind="b")) | {"ReturnValues": "ALL_OLD"}
    admission = heat.admit("PutItem", request, 0.0)
    assert units(admission) == {"table": 1, INDEX: 1, "sum": 2}
    heat.settle(admission, {"Attributes": item("p", kind="a", pad=2000)}, 0.0)
    assert units(admission) == {"table": 2, INDEX: 3, "sum": 5}
    assert heat.resource(TABLE).meter.total.consumed_write == 2
    assert heat.resource(TABLE).meter.total.writes == 1
    assert heat.resource(TABLE, INDEX).meter.total.consumed_write == 3


def test_an_update_is_charged_by_the_image_it_left() -> None:
    heat = model(WIDE)
    done(heat, "PutItem", put(item("p", kind="a")), {})
    update = {"TableName": TABLE, "Key": item("p"), "ReturnValues": "ALL_NEW"}
    admission = done(heat, "UpdateItem", update, {"Attributes": item("p", kind="b", pad=1500)})
    assert units(admission) == {"table": 2, INDEX: 3, "sum": 5}


def test_a_delete_costs_what_was_there_and_at_min_one() -> None:
    heat = model(WIDE)
    done(heat, "PutItem", put(item("p", kind="a", pad=3000)), {})
    delete = {"TableName": TABLE, "Key": item("p")}
    assert units(done(heat, "DeleteItem", delete, {})) == {"table": 3, INDEX: 3, "sum": 6}
    assert units(done(heat, "DeleteItem", delete, {})) == {"table": 1, "sum": 1}


def test_a_failed_condition_costs_the_larger_item_on_the_table_alone() -> None:
    heat = model(WIDE)
    done(heat, "PutItem", put(item("p", kind="a", pad=3000)), {})
    admission = heat.admit("PutItem", put(item("p", kind="b", pad=100)), 0.0)
    heat.fail(admission, {}, 0.0)
    assert units(admission) == {"table": 3, "sum": 3}
    admission = heat.admit("PutItem", put(item("q", kind="b", pad=100)), 0.0)
    heat.fail(admission, {"Item": item("q", pad=5000)}, 0.0)
    assert units(admission) == {"table": 5, "sum": 5}


def test_a_cancelled_transaction_still_costs_the_table_but_not_its_indexes() -> None:
    heat = model(WIDE)
    request = {"TransactItems": [{"Put": put(item("p", kind="a"))}]}
    admission = heat.admit("TransactWriteItems", request, 0.0)
    assert units(admission) == {"table": 2, INDEX: 1, "sum": 3}
    heat.fail(admission, {}, 0.0)
    assert units(admission) == {"table": 2, "sum": 2}
    assert heat.resource(TABLE, INDEX).meter.total.consumed_write == 0


def test_the_engines_report_stands_in_for_images_nobody_saw() -> None:
    heat = model(WIDE)
    report = {
        "ConsumedCapacity": [
            {
                "TableName": TABLE,
                "CapacityUnits": 9.0,
                "Table": {"CapacityUnits": 4.0},
                "GlobalSecondaryIndexes": {INDEX: {"CapacityUnits": 3.0}},
                "LocalSecondaryIndexes": {"by-size": {"CapacityUnits": 2.0}},
            }
        ]
    }
    request = {"RequestItems": {TABLE: [{"DeleteRequest": {"Key": item("p")}}]}}
    admission = done(heat, "BatchWriteItem", request, report)
    assert units(admission) == {"table": 4, INDEX: 3, "by-size": 2, "sum": 9}
    lower = {
        "ConsumedCapacity": {
            "TableName": TABLE,
            "CapacityUnits": 1.0,
            "Table": {"CapacityUnits": 1.0},
        }
    }
    admission = done(heat, "PutItem", put(item("q", pad=3000)), lower)
    assert units(admission) == {"table": 3, "sum": 3}  # never below the image that was sent


def test_reads_are_charged_in_full_once_they_are_known_and_leave_a_debt() -> None:
    heat = model(settings(), ModelParameters(partition_rcu=50))
    admission = heat.admit("GetItem", get("p"), 0.0)
    assert admission.units == 1
    heat.settle(admission, {"Item": item("p", pad=399_000)}, 0.0)
    assert admission.units == 98
    assert heat.admit("GetItem", get("p"), 0.9).is_rejected
    assert not heat.admit("GetItem", get("p"), 1.1).throttles


@pytest.mark.parametrize(
    ("operation", "request_", "answer", "expected"),
    [
        ("GetItem", get("p", consistent=False), {}, 0.5),
        ("GetItem", get("p"), {"Item": item("p", pad=8100)}, 2),
        (
            "BatchGetItem",
            {
                "RequestItems": {
                    TABLE: {"Keys": [item("p"), item("q"), item("r")], "ConsistentRead": True}
                }
            },
            {"Responses": {TABLE: [item("q", pad=6600), item("p", pad=1500)]}},
            1 + 2 + 1,
        ),
        (
            "TransactGetItems",
            {"TransactItems": [{"Get": {"TableName": TABLE, "Key": item(k)}} for k in "pq"]},
            {"Responses": [{"Item": item("p", pad=5000)}, {}]},
            4 + 2,
        ),
        (
            "Query",
            {
                "TableName": TABLE,
                "KeyConditionExpression": "pk = :p",
                "ExpressionAttributeValues": {":p": {"S": "p"}},
                "ConsistentRead": True,
            },
            {
                "Items": [item("p", str(n), pad=4170) for n in range(10)],
                "Count": 10,
                "ScannedCount": 10,
            },
            11,
        ),
        ("Scan", {"TableName": TABLE}, {"Items": [], "Count": 0, "ScannedCount": 0}, 0.5),
        (
            "Query",
            {
                "TableName": TABLE,
                "KeyConditionExpression": "pk = :p",
                "ExpressionAttributeValues": {":p": {"S": "p"}},
                "Select": "COUNT",
            },
            {
                "Count": 90,
                "ScannedCount": 90,
                "ConsumedCapacity": {"TableName": TABLE, "CapacityUnits": 17.5},
            },
            17.5,
        ),
    ],
)  # fmt: skip
def test_answers_are_measured(
    operation: str, request_: dict[str, Any], answer: dict[str, Any], expected: float
) -> None:
    heat = model(settings())
    admission = done(heat, operation, request_, answer)
    assert admission.units == expected
    assert heat.resource(TABLE).meter.total.consumed_read == expected


def test_memory_is_bounded_and_off_at_zero() -> None:
    for least, known in ((100, True), (0, False)):
        heat = model(settings(), ModelParameters(image_cache_items=least))
        for n in range(1_000):
            done(heat, "PutItem", put(item("p", f"{n:04}")), {})
        remembered = heat.table(TABLE).image_cache
        assert (remembered.get(("p", "0999")) is not None) is known
        assert remembered.get(("p", "0700")) is None
        assert len(remembered) <= 2 * least


def test_settling_after_a_split_charges_the_child_that_has_the_key() -> None:
    heat = model(settings())
    partitions = heat.resource(TABLE).partitions
    admission = heat.admit("GetItem", get("p"), 0.0)
    parent = partitions.find("p")
    cut = partitions.middle(parent)
    assert cut is not None
    partitions.split(parent, cut, 0.0)
    heat.settle(admission, {"Item": item("p", pad=40_000)}, 0.0)
    assert partitions.find("p").consumed_read == 9  # ten, less the one the parent was charged


def test_a_batch_is_settled_by_what_was_sent_of_it() -> None:
    heat = model(settings(), ModelParameters(partition_wcu=2, on_demand_partitions=1))
    admission = heat.admit("BatchWriteItem", batch(*(item("p", str(n)) for n in range(5))), 0.0)
    assert [verdict is None for verdict in admission.verdicts] == [True, True, False, False, False]
    assert admission.forwarded_request == batch(item("p", "0"), item("p", "1"))
    assert admission.unprocessed == batch(*(item("p", str(n)) for n in (2, 3, 4)))["RequestItems"]
    heat.settle(admission, {}, 0.0)
    known = heat.table(TABLE).image_cache
    assert known.get(("p", "1")) == item("p", "1")
    assert known.get(("p", "2")) is None
    assert admission.units == 2


def test_unprocessed_keys_keep_their_tables_settings() -> None:
    heat = model(settings(), ModelParameters(partition_rcu=1, on_demand_partitions=1))
    wanted = {"Keys": [item("p"), item("q")], "ConsistentRead": True}
    admission = heat.admit("BatchGetItem", {"RequestItems": {TABLE: wanted}}, 0.0)
    assert admission.forwarded_request == {"RequestItems": {TABLE: wanted | {"Keys": [item("p")]}}}
    assert admission.unprocessed == {TABLE: wanted | {"Keys": [item("q")]}}


def test_an_answer_of_the_wrong_shape_is_said_to_be_so_and_what_was_taken_stands() -> None:
    heat = model(settings())
    admission = heat.admit("GetItem", get("p"), 0.0)
    with pytest.raises(MalformedRequestError):
        heat.settle(admission, {"Item": {"pk": 7}}, 0.0)
    assert heat.resource(TABLE).meter.total.consumed_read == 1
