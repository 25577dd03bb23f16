"""CloudWatch's metric calls: data put are read back, and bad requests get its own errors."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pytest

from local.cloudwatch import metric_api as data
from local.cloudwatch import metric_api as reading
from local.cloudwatch.metric_store import MetricStore, MetricTime
from local.cloudwatch.requests import (
    CloudWatchError,
    CloudWatchRequest,
    Instant,
    error_reply,
    invalid_value,
    is_cloudwatch,
    parse_request,
    success_reply,
)

NOW = 1000.0
METRIC = {"Namespace": "N", "MetricName": "M", "Dimensions": [{"Name": "T", "Value": "a"}]}
RANGE = {"StartTime": 0, "EndTime": 600}


class Metrics:
    """A store behind the calls, with a time scale."""

    def __init__(self, scale: float = 1.0) -> None:
        self.store = MetricStore()
        self.time = MetricTime(scale)

    def put(self, *entries: Mapping[str, Any], namespace: Any = "N") -> None:
        asked = {"Namespace": namespace, "MetricData": list(entries)}
        data.put_metric_data(asked, self.store, self.time, NOW)

    def statistics(self, **more: Any) -> Any:
        asked = {**METRIC, **RANGE, "Period": 60, "Statistics": ["Sum"], **more}
        return reading.get_metric_statistics(asked, self.store, self.time)

    def points(self, **more: Any) -> list[tuple[float, float]]:
        return [(each["Timestamp"], each["Sum"]) for each in self.statistics(**more)["Datapoints"]]

    def data(self, *queries: Mapping[str, Any], **more: Any) -> Any:
        asked = {"MetricDataQueries": list(queries), **RANGE, **more}
        return reading.get_metric_data(asked, self.store, self.time)["MetricDataResults"]


def datum(value: float, at: float, **more: Any) -> dict[str, Any]:
    named = {"MetricName": "M", "Dimensions": METRIC["Dimensions"]}
    return {**named, "Value": value, "Timestamp": at, **more}


def query(name: str, **more: Any) -> dict[str, Any]:
    return {"Id": name, "MetricStat": {"Metric": METRIC, "Period": 60, "Stat": "Sum", **more}}


@pytest.fixture
def metrics() -> Metrics:
    made = Metrics()
    made.put(datum(1, 65), datum(2, 70), datum(4, 130, Unit="Count"))
    return made


def test_statistics_are_by_period_from_the_start_on(metrics: Metrics) -> None:
    assert metrics.points() == [(60, 3), (120, 4)]
    assert metrics.points(Period=300) == [(0, 7)]
    assert metrics.points(StartTime=119, Period=120) == [(60, 7)]
    assert metrics.points(StartTime=120) == [(120, 4)]
    assert metrics.points(EndTime=120) == [(60, 3)]
    assert metrics.points(Unit="Count") == [(120, 4)]
    assert metrics.points(Dimensions=[]) == []


def test_statistics_of_every_kind_come_together(metrics: Metrics) -> None:
    wanted = ["SampleCount", "Average", "Sum", "Minimum", "Maximum"]
    found = metrics.statistics(Statistics=wanted, ExtendedStatistics=["p50"], EndTime=120)
    assert found == {
        "Label": "M",
        "Datapoints": [
            {
                "Timestamp": 60.0,
                "Unit": "Count",
                "SampleCount": 2,
                "Average": 1.5,
                "Sum": 3,
                "Minimum": 1,
                "Maximum": 2,
                "ExtendedStatistics": {"p50": 1.5},
            }
        ],
    }


def test_values_with_counts_and_statistic_sets_are_data_too() -> None:
    metrics = Metrics()
    named = {"MetricName": "M", "Dimensions": METRIC["Dimensions"], "Timestamp": 5}
    metrics.put({**named, "Values": [1, 2], "Counts": [3, 4]})
    sets = {"SampleCount": 2, "Sum": 10, "Minimum": 4, "Maximum": 6}
    metrics.put({**named, "StatisticValues": sets})
    (found,) = metrics.statistics(Statistics=["SampleCount", "Sum", "Maximum"])["Datapoints"]
    assert (found["SampleCount"], found["Sum"], found["Maximum"]) == (9, 21, 6)


def test_data_without_a_time_are_of_now() -> None:
    metrics = Metrics()
    metrics.put({"MetricName": "M", "Value": 1, "Dimensions": METRIC["Dimensions"]})
    assert metrics.points(EndTime=NOW + 1) == [(960, 1)]


def test_periods_are_as_short_as_the_time_scale_makes_them() -> None:
    metrics = Metrics(scale=60)
    metrics.put(datum(1, 1.2), datum(2, 1.8), datum(4, 2.1))
    assert metrics.points(EndTime=10) == [(1, 3), (2, 4)]


def test_metric_data_come_newest_first_unless_asked_otherwise(metrics: Metrics) -> None:
    assert metrics.data(query("a")) == [
        {
            "Id": "a",
            "Label": "M",
            "StatusCode": "Complete",
            "Timestamps": [120, 60],
            "Values": [4, 3],
        }
    ]
    (found,) = metrics.data(query("a"), ScanBy="TimestampAscending")
    assert found["Values"] == [3, 4]


def test_only_the_queries_that_are_to_be_returned_are(metrics: Metrics) -> None:
    hidden = {**query("a"), "ReturnData": False}
    (found,) = metrics.data(hidden, {**query("b"), "Label": "shown"})
    assert (found["Id"], found["Label"], found["Values"]) == ("b", "shown", [4, 3])


def test_each_query_has_its_own_period(metrics: Metrics) -> None:
    found = metrics.data(query("a"), query("b", Period=300))
    assert [each["Values"] for each in found] == [[4, 3], [7]]


def test_metrics_are_listed_by_namespace_name_and_dimensions(metrics: Metrics) -> None:
    metrics.put({"MetricName": "Other", "Value": 1})
    names = {
        (): ["M", "Other"],
        (("Namespace", "N"), ("MetricName", "M")): ["M"],
        (("Namespace", "X"),): [],
    }
    for asked, wanted in names.items():
        found = reading.list_metrics(dict(asked), metrics.store)["Metrics"]
        assert [each["MetricName"] for each in found] == wanted
    for pair, wanted in (({"Name": "T"}, ["M"]), ({"Name": "T", "Value": "b"}, [])):
        found = reading.list_metrics({"Dimensions": [pair]}, metrics.store)["Metrics"]
        assert [each["MetricName"] for each in found] == wanted
    assert reading.list_metrics({"MetricName": "M"}, metrics.store)["Metrics"] == [METRIC]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({}, "MissingParameter"),
        ({"MetricName": "M"}, "InvalidParameterCombination"),
        ({"MetricName": "M", "Value": 1, "Values": [1]}, "InvalidParameterCombination"),
        ({"MetricName": "M", "Value": "much"}, "InvalidParameterValue"),
        ({"MetricName": "M", "Value": float("nan")}, "InvalidParameterValue"),
        ({"MetricName": "M", "Values": []}, "InvalidParameterValue"),
        ({"MetricName": "M", "Values": [1], "Counts": [1, 2]}, "InvalidParameterValue"),
        ({"MetricName": "M", "Value": 1, "Timestamp": "today"}, "InvalidParameterValue"),
        ({"MetricName": "M", "Value": 1, "StorageResolution": 5}, "InvalidParameterValue"),
        ({"MetricName": "M", "Value": 1, "Dimensions": [{"Name": "A"}]}, "MissingParameter"),
        ({"MetricName": "M", "Value": 1, "Dimensions": "A"}, "InvalidParameterValue"),
        ({"MetricName": "M", "StatisticValues": {"Sum": 1}}, "MissingParameter"),
    ],
)
def test_odd_data_are_refused_and_none_of_their_request_is_kept(
    entry: dict[str, Any], code: str
) -> None:
    metrics = Metrics()
    with pytest.raises(CloudWatchError) as refusal:
        metrics.put({"MetricName": "good", "Value": 1}, entry)
    assert refusal.value.code == code
    assert metrics.store.metrics() == []


@pytest.mark.parametrize("asked", [{}, {"Namespace": "N"}, {"Namespace": "N", "MetricData": []}])
def test_data_that_are_missing_are_missed(asked: dict[str, Any]) -> None:
    with pytest.raises(CloudWatchError) as refusal:
        data.put_metric_data(asked, MetricStore(), MetricTime(), NOW)
    assert refusal.value.code == "MissingParameter"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"Namespace": None}, "MissingParameter"),
        ({"Period": None}, "MissingParameter"),
        ({"Period": 61}, "InvalidParameterValue"),
        ({"Period": 0}, "InvalidParameterValue"),
        ({"StartTime": 600}, "InvalidParameterValue"),
        ({"Statistics": ["Mean"]}, "InvalidParameterValue"),
        ({"Statistics": []}, "InvalidParameterCombination"),
        ({"ExtendedStatistics": ["tm99"]}, "InvalidParameterValue"),
        ({"EndTime": 10**6}, "InvalidParameterCombination"),
    ],
)
def test_odd_reads_are_refused(metrics: Metrics, more: dict[str, Any], code: str) -> None:
    with pytest.raises(CloudWatchError) as refusal:
        metrics.statistics(**more)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    "queries",
    [
        [query("a"), {"Id": "e", "Expression": "a * 2"}],
        [query("a"), query("a")],
        [{"Id": "a"}],
        [query("a") | {"Expression": "1"}],
    ],
)
def test_odd_queries_are_refused(metrics: Metrics, queries: list[dict[str, Any]]) -> None:
    with pytest.raises(CloudWatchError) as refusal:
        metrics.data(*queries)
    assert refusal.value.code == "ValidationError"


JSON_TARGET = {"X-Amz-Target": "GraniteServiceVersion20100801.ListMetrics"}
QUERY_SIGNED = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=a/20300101/us-east-1/monitoring/aws4_request"
}
CBOR_PATH = "/service/GraniteServiceVersion20100801/operation/ListMetrics"


def test_requests_for_cloudwatch_are_known_by_their_protocol() -> None:
    assert is_cloudwatch("/", JSON_TARGET)
    assert is_cloudwatch("/", QUERY_SIGNED)
    assert is_cloudwatch(CBOR_PATH, {})
    assert not is_cloudwatch("/", {"X-Amz-Target": "DynamoDB_20120810.ListTables"})
    assert parse_request("/", JSON_TARGET, b"{}") == CloudWatchRequest("ListMetrics", "json", b"{}")
    body = b"Action=ListMetrics&Version=2010-08-01"
    assert parse_request("/", QUERY_SIGNED, body) == CloudWatchRequest("ListMetrics", "query", body)


def test_query_requests_nest_by_their_names() -> None:
    fields = {
        "Action": "PutMetricData",
        "Namespace": "N",
        "MetricData.member.2.MetricName": "second",
        "MetricData.member.1.MetricName": "first",
        "MetricData.member.1.Dimensions.member.1.Name": "A",
        "MetricData.member.1.Values.member.10": "3",
        "MetricData.member.1.Values.member.9": "2",
        "MetricData.member.1.StatisticValues.Sum": "1.5",
    }
    found = CloudWatchRequest("PutMetricData", "query", urlencode(fields).encode()).parameters()
    assert found["MetricData"] == [
        {
            "MetricName": "first",
            "Dimensions": [{"Name": "A"}],
            "Values": ["2", "3"],
            "StatisticValues": {"Sum": "1.5"},
        },
        {"MetricName": "second"},
    ]


def test_query_answers_are_xml() -> None:
    asked = CloudWatchRequest("GetMetricStatistics", "query", b"")
    content = {"Label": "a<b", "Datapoints": [{"Timestamp": Instant(60.5), "Sum": 1.0}]}
    body = success_reply(asked, content).body
    space = {"c": "http://monitoring.amazonaws.com/doc/2010-08-01/"}
    found = ET.fromstring(body).find("c:GetMetricStatisticsResult", space)  # noqa: S314  # our own
    assert found is not None
    assert found.findtext("c:Label", None, space) == "a<b"
    stamp = found.findtext("c:Datapoints/c:member/c:Timestamp", None, space)
    assert stamp == "1970-01-01T00:01:00.500000Z"


@pytest.mark.parametrize(
    ("protocol", "body"),
    [("json", b"{"), ("json", b"[]"), ("cbor", b"\xa0"), ("query", b"A=1&A.b=2")],
)
def test_malformed_bodies_are_refused(protocol: str, body: bytes) -> None:
    with pytest.raises(CloudWatchError):
        CloudWatchRequest("ListMetrics", protocol, body).parameters()


def test_refusals_carry_the_code_that_each_protocol_shows() -> None:
    error = invalid_value("No <good>.")
    told = error_reply(CloudWatchRequest("X", "json", b""), error)
    assert told.status == 400
    assert json.loads(told.body)["__type"].endswith("#InvalidParameterValueException")
    assert told.headers["x-amzn-query-error"] == "InvalidParameterValue;Sender"
    xml = error_reply(CloudWatchRequest("X", "query", b""), error).body.decode()
    assert "<Code>InvalidParameterValue</Code><Message>No &lt;good&gt;.</Message>" in xml
