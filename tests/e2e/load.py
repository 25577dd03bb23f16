"""Steady traffic on one series, and what the deployed parts say of it."""

import json
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event as Signal
from time import monotonic
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

from local.cloud import Cloud
from spillway import Event, EventStore, Runtime, Settings
from spillway.layouts.model import Layout
from spillway.settings import Growth
from tests.e2e.calls import request

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["Deployed", "Watch", "until"]

_WRITES = 8.0  # a second
_PATIENCE = 400.0  # seconds
_INDEX = "GSI1-Read-Aggregator"
_METRIC = "WriteKeyRangeThroughputThrottleEvents"


class Deployed:
    """The tables, alarms and topics of a cloud, and writers of its series that leave all growth to the scaler."""

    def __init__(self, cloud: Cloud, partition_wcu: float) -> None:
        once = Config(retries={"total_max_attempts": 1}, max_pool_connections=20)
        settings = cloud.client_settings()
        self._api = cloud.api_url
        names = cloud.outputs["Spillway-local-storage"]
        self.table = names["EventsTable"]
        self.layouts = names["LayoutsTable"]
        self.dynamodb: DynamoDBClient = boto3.client("dynamodb", config=once, **settings)
        self.cloudwatch: CloudWatchClient = boto3.client("cloudwatch", **settings)
        self.sns: Any = boto3.client("sns", **settings)
        self.sqs: Any = boto3.client("sqs", **settings)
        self.logs: Any = boto3.client("logs", **settings)
        self.now = Runtime().now
        growth = Growth(policy=None, partition_wcu=partition_wcu)
        self.store = EventStore(
            self.dynamodb,
            table=self.table,
            layouts=self.layouts,
            usage=names["UsageTable"],
            settings=Settings(layout_ttl=0.5, growth=growth),
        )

    @contextmanager
    def traffic(
        self, series: str, events_a_second: float, *, over_http: bool = False
    ) -> Generator[None]:
        """Write to a series, steadily, until the block ends: by the library, or through the API."""
        over = Signal()
        send = self._post if over_http else self._write
        writer = threading.Thread(target=_repeat, args=(send, series, events_a_second, over))
        writer.start()
        try:
            yield
        finally:
            over.set()
            writer.join()

    def _write(self, series: str, count: int) -> None:
        now = datetime.fromtimestamp(self.now(), UTC)
        self.store.write(
            [Event(series=series, time=now, payload={}) for _ in range(count)], timeout=0.15
        )

    def _post(self, series: str, count: int) -> None:
        now = datetime.fromtimestamp(self.now(), UTC).isoformat()
        events = [{"series": series, "time": now, "payload": {}}] * count
        body = json.dumps({"events": events}).encode()
        json_body = {"content-type": "application/json"}
        answer = request(self._api, "POST", "/v1/events", body=body, headers=json_body)
        assert answer.status in {200, 207, 429}, answer

    def layout(self, series: str) -> Layout:
        found = self.store.layout(series)
        assert found is not None
        return found

    def counts(self, series: str) -> tuple[int, int]:
        """Return shards and index shards, (0, 0) of a series that nobody has written to."""
        found = self.store.layout(series)
        return (0, 0) if found is None else (found.current.shards, found.current.index_shards)

    def layout_versions(self) -> Mapping[str, str]:
        items = self.dynamodb.scan(TableName=self.layouts, ConsistentRead=True)["Items"]
        return {str(item["series"]["S"]): str(item["version"]["N"]) for item in items}

    def throttled(self, since: float, *, index: bool = False) -> float:
        """Return how many writes key ranges throttled in the minutes of metrics that began since a time."""
        dimensions = [{"Name": "TableName", "Value": self.table}]
        if index:
            dimensions.append({"Name": "GlobalSecondaryIndexName", "Value": _INDEX})
        found = self.cloudwatch.get_metric_statistics(
            Namespace="AWS/DynamoDB",
            MetricName=_METRIC,
            Dimensions=dimensions,  # type: ignore[arg-type]
            StartTime=datetime.fromtimestamp(since, UTC),
            EndTime=datetime.fromtimestamp(self.now() + 1, UTC),
            Period=60,
            Statistics=["Sum"],
        )["Datapoints"]
        return sum(each["Sum"] for each in found if each["Timestamp"].timestamp() >= since)

    def alarm(self, name: str) -> Any:
        """Return the alarm whose name ends so."""
        return next(
            each
            for page in self.cloudwatch.get_paginator("describe_alarms").paginate()
            for each in page["MetricAlarms"]
            if each["AlarmName"].endswith(f"-{name}")
        )

    def is_on(self, name: str) -> bool:
        return bool(self.alarm(name)["StateValue"] == "ALARM")

    def starts(self, name: str) -> int:
        """Return how often an alarm has gone off."""
        history = self.cloudwatch.describe_alarm_history(
            AlarmName=self.alarm(name)["AlarmName"], HistoryItemType="StateUpdate", MaxRecords=100
        )["AlarmHistoryItems"]
        return sum(each["HistorySummary"].endswith("to ALARM") for each in history)

    def scaler_log(self, since: float) -> list[str]:
        """Return what the scaler has logged since a time."""
        groups = self.logs.describe_log_groups()["logGroups"]
        (name,) = [each["logGroupName"] for each in groups if "scalerLogs" in each["logGroupName"]]
        events = self.logs.filter_log_events(logGroupName=name, startTime=int(since * 1_000))
        return [each["message"] for each in events["events"]]


def _repeat(
    send: Callable[[str, int], None], series: str, events_a_second: float, over: Signal
) -> None:
    at = monotonic()
    while not over.is_set():
        send(series, round(events_a_second / _WRITES))
        at = max(at + 1 / _WRITES, monotonic() - 0.2)
        over.wait(max(0.0, at - monotonic()))


@dataclass
class Watch:
    """A stopwatch that keeps what it is told."""

    began: float
    lines: list[str]

    def note(self, what: str, at: float | None = None) -> None:
        seconds = (monotonic() if at is None else at) - self.began
        self.lines.append(f"{seconds:6.1f} s  {what}")


def until(reached: Callable[[], object]) -> None:
    """Wait until something is so; ten to forty seconds are usual."""
    deadline = monotonic() + _PATIENCE
    while not reached():
        assert monotonic() < deadline, reached
        Signal().wait(0.1)
