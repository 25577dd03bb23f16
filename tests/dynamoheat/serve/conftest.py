"""One endpoint with tiny limits for tests of its answers; each test has its own tables."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from local.engine import EngineProcess
from tests.dynamoheat.serve.serving import Endpoint, endpoint

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


@pytest.fixture(scope="session")
def served(engine: EngineProcess) -> Iterator[Endpoint]:
    """Five write units and ten read units a second and partition, one partition a table."""
    parameters = ("on_demand_partitions=1", "eventual_boost=1")
    with endpoint(engine.url, partition_wcu=5, partition_rcu=10, parameters=parameters) as running:
        yield running


@pytest.fixture
def dynamodb(served: Endpoint) -> "DynamoDBClient":
    return served.client()
