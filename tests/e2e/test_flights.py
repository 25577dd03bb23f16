"""Real flights through the deployed API: every one comes back once, in order, however it is read."""

from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pytest

from local.demo.client import Client, ClientEvent, Order, Source
from local.demo.flights import FLIGHTS_FILE, event_batches, read_flights
from local.demo.load import load_batches, run_concurrently
from local.demo.verify import compare
from spillway import keys
from tests.e2e.calls import request, with_client

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("deployed")]

COUNT = 4_000  # six hours of departures, ten of them from ANC
ALL = "all-airports"  # one more series that holds every flight: several pages of 1,000


class Stored(NamedTuple):
    sequences: dict[str, list[ClientEvent]]
    within: tuple[str, str]
    after_first_load: Counter[str]
    after_second_load: Counter[str]


def batches(size: int) -> Iterator[list[ClientEvent]]:
    for batch in event_batches(FLIGHTS_FILE, COUNT, size // 2):
        yield batch + [{**event, "series": ALL} for event in batch]


def ignore(_: int) -> None:
    pass


def counts(dynamodb: "DynamoDBClient") -> Counter[str]:
    """Count the items of the flights' series, whatever shards they are in."""
    names = dynamodb.list_tables()["TableNames"]
    (table,) = [
        name
        for name in names
        if any(
            index["IndexName"] == keys.INDEX_NAME
            for index in dynamodb.describe_table(TableName=name)["Table"].get(
                "GlobalSecondaryIndexes", []
            )
        )
    ]
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=table, ProjectionExpression=keys.PARTITION_KEY, ConsistentRead=True
    )
    return Counter(
        keys.parse_partition_key(str(item[keys.PARTITION_KEY]["S"])).series
        for page in pages
        for item in page["Items"]
    )


@pytest.fixture(scope="module")
def stored(url: str, dynamodb: "DynamoDBClient") -> Stored:
    def load_all(size: int) -> None:
        with_client(
            url, lambda client: load_batches(client, batches(size), concurrency=2, on_stored=ignore)
        )

    load_all(1_000)
    first = counts(dynamodb)
    load_all(700)
    second = counts(dynamodb)
    flights = read_flights(FLIGHTS_FILE, COUNT)
    sequences = {
        origin: [flight.event() for flight in flights.of(origin)] for origin in flights.origins()
    }
    events = (event for sequence in sequences.values() for event in sequence)
    together = sorted(events, key=lambda event: (event["time"], event["id"]))
    sequences[ALL] = [{**event, "series": ALL} for event in together]
    within = (together[0]["time"], together[-1]["time"].replace(":00.000000Z", ":00.000001Z"))
    return Stored(sequences, within, first, second)


class Reading(NamedTuple):
    limit: int
    order: Order
    source: Source


async def bounded(
    pages: AsyncIterable[list[ClientEvent]], limit: int
) -> AsyncIterator[list[ClientEvent]]:
    async for page in pages:
        assert len(page) <= limit
        yield page


def check(url: str, stored: Stored, series: list[str], how: Reading) -> None:
    """Read series to their end and compare them with the file."""

    async def one(client: Client, name: str) -> None:
        expected = stored.sequences[name]
        consistent = how.source != "index"
        pages = client.pages(name, within=stored.within, consistent=consistent, **how._asdict())
        ordered = expected if how.order == "asc" else expected[::-1]
        await compare(name, ordered, bounded(pages, how.limit), ignore)

    with_client(url, lambda client: run_concurrently(series, partial(one, client), workers=2))


def test_every_event_is_stored_once(stored: Stored) -> None:
    expected = {series: len(events) for series, events in stored.sequences.items()}
    found = {series: stored.after_first_load[series] for series in expected}
    assert found == expected
    assert sum(expected.values()) == 2 * COUNT


def test_loading_the_same_file_again_changes_no_count(stored: Stored) -> None:
    assert stored.after_second_load == stored.after_first_load


@pytest.mark.parametrize("limit", [97, 1_000])
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("read", ["table", "index"])
def test_every_flight_is_read_back_once_in_order(
    url: str, stored: Stored, limit: int, order: Order, read: Source
) -> None:
    check(url, stored, list(stored.sequences), Reading(limit, order, read))


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("read", ["table", "index"])
def test_pages_of_a_single_event_make_up_the_whole(
    url: str, stored: Stored, order: Order, read: Source
) -> None:
    assert len(stored.sequences["ANC"]) > 3
    check(url, stored, ["ANC"], Reading(1, order, read))


@pytest.mark.parametrize("mode", ["shards", "blocks", "round_robin"])
def test_an_export_holds_every_flight_once(url: str, stored: Stored, mode: str) -> None:
    start, end = stored.within
    query = {"series": "ORD", "start": start, "end": end, "mode": mode}
    answer = request(url, "GET", "/v1/export", query=query)
    assert (answer.status, answer.headers["Spillway-Complete"]) == (200, "true")
    assert sorted(answer.body, key=lambda event: (event["time"], event["id"])) == stored.sequences["ORD"]  # fmt: skip


def test_aggregates_are_those_of_the_file(url: str, stored: Stored) -> None:
    start, end = stored.within
    query = {"series": "ORD", "start": start, "end": end, "interval": "1h", "field": "delay"}
    answer = request(url, "GET", "/v1/aggregates", query={**query, "functions": "count,sum,max"})
    assert (answer.status, answer.body["complete"]) == (200, True)
    delays: dict[str, list[int]] = {}
    for event in stored.sequences["ORD"]:
        delays.setdefault(event["time"][:13], []).append(event["payload"]["delay"])
    found = {row["start"][:13]: (row["count"], row["sum"], row["max"]) for row in answer.body["rows"]}  # fmt: skip
    assert found == {hour: (len(each), sum(each), max(each)) for hour, each in delays.items()}


def test_a_page_explains_what_it_was_expected_to_cost_and_did(url: str, stored: Stored) -> None:
    start, end = stored.within
    query = {"series": "ORD", "start": start, "end": end, "explain": "true"}
    explained = request(url, "GET", "/v1/events", query=query).body["explain"]
    assert explained["read_units"] > 0
    expected = explained["estimates"][explained["source"]]["read_units"]
    assert expected == pytest.approx(explained["read_units"], rel=0.25)
