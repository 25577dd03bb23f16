"""The list of sharded series: keys from the sparse index, layouts from the table."""

from collections.abc import Mapping
from typing import Any

import pytest

from spillway import keys
from spillway.dynamodb.port import RefusedError, ThrottledError
from spillway.layouts.model import Layout
from spillway.layouts.repository import ShardedSeries
from tests.control.world import World
from tests.support.fakes import fake_runtime
from tests.support.memory_table import LAYOUTS


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def listing(world: World) -> ShardedSeries:
    return ShardedSeries(world, LAYOUTS, fake_runtime(world.clock))


def _all(listing: ShardedSeries, limit: int) -> list[Layout]:
    found, after = listing.page(None, limit)
    layouts = list(found)
    while after is not None:
        found, after = listing.page(after, limit)
        layouts += found
    return layouts


def _requests(world: World) -> list[Any]:
    return world.tables.requests_of("BatchGetItem")


@pytest.mark.parametrize("limit", [1, 7, 100, 250, 1_000])
def test_all_sharded_series_are_listed_whole_and_in_order(
    world: World, listing: ShardedSeries, limit: int
) -> None:
    names = [f"series-{n:03}" for n in range(0, 250, 1 if limit > 1 else 50)]
    for name in names[::-1]:
        world.has(name, (1, 1), (4, 2))
    world.has("single", (1, 1))
    assert _all(listing, limit) == [world.layout(name) for name in names]
    for request in _requests(world):
        (wanted,) = request["RequestItems"].values()
        assert 1 <= len(wanted["Keys"]) <= 100
        assert not wanted.get("ConsistentRead")


def test_an_empty_list_costs_one_query(world: World, listing: ShardedSeries) -> None:
    world.has("single", (1, 1))
    assert _all(listing, 50) == []
    assert _requests(world) == []


def test_a_layout_that_is_gone_or_damaged_is_left_out(
    world: World, listing: ShardedSeries, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        world.has(name, (2, 2))
    del world.tables.items[LAYOUTS]["b",]["epochs"]
    listed = world.tables("Query", _query())
    monkeypatch.setattr(world, "_query", lambda _: listed)
    del world.tables.items[LAYOUTS]["c",]
    assert [each.series for each in _all(listing, 50)] == ["a"]


def _query() -> dict[str, Any]:
    return {
        "TableName": LAYOUTS,
        "IndexName": keys.LAYOUT_INDEX_NAME,
        "KeyConditionExpression": "#sharded = :yes",
        "ExpressionAttributeNames": {"#sharded": keys.LAYOUT_INDEX_KEY},
        "ExpressionAttributeValues": {":yes": {"S": "yes"}},
        "Limit": 50,
    }


class Partial:
    """A port that processes at most so many keys of a BatchGetItem; none at all throttles."""

    def __init__(self, world: World, *processed: int) -> None:
        self._world = world
        self._processed = iter(processed)

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        if operation != "BatchGetItem":
            return self._world(operation, request)
        most = next(self._processed, 0)
        wanted = request["RequestItems"][LAYOUTS]["Keys"]
        if most == 0:
            raise ThrottledError("ProvisionedThroughputExceededException", "")
        taken, left = wanted[:most], wanted[most:]
        answer = self._world(operation, {"RequestItems": {LAYOUTS: {"Keys": taken}}})
        return {**answer, "UnprocessedKeys": {LAYOUTS: {"Keys": left}} if left else {}}


def test_keys_that_were_not_processed_are_asked_for_again_after_a_wait(world: World) -> None:
    for n in range(120):
        world.has(f"series-{n:03}", (2, 2))
    port = Partial(world, 60, 0, 30, 10, 20)
    listing = ShardedSeries(port, LAYOUTS, fake_runtime(world.clock))
    page, after = listing.page(None, 120)
    assert [each.series for each in page] == [f"series-{n:03}" for n in range(120)]
    assert after == "series-119"
    asked = [len(each["RequestItems"][LAYOUTS]["Keys"]) for each in _requests(world)]
    assert asked == [60, 30, 10, 20]  # each key once
    assert world.clock.naps == pytest.approx([0.05, 0.1, 0.2])


def test_a_table_that_never_stops_throttling_is_given_up_after_seconds(world: World) -> None:
    world.has("a", (2, 2))
    began = world.now
    listing = ShardedSeries(Partial(world), LAYOUTS, fake_runtime(world.clock))
    with pytest.raises(ThrottledError):
        listing.page(None, 50)
    assert 2 < world.now - began <= 10


def test_what_is_refused_is_not_asked_again(world: World) -> None:
    world.has("a", (2, 2))

    def refuse(operation: str, _: object) -> None:
        if operation == "BatchGetItem":
            raise RefusedError("AccessDeniedException", "")

    world.before = refuse
    with pytest.raises(RefusedError):
        ShardedSeries(world, LAYOUTS, fake_runtime(world.clock)).page(None, 50)
    assert world.clock.naps == []
