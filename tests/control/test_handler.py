"""The scaler function's handler: what it logs, counts and raises."""

import io
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from aws_lambda_powertools import Logger, Metrics

from lambdas.alarms.deduplicator import AlarmDeduplicator
from lambdas.alarms.handler import AlarmHandler, create_app
from lambdas.scaling_log import ScalingLog
from spillway import ThrottledError
from tests.control.messages import sns_event
from tests.control.world import World, alarm
from tests.support.gateway import LambdaContext


@dataclass
class Function:
    """The scaler function over a world, and what it logs."""

    world: World
    handler: Callable[[Any, Any], None]
    log: io.StringIO


@pytest.fixture
def function() -> Function:
    log = io.StringIO()
    logger = Logger(service="scaler-test", level="INFO", stream=log)
    for each in logging.getLogger("scaler-test").handlers:
        if isinstance(each, logging.StreamHandler):
            each.setStream(log)
    metrics = Metrics(namespace="Spillway", service="scaler")
    world = World()
    world.has("ORD", (1, 1))
    world.throttles("ORD", 0)
    world.reported = _Telling(ScalingLog(logger, metrics))
    deduplicator = AlarmDeduplicator(world.clock.now)
    alarms = AlarmHandler(world.scaler(), deduplicator, logger, metrics)
    return Function(world, create_app(alarms, logger, metrics, world.clock.now), log)


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
    function: Function, capsys: pytest.CaptureFixture[str]
) -> None:
    function.handler(sns_event(alarm(at=function.world.now)), LambdaContext())
    assert function.world.counts("ORD") == (8, 8)
    lines = [json.loads(line) for line in function.log.getvalue().splitlines()]
    (scaling,) = [line["scaling"] for line in lines if line["message"] == "scaling"]
    assert scaling["evidence"] == "table 100 throttled"
    assert (scaling["series"], scaling["new_shards"]) == ("ORD", 8)
    told = _metrics(capsys.readouterr().out)
    assert (told["LayoutsGrown"], told["Runs"]) == ([1.0], [1.0])


@pytest.mark.parametrize("event", [None, [], "text", {"Records": [{"Sns": {"Message": "{"}}]}])
def test_what_is_not_for_the_scaler_is_logged_counted_and_dropped(
    function: Function,
    capsys: pytest.CaptureFixture[str],
    event: Any,
) -> None:
    function.handler(event, LambdaContext())
    assert '"message dropped"' in function.log.getvalue()
    assert _metrics(capsys.readouterr().out)["AlarmMessagesDropped"] == [1.0]
    assert function.world.counts("ORD") == (1, 1)


def test_a_storage_failure_is_raised_so_that_lambda_tries_again(function: Function) -> None:
    def fail(*_: object) -> None:
        raise ThrottledError("ThrottlingException", "")

    function.world.before = fail
    with pytest.raises(ThrottledError):
        function.handler(sns_event(alarm(at=function.world.now)), LambdaContext())
    assert '"storage failed"' in function.log.getvalue()


def test_the_schedule_leaves_time_for_what_is_under_way(
    function: Function, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadlines: list[float] = []
    monkeypatch.setattr(AlarmHandler, "handle", lambda _, __, deadline: deadlines.append(deadline))
    now = function.world.clock.now()
    function.handler({"source": "aws.events"}, LambdaContext(left=29.0))
    assert deadlines == [now + 29.0 - 10.0]
    assert function.world.calls == set()
