"""States of alarms from datapoints: CloudWatch's own worked examples, and laws."""

from typing import Any, get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from local.cloudwatch.alarms import (
    EXTRA_PERIODS,
    Datapoint,
    DeployedAlarm,
    StateValue,
    evaluate_alarm,
)

TREATMENTS = ("missing", "ignore", "breaching", "notBreaching")
STATES: tuple[StateValue, ...] = get_args(StateValue)
COMPARISONS = {
    "GreaterThanThreshold": (False, False, True),
    "GreaterThanOrEqualToThreshold": (False, True, True),
    "LessThanThreshold": (True, False, False),
    "LessThanOrEqualToThreshold": (True, True, False),
}


def alarm(
    periods: int = 1, enough: int | None = None, state: StateValue = "OK", **more: Any
) -> DeployedAlarm:
    described = {
        "AlarmName": "a",
        "StateValue": state,
        "Namespace": "N",
        "MetricName": "M",
        "Statistic": "Sum",
        "Threshold": 5.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "EvaluationPeriods": periods,
        "DatapointsToAlarm": enough or periods,
        "TreatMissingData": "missing",
    }
    return DeployedAlarm.from_description(described | more)


def at(place: int, value: float, samples: float = 100.0) -> Datapoint:
    return Datapoint(60 * place, value, samples)


def points(drawn: str) -> list[Datapoint | None]:
    """Read `0 X -` as AWS draws them, oldest first: within, beyond, missing."""
    values = {"0": 1.0, "X": 9.0}
    return [
        at(place, values[sign]) if sign in values else None
        for place, sign in enumerate(drawn.replace(" ", ""))
    ]


# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
THREE_OF_THREE = {
    "0 - X - X": ("OK", "OK", "OK", "OK"),
    "0 - - - -": ("OK", "OK", "OK", "OK"),
    "- - - - -": ("INSUFFICIENT_DATA", "stays", "ALARM", "OK"),
    "0 X X - X": ("ALARM", "ALARM", "ALARM", "ALARM"),
    "- - X - -": ("ALARM", "stays", "ALARM", "OK"),
}
TWO_OF_THREE = {
    "0 - X - X": ("ALARM", "ALARM", "ALARM", "ALARM"),
    "0 0 X 0 X": ("ALARM", "ALARM", "ALARM", "ALARM"),
    "0 - X - -": ("OK", "OK", "ALARM", "OK"),
    "- - - - 0": ("OK", "OK", "ALARM", "OK"),
    "- - - X -": ("ALARM", "stays", "ALARM", "OK"),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    ("enough", "drawn", "wanted"),
    [(3, *row) for row in THREE_OF_THREE.items()] + [(2, *row) for row in TWO_OF_THREE.items()],
)
def test_the_examples_of_the_user_guide_come_out_as_printed(
    enough: int, drawn: str, wanted: tuple[str, ...], state: StateValue
) -> None:
    found = [
        evaluate_alarm(alarm(3, enough, state, TreatMissingData=treatment), points(drawn)).state
        for treatment in TREATMENTS
    ]
    assert found == [state if each == "stays" else each for each in wanted]


@pytest.mark.parametrize("drawn", ["- - - - X", "- - - X -"])
def test_a_breach_that_is_younger_than_the_datapoints_to_alarm_waits(drawn: str) -> None:
    assert evaluate_alarm(alarm(3), points(drawn)).state == "OK"


def test_the_verdict_tells_what_decided_it() -> None:
    verdict = evaluate_alarm(alarm(4, 2, TreatMissingData="breaching"), points("- - - 0 - X"))
    assert verdict.state == "ALARM"
    assert [point.value for point in verdict.datapoints] == [1.0, 9.0]
    assert (verdict.filled, verdict.breaching) == (2, 1)


@pytest.mark.parametrize(("comparison", "wanted"), COMPARISONS.items())
def test_every_comparison_knows_what_is_beyond(comparison: str, wanted: tuple[bool, ...]) -> None:
    watched = alarm(ComparisonOperator=comparison)
    found = [evaluate_alarm(watched, [at(0, value)]).state == "ALARM" for value in (4.0, 5.0, 6.0)]
    assert tuple(found) == wanted


@pytest.mark.parametrize(
    ("treatment", "samples", "wanted"),
    [("ignore", 999.0, "OK"), ("ignore", 1000.0, "ALARM"), ("evaluate", 1.0, "ALARM")],
)
def test_a_percentile_of_few_samples_decides_only_where_it_is_evaluated(
    treatment: str, samples: float, wanted: str
) -> None:
    more: dict[str, Any] = {
        "ExtendedStatistic": "p99",
        "EvaluateLowSampleCountPercentile": treatment,
    }
    assert evaluate_alarm(alarm(**more), [at(0, 9.0, samples)]).state == wanted


@pytest.mark.parametrize(
    ("namespace", "stated", "wanted"),
    [
        ("AWS/DynamoDB", None, "ALARM"),
        ("AWS/DynamoDB", "notBreaching", "OK"),
        ("AWS/DynamoDB", "missing", "INSUFFICIENT_DATA"),
        ("AWS/Lambda", None, "INSUFFICIENT_DATA"),
    ],
)
def test_alarms_on_dynamodb_ignore_missing_data_unless_they_say_otherwise(
    namespace: str, stated: str | None, wanted: str
) -> None:
    watched = alarm(state="ALARM", Namespace=namespace, TreatMissingData=stated)
    assert evaluate_alarm(watched, points("- - -")).state == wanted


@st.composite
def situations(draw: st.DrawFn) -> tuple[DeployedAlarm, list[Datapoint | None]]:
    periods = draw(st.integers(1, 5))
    watched = alarm(
        periods,
        draw(st.integers(1, periods)),
        draw(st.sampled_from(STATES)),
        TreatMissingData=draw(st.sampled_from(TREATMENTS)),
    )
    length = periods + EXTRA_PERIODS
    drawn = draw(st.text("0X-", min_size=length, max_size=length))
    return watched, points(drawn)


@given(situations())
def test_with_enough_data_the_latest_periods_alone_decide(
    situation: tuple[DeployedAlarm, list[Datapoint | None]],
) -> None:
    watched, found = situation
    real = [point for point in found if point is not None]
    assume(len(real) >= watched.evaluation_periods)
    latest = real[-watched.evaluation_periods :]
    beyond = sum(point.value > watched.threshold for point in latest)
    wanted = "ALARM" if beyond >= watched.datapoints_to_alarm else "OK"
    assert evaluate_alarm(watched, found).state == wanted


@given(situations())
def test_only_breaches_make_an_alarm_unless_missing_data_are_said_to_be_some(
    situation: tuple[DeployedAlarm, list[Datapoint | None]],
) -> None:
    watched, found = situation
    assume(watched.missing_data != "breaching")
    assume(not any(point is not None and point.value > 5.0 for point in found))
    assert evaluate_alarm(watched, found).state in {"OK", "INSUFFICIENT_DATA", watched.state}
    if any(point is not None for point in found):
        assert evaluate_alarm(watched, found).state == "OK"


@given(situations())
def test_a_further_breach_never_calms_an_alarm(
    situation: tuple[DeployedAlarm, list[Datapoint | None]],
) -> None:
    watched, found = situation
    before = evaluate_alarm(watched, found).state
    assume(before == "ALARM" and watched.state != "ALARM")
    for place, point in enumerate(found):
        if point is not None:
            hotter = [*found[:place], at(place, 9.0), *found[place + 1 :]]
            assert evaluate_alarm(watched, hotter).state == "ALARM"


@given(situations())
def test_missing_data_that_are_no_breach_are_as_if_they_were_within(
    situation: tuple[DeployedAlarm, list[Datapoint | None]],
) -> None:
    watched, found = situation
    assume(watched.missing_data == "notBreaching")
    real = [point for point in found if point is not None][-watched.evaluation_periods :]
    beyond = sum(point.value > watched.threshold for point in real)
    wanted = "ALARM" if beyond >= watched.datapoints_to_alarm else "OK"
    assert evaluate_alarm(watched, found).state == wanted
