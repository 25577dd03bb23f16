"""One engine with tables for all tests; a DAX cluster and a series of its own for each."""

from collections.abc import Iterator

import boto3
import pytest

from local.engine import EngineProcess
from spillway.dynamodb.boto import call_through
from spillway.dynamodb.port import Call
from tests.dynamodb.dax.world import World, make_tables, world_on
from tests.support.fakes import undated


@pytest.fixture(scope="session")
def tables(engine: EngineProcess) -> Iterator[Call]:
    """The port on an engine that has the tables."""
    client = boto3.client("dynamodb", **engine.client_settings())
    make_tables(client)
    yield undated(call_through(client))
    client.close()


@pytest.fixture
def world(tables: Call) -> Iterator[World]:
    with world_on(tables) as made:
        yield made
