"""One local cloud with the stacks deployed, for all tests of this folder."""

from collections.abc import Generator
from typing import TYPE_CHECKING

import boto3
import pytest

from dynamoheat.serve.options import HeatOptions
from local.cloud import Cloud, running

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


@pytest.fixture(scope="session")
def cloud() -> Generator[Cloud]:
    # Nothing may throttle here, so that layouts stay: what is loaded again after a growth is stored twice,
    # though read once, and these tests count what is stored.
    with running(heat=HeatOptions(partition_wcu=1e6, partition_rcu=1e6)) as started:
        yield started


@pytest.fixture(scope="session")
def url(cloud: Cloud) -> str:
    return cloud.api_url


@pytest.fixture(scope="session")
def dynamodb(cloud: Cloud) -> "DynamoDBClient":
    made: DynamoDBClient = boto3.client("dynamodb", **cloud.client_settings())
    return made
