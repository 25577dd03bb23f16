"""A storm of messages changes each layout at most once a cooldown, whatever the messages, their order and their number."""

import io
import logging
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any, Final

import pytest
from aws_lambda_powertools import Logger, Metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from lambdas.alarms.deduplicator import AlarmDeduplicator
from lambdas.alarms.handler import AlarmHandler
from lambdas.alarms.messages import decode
from spillway import ThrottledError
from spillway.control.monitoring import AlarmState
from spillway.scaling.updates import ScalingKind
from tests.control.messages import direct_event, sns_event
from tests.control.world import World, alarm

COOLDOWN: Final = 60.0
NAMES: Final = ("ORD", "DFW", "ATL")
GARBAGE: Final[tuple[Any, ...]] = (
    None, 7, {}, {"Records": None}, {"Records": [{}]}, {"Records": [{"Sns": {"Message": "{"}}]},
    {"source": "aws.cloudwatch", "alarmData": {}}, {"source": "aws.s3"},
)  # fmt: skip


def alarm_handlers(world: World, count: int) -> list[AlarmHandler]:
    """Return the handlers of so many processes, which remember nothing of each other."""
    found = []
    for n in range(count):
        logger = Logger(service=f"storm-{n}", stream=io.StringIO(), level=logging.INFO)
        metrics = Metrics(namespace="Spillway", service="scaler")
        found.append(
            AlarmHandler(world.scaler(), AlarmDeduplicator(world.clock.now), logger, metrics)
        )
    return found


def storm(world: World, random: Random, count: int) -> list[Any]:
    """Return events: alarms of table and index in any order, twice and more often, unknown ones, garbage."""
    alarms: list[AlarmState] = [
        alarm(at=world.now + random.randint(-3, 3), index=random.random() < 0.4)
        for _ in range(count // 4)
    ]
    alarms += [
        alarm("ReadThrottleEvents", at=world.now),
        alarm("WriteAccountLimitThrottleEvents", at=world.now),
        alarm(at=world.now, state="OK"),
        alarm(at=world.now, dimensions={"TableName": "another"}),
        alarm("Errors", at=world.now, dimensions={"FunctionName": "ingest"}),
    ]
    makers = (sns_event, direct_event, lambda each: sns_event(each, each))
    events: list[Any] = [
        random.choice(GARBAGE)
        if random.random() < 0.2
        else random.choice(makers)(random.choice(alarms))
        for _ in range(count - 1)
    ]
    events.append({"source": "aws.events"})
    random.shuffle(events)
    return events


def changes(world: World) -> dict[str, list[float]]:
    """Return when each layout changed its counts."""
    found: dict[str, list[float]] = defaultdict(list)
    for name in NAMES:
        found[name] = [
            each.at for each in world.layout(name).decisions if each.before != each.after
        ]
    # A change that another wrote over is missing there, but whoever made it has told of it.
    told = [each.series for each in world.reported if each.kind is ScalingKind.GREW]
    assert sorted(told) == sorted(name for name in NAMES for _ in found[name])
    return found


def heated(*, index_only: bool = False) -> World:
    world = World(warm=40_000)
    world.growth = replace(world.growth, cooldown_seconds=COOLDOWN)
    for name in NAMES:
        world.has(name, (64, 1) if index_only else (1, 1))
        world.writes(name, 6_000)
        if not index_only:
            world.throttles(name, 0, ago=10)
    world.index_throttles(ago=10)
    world.watched.alarms = [alarm(), alarm(index=True)]
    return world


@settings(max_examples=15, deadline=None)
@given(st.integers(), st.integers(1, 4), st.booleans())
def test_100_messages_in_a_second_change_each_layout_once(
    seed: int, processes: int, index_only: bool
) -> None:
    random = Random(seed)
    world = heated(index_only=index_only)
    working = alarm_handlers(world, processes)
    for event in storm(world, random, 100):
        random.choice(working).handle(decode(event), world.now + 50)
        world.clock.seconds += 0.01
    assert [len(each) for each in changes(world).values()] == [1, 1, 1]


@settings(max_examples=25, deadline=None)
@given(st.integers())
def test_processes_that_work_at_the_same_time_change_each_layout_once(seed: int) -> None:
    """Any process may run, from its beginning to its end, between two calls of another."""
    random = Random(seed)
    world = heated()
    working, events = alarm_handlers(world, 4), storm(world, random, 40)
    depth = 0

    def meanwhile(*_: object) -> None:
        nonlocal depth
        if depth < 3 and events and random.random() < 0.2:
            depth += 1
            working[depth - 1].handle(decode(events.pop()), world.now + 50)
            depth -= 1

    world.before = meanwhile
    while events:
        working[3].handle(decode(events.pop()), world.now + 50)
        world.clock.seconds += 0.01
    assert [len(each) for each in changes(world).values()] == [1, 1, 1]


@settings(max_examples=4, deadline=None)
@given(st.integers(), st.integers(1, 3))
def test_while_it_throttles_on_each_layout_changes_once_a_cooldown(
    seed: int, processes: int
) -> None:
    random = Random(seed)
    world = heated()
    working = alarm_handlers(world, processes)
    for _ in range(40):
        for name in NAMES:
            world.throttles(name, *range(3), ago=0)
            world.writes(name, 60_000, seconds=5)
        world.index_throttles(ago=0)
        for event in storm(world, random, 4):
            random.choice(working).handle(decode(event), world.now + 50)
        world.clock.seconds += 5
        world.watched.keys = [each for each in world.watched.keys if each.at > world.now - 6]
    for times in changes(world).values():
        assert len(times) >= 2
        assert all(later - earlier >= COOLDOWN for earlier, later in pairwise(times))


@pytest.mark.parametrize("state", ["OK", "INSUFFICIENT_DATA"])
def test_an_alarm_that_is_over_changes_nothing(state: str) -> None:
    world = heated()
    (handler,) = alarm_handlers(world, 1)
    handler.handle(decode(sns_event(alarm(at=world.now, state=state))), world.now + 50)
    assert [len(each) for each in changes(world).values()] == [0, 0, 0]


def test_what_failed_is_done_when_it_comes_again_and_all_else_at_once() -> None:
    world = heated()
    (handler,) = alarm_handlers(world, 1)
    failing = [True]

    def fail(operation: str, request: Any) -> None:
        if failing[0] and operation == "UpdateItem" and request["Key"]["series"]["S"] == "ORD":
            raise ThrottledError("ThrottlingException", "")

    world.before = fail
    event = sns_event(alarm(at=world.now))
    with pytest.raises(ThrottledError):
        handler.handle(decode(event), world.now + 50)
    assert [len(each) for each in changes(world).values()] == [0, 1, 1]
    failing[0] = False
    handler.handle(decode(event), world.now + 50)
    handler.handle(decode(event), world.now + 50)
    assert [len(each) for each in changes(world).values()] == [1, 1, 1]
