"""The deployed function's entry: what it logs, counts and raises."""

import io
import json
from types import ModuleType
from typing import Any

import pytest

from lambdas.alarms.deduplicator import AlarmDeduplicator
from lambdas.alarms.handler import AlarmHandler
from lambdas.api.scaling import ScalingLog
from spillway import ThrottledError
from tests.api.conftest import ENVIRONMENT
from tests.control.messages import sns_event
from tests.control.test_environment import SCALER
from tests.control.world import World, alarm
from tests.support.gateway import LambdaContext


@pytest.fixture(scope="module")
def function() -> ModuleType:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {**ENVIRONMENT, **SCALER}.items():
            patched.setenv(name, value)
        from lambdas import scaler  # noqa: PLC0415  it reads the environment at once
    return scaler


@pytest.fixture
def log(function: ModuleType, monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    stream = io.StringIO()
    handler: Any = function.logger.registered_handler
    monkeypatch.setattr(handler, "stream", stream)
    return stream


@pytest.fixture
def world(function: ModuleType, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    world.has("ORD", (1, 1))
    world.throttles("ORD", 0)
    world.reported = _Telling(ScalingLog(function.logger, function.metrics))
    inbox = AlarmDeduplicator(world.clock.now)
    desk = AlarmHandler(world.scaler(), inbox, function.logger, function.metrics)
    monkeypatch.setattr(function, "desk", desk)
    return world


class _Telling(list[Any]):
    """A list that passes on what is appended to it."""

    def __init__(self, log: ScalingLog) -> None:
        super().__init__()
        self._log = log

    def append(self, event: Any) -> None:
        super().append(event)
        self._log.note(event)


def _metrics(text: str) -> dict[str, Any]:
    lines = [json.loads(line) for line in text.splitlines() if '"_aws"' in line]
    return {key: value for line in lines for key, value in line.items() if key != "_aws"}


def test_an_alarm_grows_a_series_and_is_logged_and_counted(
    function: ModuleType, world: World, log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    function.handler(sns_event(alarm(at=world.now)), LambdaContext())
    assert world.counts("ORD") == (8, 8)
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (scaling,) = [line["scaling"] for line in lines if line["message"] == "scaling"]
    assert scaling["evidence"] == "table 100 throttled"
    assert (scaling["series"], scaling["new_shards"]) == ("ORD", 8)
    told = _metrics(capsys.readouterr().out)
    assert (told["LayoutsGrown"], told["Runs"]) == ([1.0], [1.0])


@pytest.mark.parametrize("event", [None, [], "text", {"Records": [{"Sns": {"Message": "{"}}]}])
def test_what_is_not_for_the_scaler_is_logged_counted_and_dropped(
    function: ModuleType,
    world: World,
    log: io.StringIO,
    capsys: pytest.CaptureFixture[str],
    event: Any,
) -> None:
    function.handler(event, LambdaContext())
    assert '"message dropped"' in log.getvalue()
    assert _metrics(capsys.readouterr().out)["AlarmMessagesDropped"] == [1.0]
    assert world.counts("ORD") == (1, 1)


def test_a_storage_failure_is_raised_so_that_lambda_tries_again(
    function: ModuleType, world: World, log: io.StringIO
) -> None:
    def fail(*_: object) -> None:
        raise ThrottledError("ThrottlingException", "")

    world.before = fail
    with pytest.raises(ThrottledError):
        function.handler(sns_event(alarm(at=world.now)), LambdaContext())
    assert '"storage failed"' in log.getvalue()


def test_the_schedule_leaves_time_for_what_is_under_way(
    function: ModuleType, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadlines: list[float] = []
    monkeypatch.setattr(
        type(function.desk), "deal_with", lambda _, __, deadline: deadlines.append(deadline)
    )
    now = function.runtime.monotonic()
    function.handler({"source": "aws.events"}, LambdaContext())
    left = LambdaContext().get_remaining_time_in_millis() / 1_000
    assert now + left - 10.5 <= deadlines[0] <= now + left - 9
    assert world.calls == set()
