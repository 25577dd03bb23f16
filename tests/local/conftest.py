"""A cloud without stacks for the tests of its parts."""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from local.cloud import Cloud, running

if TYPE_CHECKING:
    from types_boto3_cloudformation import CloudFormationClient
    from types_boto3_dynamodb import DynamoDBClient


@pytest.fixture(scope="session")
def cloud() -> Generator[Cloud]:
    with running(deploys=False) as started:
        yield started


@pytest.fixture(scope="session")
def dynamodb(cloud: Cloud) -> "DynamoDBClient":
    retrying = Config(retries={"mode": "standard", "total_max_attempts": 5})
    made: DynamoDBClient = boto3.client("dynamodb", config=retrying, **cloud.client_settings())
    return made


@pytest.fixture(scope="session")
def cloudformation(cloud: Cloud) -> "CloudFormationClient":
    made: CloudFormationClient = boto3.client("cloudformation", **cloud.client_settings())
    return made


@pytest.fixture
def stack(cloudformation: "CloudFormationClient", request: pytest.FixtureRequest) -> Iterator[str]:
    name = "s-" + "".join(c if c.isalnum() else "-" for c in request.node.name)[:60]
    yield name
    cloudformation.delete_stack(StackName=name)
