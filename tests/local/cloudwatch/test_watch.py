"""Deployed alarms are evaluated minute by minute, and their states set once a transition."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from local.cloudwatch.alarms import AlarmEvaluator
from local.cloudwatch.metric_store import Metric, MetricStore, MetricTime, Samples

METRIC = Metric("N", "M", frozenset({("T", "a")}))


def alarm(name: str = "a", value: str = "a", **more: Any) -> dict[str, Any]:
    return {
        "AlarmName": name,
        "StateValue": "INSUFFICIENT_DATA",
        "Namespace": "N",
        "MetricName": "M",
        "Dimensions": [{"Name": "T", "Value": value}],
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 5.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
    } | more


class Alarms:
    """MiniStack's alarms: describes them two a page, takes states."""

    def __init__(self, *alarms: dict[str, Any], scale: float = 1.0) -> None:
        self.alarms = {each["AlarmName"]: each for each in alarms}
        self.set: list[tuple[str, str]] = []
        self.reasons: list[str] = []
        self.store = MetricStore()
        self.watch = AlarmEvaluator(self.store, MetricTime(scale), self.ask)

    async def ask(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if operation == "SetAlarmState":
            self.alarms[request["AlarmName"]]["StateValue"] = request["StateValue"]
            self.set.append((request["AlarmName"], request["StateValue"]))
            self.reasons.append(request["StateReason"])
            return {}
        names = sorted(self.alarms)
        first = names.index(request["NextToken"]) if "NextToken" in request else 0
        page = names[first : first + 2]
        more = {"NextToken": names[first + 2]} if len(names) > first + 2 else {}
        return {"MetricAlarms": [self.alarms[name] for name in page], **more}

    def put(self, at: int, value: float, metric: Metric = METRIC, resolution: int = 60) -> None:
        self.store.put(metric, at, Samples.of(value), resolution=resolution)

    def pass_minutes(self, first: int, last: int) -> list[tuple[str, str]]:
        """Evaluate a little after the end of each minute; return the states set."""
        for minute in range(first, last + 1):
            asyncio.run(self.watch.evaluate(60 * minute + 0.5))
        found, self.set = self.set, []
        return found


def test_each_transition_is_set_once() -> None:
    alarms = Alarms(alarm())
    assert alarms.pass_minutes(1, 3) == [("a", "OK")]
    alarms.put(185, 9)
    assert alarms.pass_minutes(4, 5) == [("a", "ALARM")]
    alarms.put(305, 1)
    assert alarms.pass_minutes(6, 9) == [("a", "OK")]
    assert alarms.reasons[1] == (
        "Threshold Crossed: 1 datapoint [9.0 (01/01/70 00:03:00)] was greater than the threshold"
        " (5.0)."
    )


def test_a_breach_counts_until_it_leaves_the_range() -> None:
    alarms = Alarms(alarm())
    alarms.put(5, 9)
    assert alarms.pass_minutes(1, 3) == [("a", "ALARM")]
    assert alarms.pass_minutes(4, 4) == [("a", "OK")]


def test_dimensions_are_told_apart_and_every_page_is_read() -> None:
    alarms = Alarms(*(alarm(name, name) for name in "abcde"))
    alarms.put(5, 9, Metric("N", "M", frozenset({("T", "d")})))
    found = dict(alarms.pass_minutes(1, 1))
    assert found == {"a": "OK", "b": "OK", "c": "OK", "d": "ALARM", "e": "OK"}


def test_a_state_set_by_hand_is_set_right() -> None:
    alarms = Alarms(alarm())
    assert alarms.pass_minutes(1, 1) == [("a", "OK")]
    alarms.alarms["a"]["StateValue"] = "ALARM"
    assert alarms.pass_minutes(2, 2) == [("a", "OK")]


def test_minutes_that_were_slept_through_are_caught_up_on() -> None:
    alarms = Alarms(alarm())
    assert alarms.pass_minutes(1, 1) == [("a", "OK")]
    for at, value in ((65, 1), (125, 9), (185, 1), (245, 1), (305, 1)):
        alarms.put(at, value)
    assert alarms.pass_minutes(6, 6) == [("a", "ALARM"), ("a", "OK")]


def test_a_minute_is_evaluated_once() -> None:
    alarms = Alarms(alarm())
    alarms.pass_minutes(1, 1)
    alarms.alarms["a"]["StateValue"] = "ALARM"
    assert alarms.pass_minutes(1, 1) == []


def test_short_periods_are_evaluated_every_ten_seconds_and_others_only_on_the_minute() -> None:
    alarms = Alarms(alarm("fast", Period=10), alarm("slow"))
    asyncio.run(alarms.watch.evaluate(60.5))
    assert alarms.watch.step == 10
    alarms.set.clear()
    alarms.put(63, 9, resolution=1)
    asyncio.run(alarms.watch.evaluate(70.5))
    assert alarms.set == [("fast", "ALARM")]
    asyncio.run(alarms.watch.evaluate(120.5))
    assert ("slow", "ALARM") in alarms.set


def test_longer_periods_slide_from_minute_to_minute() -> None:
    alarms = Alarms(alarm(Period=300))
    alarms.pass_minutes(1, 1)
    for at in (65, 185):
        alarms.put(at, 3)
    assert alarms.pass_minutes(2, 4) == [("a", "ALARM")]


def test_minutes_follow_the_time_scale() -> None:
    alarms = Alarms(alarm(), scale=60)
    alarms.put(5, 9)
    asyncio.run(alarms.watch.evaluate(1.01))
    assert alarms.set == [("a", "ALARM")]
    assert "00:00:00" in alarms.reasons[0]


def without_metric(described: dict[str, Any]) -> dict[str, Any]:
    gone = ("Namespace", "MetricName", "Dimensions", "Statistic", "Period")
    return {name: value for name, value in described.items() if name not in gone}


@pytest.mark.parametrize(
    "odd",
    [
        without_metric(alarm("odd")) | {"Metrics": [{"Id": "e", "Expression": "5"}]},
        alarm("odd", ComparisonOperator="Odd"),
        without_metric(alarm("odd")),
    ],
)
def test_an_alarm_that_cannot_be_evaluated_keeps_its_state_and_harms_no_other(
    odd: dict[str, Any],
) -> None:
    alarms = Alarms(alarm(), odd)
    alarms.put(5, 9)
    assert alarms.pass_minutes(1, 2) == [("a", "ALARM")]
