"""Whatever arrives is decoded or dropped; nothing raises."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lambdas.alarms.deduplicator import AlarmDeduplicator
from lambdas.alarms.messages import Dropped, Scheduled, decode
from tests.control.messages import direct_event, sns_event
from tests.control.world import alarm
from tests.support.fakes import NOON, FakeClock

AT = NOON.timestamp() + 0.123
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    "AlarmName",
    "NewStateValue",
    "StateChangeTime",
    "Trigger",
    "Records",
    "Sns",
    "Message",
    "source",
    "alarmData",
)
almost = st.dictionaries(st.sampled_from(KEYS), json_values)


@pytest.mark.parametrize("index", [False, True])
def test_an_alarm_is_the_same_by_its_topic_and_directly(index: bool) -> None:
    expected = alarm(at=AT, index=index)
    assert list(decode(sns_event(expected))) == [expected]
    assert list(decode(direct_event(expected))) == [expected]


def test_the_schedule_is_known_by_its_source() -> None:
    event = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}
    assert list(decode(event)) == [Scheduled()]


def test_a_bad_record_leaves_the_others() -> None:
    good = sns_event(alarm(at=AT))["Records"]
    found = list(decode({"Records": [*good, {"Sns": {"Message": "{"}}, 7, *good]}))
    assert [type(each).__name__ for each in found] == [
        "AlarmState",
        "Dropped",
        "Dropped",
        "AlarmState",
    ]


def _changed(**parts: Any) -> str:
    message = json.loads(sns_event(alarm(at=AT))["Records"][0]["Sns"]["Message"])
    return json.dumps({**message, **parts})


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{", "\ud800", "[" * 100_000,
        _changed(StateChangeTime="yesterday"),
        _changed(StateChangeTime="2026-06-01T12:00:00"),
        _changed(Trigger={"Metrics": [{"Id": "m1", "Expression": "1"}]}),
        _changed(Trigger=None),
        _changed(AlarmName=None),
    ],
)  # fmt: skip
def test_messages_that_are_no_alarm_on_one_metric_are_dropped(text: str) -> None:
    (found,) = decode({"Records": [{"Sns": {"Message": text}}]})
    assert isinstance(found, Dropped)


def test_a_direct_alarm_on_metric_math_is_dropped() -> None:
    event = direct_event(alarm(at=AT))
    (query,) = event["alarmData"]["configuration"]["metrics"]
    event["alarmData"]["configuration"]["metrics"] = [query, query]
    (found,) = decode(event)
    assert isinstance(found, Dropped)


@given(json_values | almost | almost.map(lambda value: {"Records": [{"Sns": value}]}))
@example({"source": "aws.cloudwatch"})
@example({"Records": [{"Sns": {"Message": 7}}]})
def test_anything_at_all_is_decoded_or_dropped(event: Any) -> None:
    assert all(isinstance(each, Dropped | Scheduled) for each in decode(event))


@given(json_values | almost)
def test_any_text_published_is_decoded_or_dropped(content: Any) -> None:
    record = {"Sns": {"Message": json.dumps(content)}}
    assert all(isinstance(each, Dropped) for each in decode({"Records": [record]}))


def test_alarms_that_were_handled_or_are_older_or_far_from_the_clock_are_skipped() -> None:
    clock = FakeClock()
    deduplicator = AlarmDeduplicator(clock.now)
    first, second = alarm(at=clock.now()), alarm(at=clock.now() + 1)
    assert deduplicator.skip_reason(second) is None
    assert deduplicator.skip_reason(second) is None  # it failed, and comes again
    deduplicator.mark_handled(second)
    assert deduplicator.skip_reason(second) == "duplicate"
    assert deduplicator.skip_reason(first) == "out of order"
    assert deduplicator.skip_reason(alarm(at=first.at, index=True)) is None
    assert deduplicator.skip_reason(alarm(at=clock.now() - 901, index=True)) == "late"
    assert deduplicator.skip_reason(alarm(at=clock.now() + 901, index=True)) == "ahead of the clock"
