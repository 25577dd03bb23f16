"""The three tables as the stacks describe them, and one series with an event."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from spillway import Event, EventStore, keys

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["EVENTS", "LAYOUTS", "SERIES", "USAGE", "fill"]

EVENTS: Final = "cold-events"
LAYOUTS: Final = "cold-layouts"
USAGE: Final = "cold-usage"
SERIES: Final = "ORD"

_NUMBERS: Final = {keys.USAGE_SORT_KEY}


def fill(client: "DynamoDBClient", now: datetime) -> None:
    """Create the tables and write an event of a minute ago."""
    index = (keys.INDEX_NAME, keys.INDEX_PARTITION_KEY, keys.SORT_KEY)
    _create(client, EVENTS, (keys.PARTITION_KEY, keys.SORT_KEY), index)
    index = (keys.LAYOUT_INDEX_NAME, keys.LAYOUT_INDEX_KEY, keys.LAYOUT_KEY)
    _create(client, LAYOUTS, (keys.LAYOUT_KEY,), index)
    _create(client, USAGE, (keys.USAGE_KEY, keys.USAGE_SORT_KEY), None)
    store = EventStore(client, table=EVENTS, layouts=LAYOUTS)
    event = Event(series=SERIES, time=now.astimezone(UTC) - timedelta(minutes=1), payload={"n": 1})
    if store.write([event]).accepted != 1:
        raise RuntimeError("the event was not accepted")


def _create(
    client: "DynamoDBClient",
    table: str,
    key: tuple[str, ...],
    index: tuple[str, str, str] | None,
) -> None:
    names = {*key}
    further: dict[str, Any] = {}
    if index is not None:
        name, *index_key = index
        names |= {*index_key}
        listed = name == keys.LAYOUT_INDEX_NAME
        projection = {"ProjectionType": "KEYS_ONLY" if listed else "ALL"}
        schema = _schema(*index_key)
        further["GlobalSecondaryIndexes"] = [
            {"IndexName": name, "KeySchema": schema, "Projection": projection}
        ]
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": each, "AttributeType": "N" if each in _NUMBERS else "S"}
            for each in sorted(names)
        ],
        KeySchema=_schema(*key),
        **further,
    )


def _schema(*names: str) -> Any:
    kinds = ("HASH", "RANGE")
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, kinds, strict=False)
    ]
