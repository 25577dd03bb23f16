"""Tables and events that the measurements share."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import boto3
from botocore.config import Config

from spillway import Event, keys

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_dynamodb.type_defs import KeySchemaElementTypeDef

KeyType = Literal["HASH", "RANGE"]

__all__ = ["EVENTS", "LAYOUTS", "START", "connect", "create_tables", "flight", "native_item"]

EVENTS = "bench-events"
LAYOUTS = "bench-layouts"
START = datetime(2001, 1, 1, tzinfo=UTC)


def connect(url: str) -> "DynamoDBClient":
    """Return a client for a local engine."""
    client: DynamoDBClient = boto3.client("dynamodb", **arguments(url))
    return client


def arguments(url: str) -> dict[str, Any]:
    """Return what any boto3 client or resource of a local engine is made with."""
    return {
        "endpoint_url": url,
        "region_name": "us-east-1",
        "aws_access_key_id": "local",
        "aws_secret_access_key": "local",
        "config": Config(max_pool_connections=16),
    }


def create_tables(client: "DynamoDBClient", events: str = EVENTS, *, indexed: bool = False) -> None:
    """Create a main table, with its index only where that is asked for, since peers lack it, and the layout table."""
    _create(client, events, (keys.PARTITION_KEY, keys.SORT_KEY), indexed=indexed)
    if LAYOUTS not in client.list_tables()["TableNames"]:
        _create(client, LAYOUTS, (keys.LAYOUT_KEY,))


def _create(
    client: "DynamoDBClient", name: str, key_names: tuple[str, ...], *, indexed: bool = False
) -> None:
    index_names = (keys.INDEX_PARTITION_KEY, keys.SORT_KEY)
    attributes = dict.fromkeys((*key_names, *index_names) if indexed else key_names)
    further: dict[str, Any] = {}
    if indexed:
        index = {"IndexName": keys.INDEX_NAME, "KeySchema": _schema(index_names)}
        further["GlobalSecondaryIndexes"] = [{**index, "Projection": {"ProjectionType": "ALL"}}]
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in attributes],
        KeySchema=_schema(key_names),
        **further,
    )


def _schema(key_names: tuple[str, ...]) -> "list[KeySchemaElementTypeDef]":
    kinds: tuple[KeyType, KeyType] = ("HASH", "RANGE")
    return [
        {"AttributeName": key, "KeyType": kind} for key, kind in zip(key_names, kinds, strict=False)
    ]


def flight(number: int) -> Event:
    """Return an event of about 200 stored bytes; three share a minute."""
    return Event(
        series="ORD",
        time=START + timedelta(minutes=number // 3),
        id=f"{number:07d}",
        payload={"delay": number % 60 - 5, "distance": 1_020, "destination": "LAX"},
    )


def native_item(number: int) -> dict[str, str]:
    """Return the same event as a peer stores it: keys and payload text made beforehand."""
    time = (START + timedelta(minutes=number // 3)).isoformat(timespec="microseconds")[:26] + "Z"
    return {
        keys.PARTITION_KEY: f"ORD#{number & 15}",
        keys.SORT_KEY: f"{time}#{number:07d}",
        keys.INDEX_PARTITION_KEY: f"ORD#{time[:13]}#0",
        keys.PAYLOAD: f'{{"delay":{number % 60 - 5},"distance":1020,"destination":"LAX"}}',
    }
