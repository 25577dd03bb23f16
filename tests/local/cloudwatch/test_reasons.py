"""Why an alarm changed its state, in CloudWatch's words and JSON."""

import json
from typing import Any

import pytest

from local.cloudwatch.alarms import (
    Datapoint,
    DeployedAlarm,
    evaluate_alarm,
    state_reason,
    state_reason_data,
)
from local.cloudwatch.metric_store import MetricTime

DAY = "(01/01/70 00:0{}:00)"


def alarm(**more: Any) -> DeployedAlarm:
    described = {
        "AlarmName": "a",
        "StateValue": "OK",
        "Namespace": "N",
        "MetricName": "M",
        "Statistic": "Sum",
        "Threshold": 5.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "missing",
    }
    return DeployedAlarm.from_description(described | more)


def told(watched: DeployedAlarm, *values: float | None) -> str:
    points = [
        None if value is None else Datapoint(60 * place, value)
        for place, value in enumerate(values)
    ]
    return state_reason(watched, evaluate_alarm(watched, points), MetricTime())


def test_without_datapoints_to_alarm_all_periods_must_breach() -> None:
    watched = alarm(EvaluationPeriods=3)
    assert watched.datapoints_to_alarm == 3
    points = [Datapoint(60 * place, value) for place, value in enumerate((9.0, 1.0, 9.0))]
    assert evaluate_alarm(watched, points).state == "OK"


@pytest.mark.parametrize(
    ("more", "values", "wanted"),
    [
        (
            {},
            (9.0,),
            (
                f"Threshold Crossed: 1 datapoint [9.0 {DAY.format(0)}] was greater than the"
                " threshold (5.0)."
            ),
        ),
        (
            {},
            (1.0,),
            (
                f"Threshold Crossed: 1 datapoint [1.0 {DAY.format(0)}] was not greater than the"
                " threshold (5.0)."
            ),
        ),
        (
            {"EvaluationPeriods": 3, "DatapointsToAlarm": 2},
            (9.0, 1.0, 8.0),
            (
                "Threshold Crossed: 2 out of the last 3 datapoints"
                f" [9.0 {DAY.format(0)}, 1.0 {DAY.format(1)}, 8.0 {DAY.format(2)}]"
                " were greater than the threshold (5.0) (minimum 2 datapoints for OK -> ALARM"
                " transition)."
            ),
        ),
        (
            {"EvaluationPeriods": 2, "TreatMissingData": "breaching", "DatapointsToAlarm": 1},
            (None, 1.0),
            (
                f"Threshold Crossed: 1 datapoint [1.0 {DAY.format(1)}] was not greater than the"
                " threshold (5.0) and 1 missing datapoint was treated as [Breaching] (minimum 1"
                " datapoint for OK -> ALARM transition)."
            ),
        ),
        (
            {"TreatMissingData": "notBreaching"},
            (None,),
            (
                "Threshold Crossed: no datapoints were received for 1 period and 1 missing"
                " datapoint was treated as [NonBreaching]."
            ),
        ),
        ({"EvaluationPeriods": 2}, (None, None), "Insufficient Data: 2 datapoints were unknown."),
    ],
)
def test_a_reason_names_what_decided(
    more: dict[str, Any], values: tuple[float | None, ...], wanted: str
) -> None:
    assert told(alarm(**more), *values) == wanted


def test_a_reason_is_data_too() -> None:
    watched = alarm(EvaluationPeriods=2)
    verdict = evaluate_alarm(watched, [Datapoint(60, 9.0), Datapoint(120, 8.0)])
    assert json.loads(state_reason_data(watched, verdict, MetricTime(), 200.5)) == {
        "version": "1.0",
        "queryDate": "1970-01-01T00:03:20.500+0000",
        "startDate": "1970-01-01T00:01:00.000+0000",
        "statistic": "Sum",
        "period": 60,
        "recentDatapoints": [9.0, 8.0],
        "threshold": 5.0,
        "evaluatedDatapoints": [
            {"timestamp": "1970-01-01T00:01:00.000+0000", "value": 9.0},
            {"timestamp": "1970-01-01T00:02:00.000+0000", "value": 8.0},
        ],
    }
