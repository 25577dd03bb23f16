"""IAM actions of each function on the tables: exactly the calls that it makes.

No other module lists actions on data. A function's actions change with its calls.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import Aws
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

from spillway import keys

__all__ = [
    "ACCESS",
    "DAX_ACCESS",
    "DAX_READS",
    "INSIGHT_RULES",
    "RAISES_CAPACITY",
    "READS_CAPACITY",
    "Access",
    "dax_statement",
    "statements",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """IAM actions of one function, by what they are allowed on."""

    events: tuple[str, ...] = ()
    events_index: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    layouts_index: tuple[str, ...] = ()
    usage: tuple[str, ...] = ()
    insight_rules: tuple[str, ...] = ()  # of the events' table, by their prefix
    alarms: tuple[str, ...] = ()  # of this account and region: they are listed
    anything: tuple[str, ...] = ()  # actions without resources


ACCESS: Final[Mapping[str, Access]] = {
    "ingest": Access(
        events=("dynamodb:BatchWriteItem", "dynamodb:PutItem"),
        layouts=("dynamodb:GetItem", "dynamodb:UpdateItem"),
        usage=("dynamodb:GetItem", "dynamodb:UpdateItem"),
    ),
    "admin": Access(
        events=("dynamodb:DeleteItem",),
        layouts=("dynamodb:GetItem", "dynamodb:UpdateItem"),
    ),
    "query": Access(
        events=("dynamodb:GetItem", "dynamodb:Query"),
        events_index=("dynamodb:Query",),
        layouts=("dynamodb:GetItem",),
    ),
    "scaler": Access(
        events=("dynamodb:DescribeContributorInsights", "dynamodb:DescribeTable"),
        layouts=("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"),
        layouts_index=("dynamodb:Query",),
        usage=("dynamodb:Query",),
        insight_rules=("cloudwatch:GetInsightRuleReport",),
        alarms=("cloudwatch:DescribeAlarms",),
        anything=("cloudwatch:GetMetricData",),
    ),
}

READS_CAPACITY: Final = Access(anything=("cloudwatch:GetMetricData",))
"""What the ingest function may do besides, where writers grow layouts.

Where an endpoint throttles without a reason, these figures tell used-up capacity from a hot key.
"""

RAISES_CAPACITY: Final = Access(events=("dynamodb:UpdateTable",))
"""Further actions of the scaler where the settings let it raise capacity.

UpdateTable has no condition keys: it also changes deletion protection, indexes and billing mode.
"""

# What DAX calls on behalf of its readers. It learns the keys of a table by DescribeTable.
DAX_ACCESS: Final = Access(
    events=("dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:Query"),
    events_index=("dynamodb:Query",),
    layouts=("dynamodb:DescribeTable", "dynamodb:GetItem"),
)
DAX_READS: Final = ("dax:GetItem", "dax:Query")  # of a function that reads through the cluster


INSIGHT_RULES: Final = "DynamoDBContributorInsights-PKT"
"""Prefix of rules that count throttled partition keys; the table's name and a time follow."""


def statements(
    access: Access,
    *,
    events: dynamodb.ITableV2,
    layouts: dynamodb.ITableV2,
    usage: dynamodb.ITableV2,
) -> Iterator[iam.PolicyStatement]:
    """Yield one statement for each resource that the function may use.

    Wildcards stand only where IAM needs them: the names of Contributor Insights' rules end in the
    time of their creation, alarms are listed, and metrics have no resources.
    """
    allowed = (
        (access.events, events.table_arn),
        (access.events_index, f"{events.table_arn}/index/{keys.INDEX_NAME}"),
        (access.layouts, layouts.table_arn),
        (access.layouts_index, f"{layouts.table_arn}/index/{keys.LAYOUT_INDEX_NAME}"),
        (access.usage, usage.table_arn),
        (access.insight_rules, _cloudwatch(f"insight-rule/{INSIGHT_RULES}-{events.table_name}-*")),
        (access.alarms, _cloudwatch("alarm:*")),
        (access.anything, "*"),
    )
    for actions, arn in allowed:
        if actions:
            yield iam.PolicyStatement(actions=list(actions), resources=[arn])


def _cloudwatch(resource: str) -> str:
    return f"arn:{Aws.PARTITION}:cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:{resource}"


def dax_statement(cluster_arn: str) -> iam.PolicyStatement:
    """Return the right to read through a DAX cluster."""
    return iam.PolicyStatement(actions=list(DAX_READS), resources=[cluster_arn])
