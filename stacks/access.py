"""What each function may do with the tables: the one place that lists IAM actions on data.

Exactly the calls that the function makes, no more. A function's actions change with its calls.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

from spillway import keys

__all__ = ["ACCESS", "DAX_ACCESS", "DAX_READS", "Access", "dax_statement", "statements"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """IAM actions of one function, by what they are allowed on."""

    events: tuple[str, ...] = ()
    events_index: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    usage: tuple[str, ...] = ()


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
}

# What DAX asks of DynamoDB for those who read through it; keys of a table by DescribeTable.
DAX_ACCESS: Final = Access(
    events=("dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:Query"),
    events_index=("dynamodb:Query",),
    layouts=("dynamodb:DescribeTable", "dynamodb:GetItem"),
)
DAX_READS: Final = ("dax:GetItem", "dax:Query")  # what a function asks of the cluster


def statements(
    access: Access,
    *,
    events: dynamodb.ITableV2,
    layouts: dynamodb.ITableV2,
    usage: dynamodb.ITableV2,
) -> Iterator[iam.PolicyStatement]:
    """Yield one statement for each resource that the function may use; no wildcards."""
    index_arn = f"{events.table_arn}/index/{keys.INDEX_NAME}"
    allowed = (
        (access.events, events.table_arn),
        (access.events_index, index_arn),
        (access.layouts, layouts.table_arn),
        (access.usage, usage.table_arn),
    )
    for actions, arn in allowed:
        if actions:
            yield iam.PolicyStatement(actions=list(actions), resources=[arn])


def dax_statement(cluster_arn: str) -> iam.PolicyStatement:
    """Return the right to read through a DAX cluster."""
    return iam.PolicyStatement(actions=list(DAX_READS), resources=[cluster_arn])
