"""The same store on every engine."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from local.engine import EngineProcess
from spillway import EventStore, Settings
from spillway.dynamodb.boto import call_through
from spillway.dynamodb.port import Call
from tests.support.clients import client_with
from tests.support.engine_tables import create_tables
from tests.support.fakes import FakeClock, fake_runtime, undated
from tests.support.memory_table import EVENTS, LAYOUTS, memory_table

_numbers = itertools.count()


@dataclass
class Tables:
    """Two empty tables of an engine, a clock, and stores on them."""

    call: Call
    events: str
    layouts: str
    clock: FakeClock
    count: Callable[[], int]

    def store(self, settings: Settings | None = None) -> EventStore:
        """Return a store of another process."""
        return EventStore(
            self.call,
            table=self.events,
            layouts=self.layouts,
            settings=settings,
            runtime=fake_runtime(self.clock),
        )


def _in_memory() -> Tables:
    table = memory_table()
    return Tables(table, EVENTS, LAYOUTS, FakeClock(), lambda: len(table.items[EVENTS]))


@pytest.fixture(scope="session")
def client(engine: EngineProcess) -> Iterator[Any]:
    made = client_with(engine.url)
    yield made
    made.close()


def _on_engine(client: Any) -> Tables:
    events, layouts = create_tables(client, str(next(_numbers)))

    def count() -> int:
        pages = client.get_paginator("scan").paginate(TableName=events, Select="COUNT")
        return sum(page["Count"] for page in pages)

    return Tables(undated(call_through(client)), events, layouts, FakeClock(), count)


@pytest.fixture(params=["memory", pytest.param("engine", marks=pytest.mark.engine)])
def tables(request: pytest.FixtureRequest) -> Tables:
    if request.param == "memory":
        return _in_memory()
    return _on_engine(request.getfixturevalue("client"))
