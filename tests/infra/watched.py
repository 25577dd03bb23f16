"""Alarms of a template as data, and the metrics that are published: by the local cloud's meters, by AWS's documentation."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from dynamoheat import Heat, IndexSettings, Key, ModelParameters, TableSettings
from dynamoheat.reasons import ThrottleReason
from local.cloudwatch.store import MetricStore, MetricTime
from local.cloudwatch.throughput import ThroughputMetrics
from tests.infra.synthesis import Synthesis, of_type, tables, written

API = (("ApiId", "<AWS::ApiGatewayV2::Api>"),)
QUEUE = (("QueueName", "<AWS::SQS::Queue>"),)

Dimensions = tuple[tuple[str, str], ...]


class Rule(NamedTuple):
    """Statistic, seconds of a period, threshold, datapoints of periods."""

    statistic: str
    period: int
    threshold: float
    datapoints: int
    periods: int


@dataclass(frozen=True)
class Alarm:
    """An alarm of a template, references resolved."""

    namespace: str
    metric: str
    dimensions: Dimensions
    rule: Rule
    told: str
    comparison: str = "GreaterThanOrEqualToThreshold"
    missing: str = "notBreaching"

    @property
    def watched(self) -> tuple[str, str, Dimensions]:
        return self.namespace, self.metric, self.dimensions


def deployed(synthesis: Synthesis, prefix: str | None = None) -> dict[str, Alarm]:
    """Return the alarms of a template by their names without the prefix, by default the stack's."""
    prefix = prefix or f"Spillway-{synthesis.stage.name}-service-"
    found: dict[str, Alarm] = {}
    subscriptions = [s["Properties"] for s in of_type(synthesis.service, "AWS::SNS::Subscription")]
    (scaler_topic,) = [s["TopicArn"] for s in subscriptions if s["Protocol"] == "lambda"]
    for resource in of_type(synthesis.service, "AWS::CloudWatch::Alarm"):
        stated = resource["Properties"]
        name = stated["AlarmName"].removeprefix(prefix)
        assert name not in found
        found[name] = Alarm(
            namespace=stated["Namespace"],
            metric=stated["MetricName"],
            dimensions=tuple(
                sorted((d["Name"], written(synthesis, d["Value"])) for d in stated["Dimensions"])
            ),
            rule=Rule(
                stated.get("Statistic") or stated["ExtendedStatistic"],
                stated["Period"],
                stated["Threshold"],
                stated["DatapointsToAlarm"],
                stated["EvaluationPeriods"],
            ),
            told=_told(stated, scaler_topic),
            comparison=stated["ComparisonOperator"],
            missing=stated["TreatMissingData"],
        )
    return found


def _told(stated: Any, scaler_topic: Any) -> str:
    """Say who is told; people hear of the end too, and nobody of missing data."""
    starts = {"scaler" if each == scaler_topic else "people" for each in stated["AlarmActions"]}
    ends = {"scaler" if each == scaler_topic else "people" for each in stated.get("OKActions", ())}
    assert ends == starts - {"scaler"}
    assert "InsufficientDataActions" not in stated
    return " ".join(sorted(starts))


# What is published, from elsewhere: by the local cloud's meters for DynamoDB, by AWS's documentation for others.

# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
DOCUMENTED = {
    *(
        ("AWS/Lambda", metric, (("FunctionName", f"<{name}>"),))
        for metric in ("Invocations", "Errors", "Throttles", "Duration", "DeadLetterErrors")
        for name in ("ingest", "query", "admin", "scaler")
    ),
    *(
        ("AWS/ApiGateway", metric, API)
        for metric in ("4xx", "5xx", "Count", "IntegrationLatency", "Latency", "DataProcessed")
    ),
    *(
        ("AWS/SQS", metric, QUEUE)
        for metric in ("ApproximateNumberOfMessagesVisible", "NumberOfMessagesSent")
    ),
}


def published(synthesis: Synthesis) -> set[tuple[str, str, Dimensions]]:
    """Let the local cloud publish the metrics of the template's tables, with throttles of every reason."""
    heat, store, time = Heat(ModelParameters()), MetricStore(), MetricTime()
    for name, table in tables(synthesis).items():
        indexes = [
            IndexSettings(name=index["IndexName"], key=Key("any"))
            for index in table["Properties"].get("GlobalSecondaryIndexes", ())
        ]
        settings = TableSettings(name=f"<{name}>", key=Key("any"), indexes=tuple(indexes))
        heat.create_table(settings, 0.0)
        for resource in heat.tables[settings.name].resources():
            side = "Table" if resource.index is None else "Index"
            for reason in (each for each in ThrottleReason if each.startswith(side)):
                resource.meter.slot.throttled[reason] += 1
    ThroughputMetrics(heat, store, time).collect(120.0)
    return {
        (metric.namespace, metric.name, tuple(sorted(metric.dimensions)))
        for metric in store.metrics()
    }


def silent(alarms: dict[str, Alarm], known: set[tuple[str, str, Dimensions]]) -> set[str]:
    """Return the alarms that would never see a datum."""
    return {name for name, alarm in alarms.items() if alarm.watched not in known}
