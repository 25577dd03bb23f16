from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway import DaxCall, OutcomeUnknownError, RefusedError, UnreachableError, keys
from spillway.dynamodb.port import Call, Item
from tests.dynamodb.dax.world import EVENTS, LAYOUTS, World, dax_session, world_on
from tests.support.strategies import event_ids, series_names, sharding_keys, stored_times

pytestmark = pytest.mark.engine

CONDITION = "#p = :p AND #s BETWEEN :low AND :high"


@pytest.fixture(scope="module")
def lasting(tables: Call) -> Iterator[World]:
    with world_on(tables) as made:
        yield made


@pytest.fixture(scope="module")
def way(lasting: World) -> DaxCall:
    return lasting.way()


_numbers = st.integers(-(10**37), 10**37).map(str) | st.decimals(
    allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20
).map(lambda number: format(number, "f"))
_values = st.recursive(
    st.fixed_dictionaries({"N": _numbers})
    | st.fixed_dictionaries({"S": st.text(st.characters(exclude_categories=["Cs"]), max_size=9)})
    | st.fixed_dictionaries({"BOOL": st.booleans()})
    | st.just({"NULL": True}),
    lambda inner: (
        st.fixed_dictionaries({"L": st.lists(inner, max_size=3)})
        | st.fixed_dictionaries({"M": st.dictionaries(st.text("abcé", min_size=1), inner, max_size=3)})
    ),
    max_leaves=5,
)  # fmt: skip


def _item(series: str, sort_key: str, more: Item, names: set[str]) -> Item:
    return {
        keys.PARTITION_KEY: {"S": keys.partition_key(series, 0)},
        keys.SORT_KEY: {"S": sort_key},
        **more,
        **({"names": {"SS": sorted(names)}} if names else {}),
    }


_sort_keys = st.builds(keys.sort_key, stored_times, sharding_keys, event_ids)
_items = st.builds(
    _item,
    series_names,
    _sort_keys.filter(lambda key: len(key.encode()) <= 1_024),
    st.dictionaries(st.sampled_from("abcde"), _values),
    st.sets(st.text("xyz", min_size=1)),
)


# The client's threads wait for random times, maybe while hypothesis draws.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@given(item=_items)
def test_an_item_comes_as_dynamodb_gives_it(lasting: World, way: DaxCall, item: Item) -> None:
    key = {name: item[name] for name in (keys.PARTITION_KEY, keys.SORT_KEY)}
    lasting.engine("PutItem", {"TableName": EVENTS, "Item": item})
    lasting.clock.sleep(300)  # for DAX to forget
    request = {"TableName": EVENTS, "Key": key}
    assert _ordered(way("GetItem", request)) == _ordered(lasting.engine("GetItem", request))


def _ordered(response: dict[str, Any]) -> dict[str, Any]:
    response["Item"].get("names", {}).get("SS", []).sort()
    return response


def test_what_is_not_there_comes_as_dynamodb_says_it(lasting: World, way: DaxCall) -> None:
    request: dict[str, Any] = {"TableName": LAYOUTS, "Key": {keys.LAYOUT_KEY: {"S": "none"}}}
    assert way("GetItem", request) == lasting.engine("GetItem", request) == {}
    request = _request("none")
    assert way("Query", request) == lasting.engine("Query", request)
    assert way("Query", request)["Items"] == []


def _request(partition: str, index: str | None = None, **more: Any) -> dict[str, Any]:
    name = keys.PARTITION_KEY if index is None else keys.INDEX_PARTITION_KEY
    request: dict[str, Any] = {
        "TableName": EVENTS,
        "KeyConditionExpression": CONDITION,
        "ExpressionAttributeNames": {"#p": name, "#s": keys.SORT_KEY},
        "ExpressionAttributeValues": {
            ":p": {"S": partition},
            ":low": {"S": "2\0"},
            ":high": {"S": "2~"},
        },
        **more,
    }
    return request if index is None else {**request, "IndexName": index}


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("index", [None, keys.INDEX_NAME])
def test_a_query_is_paged_as_dynamodb_pages_it(
    lasting: World, way: DaxCall, index: str | None, forward: bool
) -> None:
    for n in range(10):
        item = {
            keys.PARTITION_KEY: {"S": "paged#0"},
            keys.SORT_KEY: {"S": f"2#é\0{n}"},
            keys.INDEX_PARTITION_KEY: {"S": "paged#2#0"},
            keys.EXPIRES: {"N": "1780000000"},
        }
        lasting.engine("PutItem", {"TableName": EVENTS, "Item": item})
    partition = "paged#0" if index is None else "paged#2#0"
    request = _request(partition, index, Limit=3, ScanIndexForward=forward)
    count = 0
    while True:
        page = way("Query", request)
        assert page == lasting.engine("Query", request)
        count += len(page["Items"])
        if "LastEvaluatedKey" not in page:
            break
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    assert count == 10


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("PutItem", {"TableName": EVENTS, "Item": {}}),
        ("UpdateItem", {"TableName": LAYOUTS, "Key": {}}),
        ("BatchWriteItem", {"RequestItems": {}}),
        ("GetItem", {"TableName": LAYOUTS, "Key": {}, "ConsistentRead": True}),
        ("Query", {"TableName": EVENTS, "ConsistentRead": True}),
    ],
)
def test_what_must_go_to_dynamodb_is_refused_without_a_connection(
    world: World, operation: str, request_: dict[str, Any]
) -> None:
    with pytest.raises(RefusedError, match=f"{operation} must go to DynamoDB"):
        world.way()(operation, request_)
    assert world.dax.connections == 0


def test_the_request_stays_as_it_was(lasting: World, way: DaxCall) -> None:
    del lasting
    request = _request("none", Limit=3)
    before = repr(request)
    way("Query", request)
    assert repr(request) == before


def test_an_error_of_the_cluster_carries_its_code(world: World) -> None:
    way = world.way()
    world.dax.node.error = "ThrottlingException"
    with pytest.raises(OutcomeUnknownError) as caught:
        way("Query", _request("any"))
    assert caught.value.code == "ThrottlingException"
    assert world.dax.node.calls["Query"] == 1


def test_a_cluster_that_comes_later_is_found(world: World) -> None:
    way = world.way()
    world.dax.kill()
    with pytest.raises(UnreachableError):
        way("Query", _request("any"))
    world.dax.start()
    assert way("Query", _request("any"))["Items"] == []


def test_a_closed_way_connects_again(world: World) -> None:
    way = world.way()
    way.close()
    assert way("Query", _request("any"))["Items"] == []
    way.close()
    connections = world.dax.connections
    assert way("Query", _request("any"))["Items"] == []
    assert world.dax.connections > connections


def test_without_credentials_there_is_no_way(world: World) -> None:
    session = dax_session()
    session.set_credentials("", "")
    way = DaxCall(world.dax.url, session)
    with pytest.raises((UnreachableError, OutcomeUnknownError)):
        way("Query", _request("any"))
    way.close()
