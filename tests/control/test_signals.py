import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway import keys
from spillway.control.monitoring import Signal, SignalKind, parse_signal
from spillway.scaling.policy import ThrottleTarget
from tests.control.world import alarm
from tests.support.memory_table import EVENTS, LAYOUTS

KINDS = {
    "WriteKeyRangeThroughputThrottleEvents": SignalKind.KEY_RANGE,
    "WriteProvisionedThroughputThrottleEvents": SignalKind.PROVISIONED,
    "WriteAccountLimitThrottleEvents": SignalKind.LIMIT,
    "WriteMaxOnDemandThroughputThrottleEvents": SignalKind.LIMIT,
    "ReadKeyRangeThroughputThrottleEvents": SignalKind.READS,
    "ReadProvisionedThroughputThrottleEvents": SignalKind.READS,
    "ReadAccountLimitThrottleEvents": SignalKind.READS,
    "ReadMaxOnDemandThroughputThrottleEvents": SignalKind.READS,
    "ReadThrottleEvents": SignalKind.READS,
}


@pytest.mark.parametrize(("metric", "kind"), KINDS.items())
@pytest.mark.parametrize("index", [False, True])
def test_an_alarm_is_known_by_its_metric_and_its_dimensions(
    metric: str, kind: SignalKind, index: bool
) -> None:
    target = ThrottleTarget.INDEX if index else ThrottleTarget.TABLE
    found = parse_signal(alarm(metric, index=index), events=EVENTS, layouts=LAYOUTS)
    assert found == Signal(kind, target, metric)


@pytest.mark.parametrize("metric", [*KINDS, "WriteThrottleEvents", "ThrottledRequests"])
@pytest.mark.parametrize("more", [{}, {"Operation": "GetItem"}, {"GlobalSecondaryIndexName": "i"}])
def test_whatever_throttles_on_the_layout_table_is_about_layouts(
    metric: str, more: dict[str, str]
) -> None:
    found = parse_signal(
        alarm(metric, dimensions={"TableName": LAYOUTS, **more}), events=EVENTS, layouts=LAYOUTS
    )
    assert found == Signal(SignalKind.LAYOUTS, ThrottleTarget.TABLE, metric)


@pytest.mark.parametrize(
    "other",
    [
        alarm(dimensions={"TableName": "another"}),
        alarm(dimensions={"TableName": EVENTS, "GlobalSecondaryIndexName": "another"}),
        alarm(dimensions={"TableName": EVENTS, "Operation": "PutItem"}),
        alarm(dimensions={"GlobalSecondaryIndexName": keys.INDEX_NAME}),
        alarm(dimensions={"FunctionName": "ingest"}),
        alarm("ConsumedWriteCapacityUnits"),
        alarm("WriteThrottleEvents"),
    ],
)
def test_alarms_about_anything_else_say_nothing(other: object) -> None:
    assert parse_signal(other, events=EVENTS, layouts=LAYOUTS) is None  # type: ignore[arg-type]


@given(st.text(), st.dictionaries(st.text(), st.text()))
def test_no_alarm_is_too_strange(metric: str, dimensions: dict[str, str]) -> None:
    strange = alarm(metric, dimensions={"TableName": EVENTS, **dimensions})
    assert parse_signal(strange, events=EVENTS, layouts="-") is None or strange.metric in KINDS
