"""What a stage costs an hour, estimated from what it consumes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_

from stacks.config import Stage
from stacks.graphs import curve, sum_of
from stacks.prices import HOURS_OF_A_MONTH, PRICES
from stacks.settings import Provisioned

__all__ = ["Dimensions", "cost_curves", "fixed_cost_an_hour"]

Dimensions = Mapping[str, str]
"""Of a table or an index, as its metrics have them."""

_HOUR: Final = Duration.hours(1)


def cost_curves(
    stage: Stage,
    *,
    events: Sequence[Dimensions],
    others: Sequence[Dimensions],
    functions: Mapping[str, lambda_.IFunction],
    api: apigateway.IHttpApi,
) -> Iterator[cloudwatch.IMetric]:
    """Yield dollars an hour: of writes, of reads, of functions, of the API.

    `events` are the dimensions of the events' table and its index, `others` those of tables that are always on demand.
    """
    yield _capacity("Write", "writes", stage, events, others)
    yield _capacity("Read", "reads", stage, events, others)
    yield _functions(stage, functions)
    count = curve("AWS/ApiGateway", "Count", {"ApiId": api.api_id}, "requests", period=_HOUR)
    price = PRICES.million_requests / 1e6
    yield sum_of({"api": (price, count)}, "API", _HOUR)


def fixed_cost_an_hour(stage: Stage) -> float:
    """Return what DAX costs an hour, used or not; 0 without it, or where its price is not listed."""
    if stage.cache is None:
        return 0.0
    month = PRICES.dax_month(stage.cache.node_type, stage.cache.nodes)
    return 0.0 if month is None else month / HOURS_OF_A_MONTH


def _capacity(
    kind: str, label: str, stage: Stage, events: Sequence[Dimensions], others: Sequence[Dimensions]
) -> cloudwatch.MathExpression:
    of_request = (PRICES.million_writes if kind == "Write" else PRICES.million_reads) / 1e6
    of_hour = PRICES.write_hour if kind == "Write" else PRICES.read_hour
    provisioned = isinstance(stage.capacity, Provisioned)
    weights = {}
    for number, dimensions in enumerate((*events, *others)):
        by_hour = provisioned and number < len(events)
        metric = f"{'Provisioned' if by_hour else 'Consumed'}{kind}CapacityUnits"
        statistic = "Average" if by_hour else "Sum"
        weights[f"{kind.lower()}{number}"] = (
            of_hour if by_hour else of_request,
            curve("AWS/DynamoDB", metric, dimensions, metric, statistic=statistic, period=_HOUR),
        )
    return sum_of(weights, label, _HOUR)


def _functions(
    stage: Stage, functions: Mapping[str, lambda_.IFunction]
) -> cloudwatch.MathExpression:
    of_millisecond = PRICES.gigabyte_second * stage.functions.memory_mb / 1_024 / 1_000
    weights = {}
    for name, function in functions.items():
        for metric, price in (
            ("Duration", of_millisecond),
            ("Invocations", PRICES.million_calls / 1e6),
        ):
            dimensions = {"FunctionName": function.function_name}
            weights[f"{name}{metric}"] = (
                price,
                curve("AWS/Lambda", metric, dimensions, f"{name} {metric}", period=_HOUR),
            )
    return sum_of(weights, "functions", _HOUR)
