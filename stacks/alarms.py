"""Alarms as data: what is watched, when it fires, who is told, what to do. One builder for all of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from stacks.settings import AlarmRule

__all__ = ["AlarmSpec", "Audience", "add_alarms"]


class Audience(Enum):
    """Who hears of an alarm."""

    SCALER = "scaler"  # of its start only
    PEOPLE = "people"  # of its start and its end


@dataclass(frozen=True, kw_only=True, slots=True)
class AlarmSpec:
    """One alarm on one metric, at or above a threshold. No data means that nothing happened.

    Wrong dimensions give no data either, silently: `tests/infra` holds names and dimensions against those that are published.
    """

    name: str
    namespace: str
    metric: str
    dimensions: Mapping[str, str]
    statistic: str
    rule: AlarmRule
    told: frozenset[Audience]
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
    for told in sorted(spec.told, key=lambda who: who.value):
        alarm.add_alarm_action(actions.SnsAction(topics[told]))
    if Audience.PEOPLE in spec.told:
        alarm.add_ok_action(actions.SnsAction(topics[Audience.PEOPLE]))
    return alarm
