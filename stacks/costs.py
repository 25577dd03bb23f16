"""Estimate what a stage costs an hour from what it consumes, by the prices of us-east-1.

Other regions cost more, and prices change.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_

from spillway.cdk.settings import Provisioned
from stacks.config import Stage
from stacks.graphs import curve, sum_of

__all__ = [
    "HOURS_OF_A_MONTH",
    "PRICES",
    "Dimensions",
    "Prices",
    "cost_curves",
    "fixed_cost_an_hour",
]


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

    `events` are the dimensions of the events' table and its index, `others` those of tables that
    are always on demand.
    """
    yield _capacity("Write", "writes", stage, events, others)
    yield _capacity("Read", "reads", stage, events, others)
    yield _functions(stage, functions)
    count = curve("AWS/ApiGateway", "Count", {"ApiId": api.api_id}, "requests", period=_HOUR)
    price = PRICES.million_requests / 1e6
    yield sum_of({"api": (price, count)}, "API", _HOUR)


def fixed_cost_an_hour(stage: Stage) -> float:
    """Return what DAX costs an hour, used or not; 0 without DAX or without its price."""
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


HOURS_OF_A_MONTH: Final = 730


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """US dollars.

    Attributes:
        as_of: when these were looked up.
        million_writes, million_reads: on-demand request units.
        write_hour, read_hour: provisioned capacity units.
        dax_hour: a node of each type.
        million_calls, gigabyte_second: of Lambda, on ARM.
        million_requests: of the HTTP API.
    """

    as_of: str
    million_writes: float
    million_reads: float
    write_hour: float
    read_hour: float
    dax_hour: Mapping[str, float] = field(hash=False)
    million_calls: float
    gigabyte_second: float
    million_requests: float

    def dax_month(self, node_type: str, nodes: int) -> float | None:
        """Return what a cluster costs a month, used or not; None for types without a price."""
        hour = self.dax_hour.get(node_type)
        return None if hour is None else hour * nodes * HOURS_OF_A_MONTH


PRICES: Final = Prices(
    as_of="April 2026",
    million_writes=0.625,
    million_reads=0.125,
    write_hour=0.00065,
    read_hour=0.00013,
    dax_hour={"dax.t3.small": 0.04},
    million_calls=0.20,
    gigabyte_second=0.0000133334,
    million_requests=1.00,
)
