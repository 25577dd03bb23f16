"""What other apps can't make of the tables: synthesis fails, and says why."""

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_dynamodb as dynamodb

from spillway import keys
from spillway.cdk import ShardedEventTable


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def tables(app: App) -> ShardedEventTable:
    # Replicas need a region that is known at synthesis.
    stack = Stack(app, "Orders", env={"account": "123456789012", "region": "eu-central-1"})
    return ShardedEventTable(stack, "Events")


@pytest.mark.parametrize("name", ["events", "layouts", "usage"])
def test_a_replica_of_any_table_is_refused_at_synthesis(
    app: App, tables: ShardedEventTable, name: str
) -> None:
    table: dynamodb.TableV2 = getattr(tables, name)
    table.add_replica(region="eu-west-1")
    with pytest.raises(RuntimeError, match=r"two regions that change the layout .* lose an epoch"):
        app.synth()


@pytest.mark.parametrize("projection", ["KEYS_ONLY", "INCLUDE"])
def test_a_projection_of_the_index_without_whole_events_is_refused_at_synthesis(
    app: App, tables: ShardedEventTable, projection: str
) -> None:
    resource = tables.events.node.default_child
    assert isinstance(resource, dynamodb.CfnGlobalTable)
    resource.global_secondary_indexes = [
        dynamodb.CfnGlobalTable.GlobalSecondaryIndexProperty(
            index_name=keys.INDEX_NAME,
            key_schema=[
                dynamodb.CfnGlobalTable.KeySchemaProperty(
                    attribute_name=keys.INDEX_PARTITION_KEY, key_type="HASH"
                )
            ],
            projection=dynamodb.CfnGlobalTable.ProjectionProperty(projection_type=projection),
        )
    ]
    with pytest.raises(RuntimeError, match=r"must project ALL .* it still costs"):
        app.synth()


def test_a_further_index_may_project_what_it_likes(app: App, tables: ShardedEventTable) -> None:
    tables.events.add_global_secondary_index(
        index_name="ByKind",
        partition_key=dynamodb.Attribute(name="kind", type=dynamodb.AttributeType.STRING),
        projection_type=dynamodb.ProjectionType.KEYS_ONLY,
    )
    app.synth()
