"""CloudWatch alarms of tables, functions and the API, and the topics that they publish to.

An alarm is data: what it watches, when it fires, who is notified, what to do. One builder makes
all of them. Throttling is watched by its reason, on each table and each index by itself, because
`TableName` alone never includes what an index refused.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_sns_subscriptions import EmailSubscription
from constructs import Construct

from spillway import keys
from spillway.cdk.settings import AlarmRule, AlarmSettings
from spillway.cdk.tables import ShardedEventTable

__all__ = [
    "AlarmSpec",
    "AlarmTopics",
    "Audience",
    "add_alarms",
    "api_alarms",
    "failed_event_alarms",
    "function_alarms",
    "throttle_alarms",
]


class Audience(Enum):
    """Who is notified of an alarm."""

    SCALER = "scaler"  # of its start only
    PEOPLE = "people"  # of its start and its end


@dataclass(frozen=True, kw_only=True, slots=True)
class AlarmSpec:
    """One alarm on one metric, at or above a threshold.

    No data means that nothing happened. Wrong dimensions give no data either, without an error, so
    `tests/infra` compares names and dimensions with those that AWS publishes.
    """

    name: str
    namespace: str
    metric: str
    dimensions: Mapping[str, str]
    statistic: str
    rule: AlarmRule
    audiences: frozenset[Audience]
    description: str


_AT_OR_ABOVE: Final = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD


def add_alarms(
    scope: Construct,
    specs: Iterable[AlarmSpec],
    *,
    prefix: str,
    topics: Mapping[Audience, sns.ITopic],
) -> list[cloudwatch.Alarm]:
    """Build the alarms; their names are `{prefix}{name}`."""
    return [_alarm(scope, spec, prefix, topics) for spec in specs]


def _alarm(
    scope: Construct, spec: AlarmSpec, prefix: str, topics: Mapping[Audience, sns.ITopic]
) -> cloudwatch.Alarm:
    alarm = cloudwatch.Alarm(
        scope,
        spec.name,
        alarm_name=f"{prefix}{spec.name}",
        alarm_description=spec.description,
        metric=cloudwatch.Metric(
            namespace=spec.namespace,
            metric_name=spec.metric,
            dimensions_map=spec.dimensions,
            statistic=spec.statistic,
            period=Duration.seconds(spec.rule.period),
        ),
        comparison_operator=_AT_OR_ABOVE,
        threshold=spec.rule.threshold,
        evaluation_periods=spec.rule.periods,
        datapoints_to_alarm=spec.rule.datapoints,
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
    )
    for audience in sorted(spec.audiences, key=lambda each: each.value):
        alarm.add_alarm_action(actions.SnsAction(topics[audience]))
    if Audience.PEOPLE in spec.audiences:
        alarm.add_ok_action(actions.SnsAction(topics[Audience.PEOPLE]))
    return alarm


class AlarmTopics(Construct):
    """One topic for the scaler, one for people, and the key of both ($1 a month).

    CloudWatch can't use the key that AWS manages for SNS, so the topics have their own.

    Attributes:
        topics: one for each audience.
    """

    def __init__(self, scope: Construct, construct_id: str, *, people: Iterable[str]) -> None:
        """Build the topics; AWS asks each e-mail address of `people` for its consent."""
        super().__init__(scope, construct_id)
        key = kms.Key(
            self,
            "Key",
            description="Alarm messages of Spillway",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.DESTROY,  # it protects messages for seconds only
        )
        key.add_to_resource_policy(_by_alarms("kms:Decrypt", "kms:GenerateDataKey*", resource="*"))
        self.topics = {
            audience: sns.Topic(
                self, f"{audience.value.capitalize()}Topic", master_key=key, enforce_ssl=True
            )
            for audience in Audience
        }
        for topic in self.topics.values():
            topic.add_to_resource_policy(_by_alarms("sns:Publish", resource=topic.topic_arn))
        for address in people:
            self.topics[Audience.PEOPLE].add_subscription(EmailSubscription(address))


def _by_alarms(*actions: str, resource: str) -> iam.PolicyStatement:
    """Allow this to CloudWatch on behalf of an alarm of this account and region."""
    alarms = f"arn:{Aws.PARTITION}:cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:alarm:*"
    return iam.PolicyStatement(
        principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
        actions=[*actions],
        resources=[resource],
        conditions={
            "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
            "ArnLike": {"aws:SourceArn": alarms},
        },
    )


_SCALER: Final = frozenset({Audience.SCALER})
_PEOPLE: Final = frozenset({Audience.PEOPLE})
_BOTH: Final = _SCALER | _PEOPLE


def throttle_alarms(tables: ShardedEventTable, rules: AlarmSettings) -> Iterator[AlarmSpec]:
    """Yield the alarms of all three tables and their indexes."""
    of_events = _event_rows(rules)
    for watched, rows in (
        (_watched("Events", tables.events), of_events),
        (
            _watched("Events", tables.events, keys.INDEX_NAME),
            (*of_events, _back_pressure_row(rules)),
        ),
        (_watched("Layouts", tables.layouts), _own_rows(rules, _BOTH, "All else waits")),
        (
            _watched("Layouts", tables.layouts, keys.LAYOUT_INDEX_NAME),
            _own_rows(rules, _BOTH, "Changes of layouts wait"),
        ),
        (_watched("Usage", tables.usage), _own_rows(rules, _PEOPLE, "Growth acts late")),
    ):
        yield from _specs(watched, rows)


def function_alarms(
    name: str, function: lambda_.IFunction, rules: AlarmSettings, *, throttles: bool = True
) -> Iterator[AlarmSpec]:
    """Yield a function's alarms; without `throttles` where waiting its turn does no harm."""
    dimensions = {"FunctionName": function.function_name}
    yield AlarmSpec(
        name=f"{name}-Errors",
        namespace="AWS/Lambda",
        metric="Errors",
        dimensions=dimensions,
        statistic="Sum",
        rule=rules.errors,
        audiences=_PEOPLE,
        description=f"The function {name.lower()} failed or ran out of time. Its log says why, by"
        " request.",
    )
    if throttles:
        yield AlarmSpec(
            name=f"{name}-Throttles",
            namespace="AWS/Lambda",
            metric="Throttles",
            dimensions=dimensions,
            statistic="Sum",
            rule=rules.throttles,
            audiences=_PEOPLE,
            description=f"The account has no concurrency left for the function {name.lower()}. Ask"
            " AWS for a higher quota, or slow the API by its stage's settings.",
        )


def failed_event_alarms(queue: sqs.IQueue, rules: AlarmSettings) -> Iterator[AlarmSpec]:
    """Yield the alarm on events whose retries all failed."""
    yield AlarmSpec(
        name="Scaler-FailedEvents",
        namespace="AWS/SQS",
        metric="ApproximateNumberOfMessagesVisible",
        dimensions={"QueueName": queue.queue_name},
        statistic="Maximum",
        rule=rules.errors,
        audiences=_PEOPLE,
        description="The scaler failed on an event again and again. The event waits in the queue;"
        " the schedule looks again anyway. Read the scaler's log, then empty the queue.",
    )


def api_alarms(api: apigateway.IHttpApi, rules: AlarmSettings) -> Iterator[AlarmSpec]:
    """Yield the alarms on what callers of the API see."""
    dimensions = {"ApiId": api.api_id}
    yield AlarmSpec(
        name="Api-ServerErrors",
        namespace="AWS/ApiGateway",
        metric="5xx",
        dimensions=dimensions,
        statistic="Sum",
        rule=rules.server_errors,
        audiences=_PEOPLE,
        description="Callers get 5xx. 503 is storage out of reach: see the throttling alarms and"
        " the ingest function's log; others are errors of functions.",
    )
    yield AlarmSpec(
        name="Api-SlowRequests",
        namespace="AWS/ApiGateway",
        metric="Latency",
        dimensions=dimensions,
        statistic="p99",
        rule=rules.latency,
        audiences=_PEOPLE,
        description="One request in a hundred takes longer than it should, in milliseconds. See"
        " which function, and whether writes wait for throttled keys.",
    )


@dataclass(frozen=True, slots=True)
class _Watched:
    """A table or an index: how its alarms are named, in names and in sentences."""

    name: str
    words: str
    dimensions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _ThrottleRow:
    name: str
    metric: str
    rule: AlarmRule
    audiences: frozenset[Audience]
    description: str  # `{it}` is the table or the index


def _watched(name: str, table: dynamodb.ITableV2, index: str | None = None) -> _Watched:
    of_table = {"TableName": table.table_name}
    words = f"the {name.lower()} table"
    if index is None:
        return _Watched(name, words, of_table)
    of_index = {**of_table, "GlobalSecondaryIndexName": index}
    return _Watched(f"{name}Index", f"{words}'s index {index}", of_index)


def _specs(watched: _Watched, rows: tuple[_ThrottleRow, ...]) -> Iterator[AlarmSpec]:
    for row in rows:
        yield AlarmSpec(
            name=f"{watched.name}-{row.name}",
            namespace="AWS/DynamoDB",
            metric=row.metric,
            dimensions=watched.dimensions,
            statistic="Sum",
            rule=row.rule,
            audiences=row.audiences,
            description=row.description.format(it=watched.words),
        )


def _event_rows(rules: AlarmSettings) -> tuple[_ThrottleRow, ...]:
    return (
        _ThrottleRow(
            "HotWrites",
            "WriteKeyRangeThroughputThrottleEvents",
            rules.hot,
            _SCALER,
            "Writes to a key range of {it} throttle. The scaler finds the series and grows its"
            " layout; nothing to do.",
        ),
        _ThrottleRow(
            "StillHotWrites",
            "WriteKeyRangeThroughputThrottleEvents",
            rules.still_hot,
            _PEOPLE,
            "Writes to a key range of {it} go on throttling although layouts grow. Read the"
            " scaler's log: it names the series and why growth stopped (one hot sharding key, too"
            " few partitions, a bound that is reached).",
        ),
        _ThrottleRow(
            "HotReads",
            "ReadKeyRangeThroughputThrottleEvents",
            rules.reads,
            _BOTH,
            "Reads of a key range of {it} throttle. More shards do not help reads: let DAX serve"
            " them, spread them over time, or read a copy of the index.",
        ),
        *_rows_of_limits("Write", "Writes to", rules),
        *_rows_of_limits("Read", "Reads of", rules),
    )


def _rows_of_limits(kind: str, action: str, rules: AlarmSettings) -> tuple[_ThrottleRow, ...]:
    return (
        _ThrottleRow(
            f"Provisioned{kind}s",
            f"{kind}ProvisionedThroughputThrottleEvents",
            rules.capacity,
            _BOTH,
            f"{action} {{it}} exceed its provisioned capacity. Raise the maximum of auto scaling,"
            " or go on demand; layouts stay.",
        ),
        _ThrottleRow(
            f"Maximum{kind}s",
            f"{kind}MaxOnDemandThroughputThrottleEvents",
            rules.capacity,
            _BOTH,
            f"{action} {{it}} exceed the on-demand maximum that the stage sets. Raise it, or slow"
            " the traffic; layouts stay.",
        ),
        _ThrottleRow(
            f"Account{kind}s",
            f"{kind}AccountLimitThrottleEvents",
            rules.account,
            _BOTH,
            f"{action} {{it}} exceed what the account may use in this region. Ask AWS for a higher"
            " quota; layouts stay.",
        ),
    )


def _back_pressure_row(rules: AlarmSettings) -> _ThrottleRow:
    return _ThrottleRow(
        "BackPressure",
        "WriteThrottleEvents",
        rules.back_pressure,
        _PEOPLE,
        "DynamoDB refuses writes to the table, of all series, because {it} cannot keep up. See"
        " which alarm of the index fires with this one: its key ranges (the scaler grows index"
        " shards) or its capacity.",
    )


def _own_rows(
    rules: AlarmSettings, audiences: frozenset[Audience], effect: str
) -> tuple[_ThrottleRow, ...]:
    return tuple(
        _ThrottleRow(
            f"Throttled{kind}s",
            f"{kind}ThrottleEvents",
            rules.own_tables,
            audiences,
            f"{kind}s of {{it}} throttle. {effect}: look for a function that asks far more often"
            " than others.",
        )
        for kind in ("Write", "Read")
    )
