"""Alarms: what each watches, when it fires, who is told; names and dimensions against what is published."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from spillway import keys
from tests.infra.synthesis import Synthesis, of_type
from tests.infra.watched import (
    API,
    DOCUMENTED,
    QUEUE,
    Alarm,
    Dimensions,
    Rule,
    deployed,
    published,
    silent,
)

EVENTS = (("TableName", "<events>"),)
INDEX = (("GlobalSecondaryIndexName", keys.INDEX_NAME), *EVENTS)
LAYOUTS = (("TableName", "<layouts>"),)
LAYOUTS_INDEX = (("GlobalSecondaryIndexName", keys.LAYOUT_INDEX_NAME), *LAYOUTS)
USAGE = (("TableName", "<usage>"),)

HOT = Rule("Sum", 60, 10, 1, 1)
LASTING = Rule("Sum", 60, 10, 10, 15)
LIMIT = Rule("Sum", 60, 10, 3, 5)
ACCOUNT = Rule("Sum", 60, 1, 1, 1)
BACK_PRESSURE = Rule("Sum", 60, 100, 2, 3)
OWN = Rule("Sum", 60, 1, 2, 3)
ONE = Rule("Sum", 300, 1, 1, 1)


def throttling(metric: str, dimensions: Dimensions, rule: Rule, told: str) -> Alarm:
    return Alarm("AWS/DynamoDB", f"{metric}ThrottleEvents", dimensions, rule, told)


def _of_events(name: str, dimensions: Dimensions) -> dict[str, Alarm]:
    def alarm(metric: str, rule: Rule, told: str = "people scaler") -> Alarm:
        return throttling(metric, dimensions, rule, told)

    return {
        f"Scaler-{name}-HotWrites": alarm("WriteKeyRangeThroughput", HOT, "scaler"),
        f"Scaler-{name}-StillHotWrites": alarm("WriteKeyRangeThroughput", LASTING, "people"),
        f"Scaler-{name}-HotReads": alarm("ReadKeyRangeThroughput", LIMIT),
        f"Scaler-{name}-ProvisionedWrites": alarm("WriteProvisionedThroughput", LIMIT),
        f"Scaler-{name}-ProvisionedReads": alarm("ReadProvisionedThroughput", LIMIT),
        f"Scaler-{name}-MaximumWrites": alarm("WriteMaxOnDemandThroughput", LIMIT),
        f"Scaler-{name}-MaximumReads": alarm("ReadMaxOnDemandThroughput", LIMIT),
        f"Scaler-{name}-AccountWrites": alarm("WriteAccountLimit", ACCOUNT),
        f"Scaler-{name}-AccountReads": alarm("ReadAccountLimit", ACCOUNT),
    }


def _of_own(name: str, dimensions: Dimensions, told: str) -> dict[str, Alarm]:
    return {
        f"Scaler-{name}-ThrottledWrites": throttling("Write", dimensions, OWN, told),
        f"Scaler-{name}-ThrottledReads": throttling("Read", dimensions, OWN, told),
    }


def _of_function(name: str, metric: str, prefix: str = "") -> dict[str, Alarm]:
    dimensions = (("FunctionName", f"<{name.lower()}>"),)
    alarm = Alarm("AWS/Lambda", metric, dimensions, ONE, "people")
    return {f"{prefix}{name}-{metric}": alarm}


EXPECTED = {
    **_of_events("Events", EVENTS),
    **_of_events("EventsIndex", INDEX),
    "Scaler-EventsIndex-BackPressure": throttling("Write", INDEX, BACK_PRESSURE, "people"),
    **_of_own("Layouts", LAYOUTS, "people scaler"),
    **_of_own("LayoutsIndex", LAYOUTS_INDEX, "people scaler"),
    **_of_own("Usage", USAGE, "people"),
    **_of_function("Ingest", "Errors"),
    **_of_function("Ingest", "Throttles"),
    **_of_function("Query", "Errors"),
    **_of_function("Query", "Throttles"),
    **_of_function("Admin", "Errors"),
    **_of_function("Admin", "Throttles"),
    **_of_function("Scaler", "Errors", prefix="Scaler-"),
    "Scaler-Scaler-FailedEvents": Alarm(
        "AWS/SQS",
        "ApproximateNumberOfMessagesVisible",
        QUEUE,
        Rule("Maximum", 300, 1, 1, 1),
        "people",
    ),
    "Api-ServerErrors": Alarm("AWS/ApiGateway", "5xx", API, Rule("Sum", 300, 5, 1, 1), "people"),
    "Api-SlowRequests": Alarm(
        "AWS/ApiGateway", "Latency", API, Rule("p99", 60, 5_000, 3, 5), "people"
    ),
}


@pytest.fixture
def alarms(synthesis: Synthesis) -> dict[str, Alarm]:
    return deployed(synthesis)


def test_each_alarm_is_as_it_should_be_and_there_is_no_other(alarms: dict[str, Alarm]) -> None:
    assert alarms == EXPECTED


def test_every_alarm_says_what_it_means_and_what_to_do(synthesis: Synthesis) -> None:
    for resource in of_type(synthesis.service, "AWS::CloudWatch::Alarm"):
        description = resource["Properties"]["AlarmDescription"]
        assert 60 < len(description) <= 1024
        assert "{" not in str(description)


@pytest.fixture
def known(synthesis: Synthesis) -> set[tuple[str, str, Dimensions]]:
    return published(synthesis) | DOCUMENTED


def test_every_alarm_watches_a_metric_that_is_published_with_just_these_dimensions(
    alarms: dict[str, Alarm], known: set[tuple[str, str, Dimensions]]
) -> None:
    assert silent(alarms, known) == set()


def test_every_way_to_throttle_events_has_an_alarm_on_the_table_and_one_on_the_index(
    synthesis: Synthesis, alarms: dict[str, Alarm]
) -> None:
    watched = {alarm.watched for alarm in alarms.values()}
    ways = {
        metric
        for metric in published(synthesis)
        if metric[2] in (EVENTS, INDEX) and metric[1].endswith("ThrottleEvents")
        if metric[1] not in ("ReadThrottleEvents", "WriteThrottleEvents")
    }
    assert len(ways) == 16
    assert ways <= watched


def _other_table(alarm: Alarm) -> Alarm:
    changed = tuple(
        (n, v.replace("<events>", "events").replace("<layouts>", "<stacks>"))
        for n, v in alarm.dimensions
    )
    return replace(alarm, dimensions=tuple((n, v.replace("<usage>", "<used>")) for n, v in changed))


MUTATIONS: dict[str, Callable[[Alarm], Alarm]] = {
    "a misspelt metric": lambda alarm: replace(alarm, metric=f"{alarm.metric}s"),
    "the reason in place of its metric": lambda alarm: replace(
        alarm, metric=alarm.metric.replace("ThrottleEvents", "Exceeded")
    ),
    "another namespace": lambda alarm: replace(alarm, namespace=alarm.namespace.lower()),
    "no table": lambda alarm: replace(alarm, dimensions=alarm.dimensions[:-1]),
    "another table": _other_table,
    "the index's name under another name": lambda alarm: replace(
        alarm,
        dimensions=tuple(
            (n.replace("GlobalSecondaryIndexName", "IndexName"), v) for n, v in alarm.dimensions
        ),
    ),
    "another index": lambda alarm: replace(
        alarm, dimensions=tuple((n, v.replace("-", "_")) for n, v in alarm.dimensions)
    ),
    "one dimension more": lambda alarm: replace(
        alarm, dimensions=(("Operation", "PutItem"), *alarm.dimensions)
    ),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_an_alarm_on_what_nobody_publishes_is_noticed(
    synthesis: Synthesis, known: set[tuple[str, str, Dimensions]], mutation: str
) -> None:
    mutated = dict(_mutated(deployed(synthesis), MUTATIONS[mutation]))
    assert mutated
    assert silent(mutated, known) == set(mutated)


def _mutated(
    alarms: dict[str, Alarm], mutate: Callable[[Alarm], Alarm]
) -> Iterator[tuple[str, Alarm]]:
    for name, alarm in alarms.items():
        if mutate(alarm) != alarm:
            yield name, mutate(alarm)


def test_an_indexs_alarm_that_loses_its_index_is_noticed(alarms: dict[str, Alarm]) -> None:
    """It would watch the table, which is published too, and never see what the index refuses."""
    for name, alarm in alarms.items():
        if alarm.dimensions == INDEX:
            assert {**alarms, name: replace(alarm, dimensions=EVENTS)} != EXPECTED
