"""The model's capacity units against the engine's, on random items and operations.

Left out, because the engine is known to be off: numbers whose digits don't fill pairs (`120`,
`0.012`: one byte too small there), failed conditions (nothing is reported). Updates within
transactions are not compared: neither image is shown to the model.
"""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoheat import Heat, TableSettings
from local.engine import EngineProcess

pytestmark = pytest.mark.engine

NAMES = count()
KEYS = st.sampled_from(["a", "b", "ü", "Ω"])
SORTS = st.integers(1, 4).map(str)
NUMBERS = st.integers(-9_999, 9_999).filter(lambda n: n % 10 != 0).map(str)
STRINGS = st.one_of(st.text(max_size=12), st.integers(0, 5_000).map(lambda n: "x" * n))
SCALARS = st.one_of(
    STRINGS.map(lambda s: {"S": s}),
    NUMBERS.map(lambda n: {"N": n}),
    st.booleans().map(lambda b: {"BOOL": b}),
    st.just({"NULL": True}),
    st.sampled_from([{"B": "AAEC"}, {"B": "AA=="}, {"B": "AAE="}]),
    st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=4, unique=True).map(
        lambda s: {"SS": s}
    ),
    st.lists(NUMBERS, min_size=1, max_size=4, unique=True).map(lambda n: {"NS": n}),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda values: {"L": values}),
        st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=4).map(lambda v: {"M": v}),
    ),
    max_leaves=6,
)
TABLE = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": kind}
        for name, kind in (("pk", "S"), ("sk", "N"), ("g", "S"), ("h", "S"), ("l", "S"))
    ],
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "some",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["p"]},
        },
        {
            "IndexName": "all",
            "KeySchema": [
                {"AttributeName": "h", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        },
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "local",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "l", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


@st.composite
def items(draw: st.DrawFn) -> dict[str, Any]:
    attributes = {
        "pk": {"S": draw(KEYS)},
        "sk": {"N": draw(SORTS)},
        "g": draw(st.none() | st.sampled_from([{"S": "g1"}, {"S": "g2"}])),
        "h": draw(st.none() | st.sampled_from([{"S": "h1"}, {"S": "h2"}])),
        "l": draw(st.none() | st.sampled_from([{"S": "l1"}, {"S": "l2"}])),
        "p": draw(st.none() | VALUES),
        "größe": draw(st.none() | VALUES),
    }
    return {name: value for name, value in attributes.items() if value is not None}


KEY = st.builds(lambda pk, sk: {"pk": {"S": pk}, "sk": {"N": sk}}, KEYS, SORTS)


def unique(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({(one["pk"]["S"], one["sk"]["N"]): one for one in entries}.values())


def batch_write(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "RequestItems": {
            "T": [
                {"PutRequest": {"Item": one}} if len(one) > 2 else {"DeleteRequest": {"Key": one}}
                for one in unique(entries)
            ]
        }
    }


def transact_write(entries: list[dict[str, Any]]) -> dict[str, Any]:
    exists = "attribute_exists(pk) OR attribute_not_exists(pk)"
    kinds = ("ConditionCheck", "Delete")
    return {
        "TransactItems": [
            {"Put": {"TableName": "T", "Item": one}}
            if len(one) > 2
            else {kinds[at % 2]: {"TableName": "T", "Key": one, "ConditionExpression": exists}}
            for at, one in enumerate(unique(entries))
        ]
    }


def query(index: str | None, value: str, consistent: bool) -> dict[str, Any]:
    name = {None: "pk", "local": "pk", "some": "g", "all": "h"}[index]
    wanted = {
        "TableName": "T",
        "KeyConditionExpression": "#k = :v",
        "ExpressionAttributeNames": {"#k": name},
        "ExpressionAttributeValues": {":v": {"S": value}},
    }
    if index is not None:
        return wanted | {"IndexName": index}
    return wanted | {"ConsistentRead": consistent}


def update(key: dict[str, Any], name: str, value: dict[str, Any] | None) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "TableName": "T",
        "Key": key,
        "ReturnValues": "ALL_NEW",
        "ExpressionAttributeNames": {"#n": name},
    }
    if value is None:
        return wanted | {"UpdateExpression": "REMOVE #n"}
    return wanted | {"UpdateExpression": "SET #n = :v", "ExpressionAttributeValues": {":v": value}}


ENTRIES = st.lists(items() | KEY, min_size=1, max_size=5)
UPDATES = st.one_of(
    st.builds(update, KEY, st.sampled_from(["p", "größe"]), st.none() | VALUES),
    st.builds(
        update, KEY, st.sampled_from("gh"), st.sampled_from([None, {"S": "g1"}, {"S": "h1"}])
    ),
)
CALLS = st.one_of(
    st.tuples(st.just("PutItem"), items().map(lambda one: {"TableName": "T", "Item": one})),
    st.tuples(st.just("UpdateItem"), UPDATES),
    st.tuples(st.just("DeleteItem"), KEY.map(lambda key: {"TableName": "T", "Key": key})),
    st.tuples(st.just("BatchWriteItem"), ENTRIES.map(batch_write)),
    st.tuples(st.just("TransactWriteItems"), ENTRIES.map(transact_write)),
    st.tuples(
        st.just("GetItem"),
        st.builds(lambda k, c: {"TableName": "T", "Key": k, "ConsistentRead": c},
            KEY, st.booleans(),),
    ),
    st.tuples(
        st.just("BatchGetItem"),
        st.lists(KEY, min_size=1).map(lambda keys: {"RequestItems": {"T": {"Keys": unique(keys)}}}),
    ),
    st.tuples(
        st.just("TransactGetItems"),
        st.lists(KEY, min_size=1, max_size=5).map(
            lambda keys: {
                "TransactItems": [{"Get": {"TableName": "T", "Key": k}} for k in unique(keys)]
            }
        ),
    ),
    st.tuples(
        st.just("Query"),
        st.builds(
            query,
            st.sampled_from([None, "some", "all", "local"]),
            st.sampled_from(["a", "b", "g1", "h1"]),
            st.booleans(),
        ),
    ),
    st.tuples(
        st.just("Scan"),
        st.builds(lambda c: {"TableName": "T", "ConsistentRead": c}, st.booleans()),
    ),
)  # fmt: skip


class Wire:
    """The engine's HTTP, without a client that would interpret anything."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = HTTPConnection(str(parts.hostname), parts.port, timeout=100)

    def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        self._connection.request(
            "POST",
            "/",
            json.dumps(request),
            {
                "X-Amz-Target": f"DynamoDB_20120810.{operation}",
                "Content-Type": "application/x-amz-json-1.0",
                "Authorization": "AWS4-HMAC-SHA256"
                " Credential=a/20200101/us-east-1/dynamodb/aws4_request,"
                " SignedHeaders=host;x-amz-date, Signature=0",
                "X-Amz-Date": "20200101T000000Z",
            },
        )
        response = self._connection.getresponse()
        body: dict[str, Any] = json.loads(response.read())
        assert response.status == 200, (operation, request, body)
        return body

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def wire(engine: EngineProcess) -> Iterator[Wire]:
    wire = Wire(engine.url)
    yield wire
    wire.close()


def named(request: dict[str, Any], name: str) -> dict[str, Any]:
    """The same request for a table of another name than T."""
    renamed: dict[str, Any] = json.loads(
        json.dumps(request).replace('"TableName": "T"', f'"TableName": "{name}"')
    )
    if "RequestItems" in renamed:
        renamed["RequestItems"] = {name: renamed["RequestItems"]["T"]}
    return renamed


@given(calls=st.lists(CALLS, min_size=1, max_size=12))
def test_capacity_units_equal_the_engines_on_random_items_and_operations(
    wire: Wire, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    name = f"units-{next(NAMES)}"
    described = TABLE | {"TableName": name}
    wire.call("CreateTable", described)
    heat = Heat()
    heat.create_table(TableSettings.from_description(described), 0.0)
    for operation, asked in calls:
        request = named(asked, name)
        admission = heat.admit(operation, request, 0.0)
        answer = wire.call(operation, request | {"ReturnConsumedCapacity": "INDEXES"})
        reported = answer.pop("ConsumedCapacity")
        heat.settle(admission, answer, 0.0)
        ours: Any = admission.consumed_capacity("INDEXES")
        assert ours == (reported if isinstance(reported, list) else [reported]), (
            operation,
            request,
        )
    wire.call("DeleteTable", {"TableName": name})


def test_the_engine_still_counts_numbers_of_unfilled_pairs_a_byte_short(wire: Wire) -> None:
    name = "units-numbers"
    described = TABLE | {"TableName": name}
    wire.call("CreateTable", described)
    heat = Heat()
    heat.create_table(TableSettings.from_description(described), 0.0)
    for number in ("120", "0.012"):
        one = {"pk": {"S": "a"}, "sk": {"N": "1"}, "n": {"N": number}, "x": {"S": ""}}
        pad = (
            1024 + 1 - (2 + 1 + 2 + 2 + 1 + 3 + 1)
        )  # a byte above a kilobyte, by the model's count
        request = {"TableName": name, "Item": one | {"x": {"S": "x" * pad}}}
        admission = heat.admit("PutItem", request, 0.0)
        answer = wire.call("PutItem", request | {"ReturnConsumedCapacity": "TOTAL"})
        assert admission.units == 2
        assert answer["ConsumedCapacity"]["CapacityUnits"] == 1
