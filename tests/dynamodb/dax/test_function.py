"""A function with `DAX_ENDPOINT` in its environment."""

import json

import pytest

from lambdas.environment import open_store, read_environment
from local.engine import EngineProcess
from spillway import Event, EventStore
from tests.api.conftest import ENVIRONMENT
from tests.dynamodb.dax.world import EVENTS, LAYOUTS, World
from tests.support.stores import DAY, HOUR

pytestmark = pytest.mark.engine


@pytest.fixture
def store(world: World, engine: EngineProcess, monkeypatch: pytest.MonkeyPatch) -> EventStore:
    variables = {
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "AKIATEST",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL_DYNAMODB": engine.url,
        "POWERTOOLS_METRICS_NAMESPACE": "Spillway",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    own = {"SPILLWAY_TABLE": EVENTS, "SPILLWAY_LAYOUTS": LAYOUTS, "DAX_ENDPOINT": world.dax.url}
    return open_store(read_environment({**ENVIRONMENT, **own}))


def _read(world: World, store: EventStore, events: list[Event]) -> None:
    start = events[0].time
    page = store.read(world.series, start, start + HOUR, consistent=False)
    assert list(page.events) == events


def test_reads_of_a_function_go_through_dax(world: World, store: EventStore) -> None:
    events = world.write(world.process(), 3, at=world.clock.time - 365 * DAY)
    for _ in range(2):
        _read(world, store, events)
    assert (world.dax.node.calls["GetItem"], world.dax.node.calls["Query"]) == (1, 2)
    assert store.cache_failures == 0


def test_each_failure_is_logged_and_counted(
    world: World,
    store: EventStore,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = world.write(world.process(), 3, at=world.clock.time - 365 * DAY)
    world.dax.kill()
    _read(world, store, events)
    metrics = [line for line in capsys.readouterr().out.splitlines() if "DaxFailures" in line]
    assert [json.loads(line)["DaxFailures"] for line in metrics] == [[1.0]] * store.cache_failures
    logged = [vars(record)["operation"] for record in caplog.records]
    assert sorted(logged) == ["GetItem", "Query"]
    assert store.cache_failures == 2
