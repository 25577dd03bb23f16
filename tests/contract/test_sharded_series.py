"""The list of sharded series on every engine, and what changes of layouts cost it."""

from collections.abc import Mapping
from typing import Any

import pytest

from spillway import Settings
from spillway.dynamodb.boto import call_through
from spillway.dynamodb.port import Call
from spillway.layouts.repository import ShardedSeries
from spillway.layouts.source import LayoutSource
from tests.contract.conftest import Tables
from tests.support.engine_tables import create_tables
from tests.support.fakes import FakeClock, fake_runtime, undated


def test_sharded_series_are_listed_in_order_with_their_layouts(tables: Tables) -> None:
    store = tables.store()
    counts = {f"series-{n:03}": 2 ** (n % 4) for n in range(160)}
    for series, shards in counts.items():
        store.set_layout(series, shards=shards)
    listing = ShardedSeries(tables.call, tables.layouts, fake_runtime(tables.clock))
    found, after = listing.page(None, 110)
    rest, end = listing.page(after, 110)
    assert (len(found), end) == (110, None)
    listed = {each.series: each.current.shards for each in (*found, *rest)}
    sharded = [(series, shards) for series, shards in counts.items() if shards > 1]
    assert list(listed.items()) == sharded


class Metered:
    """A port that adds up the units that writes take of indexes."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.index_units = 0.0

    def __call__(self, operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        if operation != "UpdateItem":
            return self._call(operation, request)
        answer = self._call(operation, {**request, "ReturnConsumedCapacity": "INDEXES"})
        indexes = answer["ConsumedCapacity"].get("GlobalSecondaryIndexes", {}).values()
        self.index_units += sum(each["CapacityUnits"] for each in indexes)
        return answer


@pytest.mark.engine
def test_only_the_first_growth_and_the_last_shrinking_of_a_series_write_to_the_index(
    client: Any,
) -> None:
    _, table = create_tables(client, "metered")
    clock = FakeClock()
    port = Metered(undated(call_through(client)))
    layouts = LayoutSource(port, table, Settings(), fake_runtime(clock))
    spent = []
    for shards in (1, 2, 4, 256, 8, 1, 1):
        clock.seconds += 3_600
        before = port.index_units
        layouts.set_counts("ORD", shards=shards, index_shards=shards)
        spent.append(port.index_units - before)
    assert spent == [0, 1, 0, 0, 0, 1, 0]
