"""The store's two tables on the real engine."""

from typing import TYPE_CHECKING, Final

from spillway import keys
from tests.support.memory_table import EVENTS, LAYOUTS

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["create_tables"]

_TEXT: Final = "S"


def create_tables(client: "DynamoDBClient", suffix: str) -> tuple[str, str]:
    """Create the tables, as the stacks describe them, under names of their own; return these."""
    events, layouts = f"{EVENTS}-{suffix}", f"{LAYOUTS}-{suffix}"
    client.create_table(
        TableName=events,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": _TEXT}
            for name in (keys.PARTITION_KEY, keys.SORT_KEY, keys.INDEX_PARTITION_KEY)
        ],
        KeySchema=[
            {"AttributeName": keys.PARTITION_KEY, "KeyType": "HASH"},
            {"AttributeName": keys.SORT_KEY, "KeyType": "RANGE"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": keys.INDEX_NAME,
                "KeySchema": [
                    {"AttributeName": keys.INDEX_PARTITION_KEY, "KeyType": "HASH"},
                    {"AttributeName": keys.SORT_KEY, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    client.create_table(
        TableName=layouts,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": _TEXT}
            for name in (keys.LAYOUT_KEY, keys.LAYOUT_INDEX_KEY)
        ],
        KeySchema=[{"AttributeName": keys.LAYOUT_KEY, "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": keys.LAYOUT_INDEX_NAME,
                "KeySchema": [
                    {"AttributeName": keys.LAYOUT_INDEX_KEY, "KeyType": "HASH"},
                    {"AttributeName": keys.LAYOUT_KEY, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
    return events, layouts
