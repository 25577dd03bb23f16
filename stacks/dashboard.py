"""The dashboard of a stage: events, throttling and its reasons, layouts, capacity, costs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from aws_cdk import Aws, Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from spillway import keys
from spillway.cdk.tables import ShardedEventTable
from stacks.config import Stage
from stacks.costs import HOURS_OF_A_MONTH, PRICES, cost_curves, fixed_cost_an_hour
from stacks.graphs import HEIGHT, cache_graphs, capacity_graphs, curve, graph, per_second

__all__ = ["DashboardInputs", "ServiceDashboard"]

_REASONS = {
    "KeyRangeThroughput": "hot key range",
    "ProvisionedThroughput": "provisioned capacity",
    "MaxOnDemandThroughput": "on-demand maximum",
    "AccountLimit": "account limit",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class DashboardInputs:
    """The resources that a dashboard shows. `cluster` is the name of DAX's cluster."""

    tables: ShardedEventTable
    functions: Mapping[str, lambda_.Function]  # by their names in `lambdas`
    api: apigateway.IHttpApi
    cluster: str | None


_DECISION = (
    "@timestamp",
    "scaling.series",
    "scaling.kind",
    "scaling.new_shards",
    "scaling.new_index_shards",
    "scaling.reason",
    "scaling.evidence",
)


class ServiceDashboard(Construct):
    """One dashboard, top to bottom: health, hot keys, layouts, capacity, costs."""

    def __init__(
        self, scope: Construct, construct_id: str, *, stage: Stage, inputs: DashboardInputs
    ) -> None:
        """Build it.

        Names of dashboards are unique in an account, over all regions, so the name holds both the
        stage and the region.
        """
        super().__init__(scope, construct_id)
        self._stage = stage
        self._inputs = inputs
        self._table = {"TableName": inputs.tables.events.table_name}
        self._index = {**self._table, "GlobalSecondaryIndexName": keys.INDEX_NAME}
        dashboard = cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=f"Spillway-{stage.name}-{Aws.REGION}",
            default_interval=Duration.hours(3),
        )
        dashboard.add_widgets(*self._events(), *self._latency())
        dashboard.add_widgets(*self._throttles())
        dashboard.add_widgets(*self._layouts())
        dashboard.add_widgets(*capacity_graphs(stage.capacity, self._table, self._index))
        if inputs.cluster is not None:
            failures = self._own("DaxFailures", "query", "failed for us, DynamoDB answered")
            dashboard.add_widgets(*cache_graphs(inputs.cluster, failures))
        dashboard.add_widgets(*self._costs())

    def _own(self, name: str, function: str, label: str) -> cloudwatch.Metric:
        """Return a metric that a function counts by itself."""
        return curve(self._stage.functions.metrics_namespace, name, {"service": function}, label)

    def _events(self) -> Iterator[cloudwatch.IWidget]:
        accepted = self._own("EventsAccepted", "ingest", "accepted")
        rejected = self._own("EventsRejected", "ingest", "rejected")
        rates = (
            per_second(accepted, "accepted", "accepted"),
            per_second(rejected, "rejected", "rejected"),
        )
        yield graph("Events", rates, unit="a second")

    def _latency(self) -> Iterator[cloudwatch.IWidget]:
        api = {"ApiId": self._inputs.api.api_id}
        answers = [
            curve("AWS/ApiGateway", "Latency", api, "p50", statistic="p50"),
            curve("AWS/ApiGateway", "Latency", api, "p99", statistic="p99"),
            *(
                curve(
                    "AWS/Lambda",
                    "Duration",
                    {"FunctionName": function.function_name},
                    f"{name} p99",
                    statistic="p99",
                )
                for name, function in self._inputs.functions.items()
            ),
        ]
        yield graph("Latency of the API and its functions", answers, unit="ms")
        failures = [
            curve("AWS/ApiGateway", "5xx", api, "5xx"),
            curve("AWS/ApiGateway", "4xx", api, "4xx"),
            *(
                curve(
                    "AWS/Lambda",
                    metric,
                    {"FunctionName": function.function_name},
                    f"{name} {metric.lower()}",
                )
                for name, function in self._inputs.functions.items()
                for metric in ("Errors", "Throttles")
            ),
        ]
        yield graph("Failures", failures, unit="a minute")

    def _throttles(self) -> Iterator[cloudwatch.IWidget]:
        for title, kinds, places in (
            ("Throttled writes of the table", ("Write",), {"": self._table}),
            ("Throttled writes of the index", ("Write",), {"": self._index}),
            ("Throttled reads", ("Read",), {"table: ": self._table, "index: ": self._index}),
        ):
            curves = [
                curve("AWS/DynamoDB", f"{kind}{reason}ThrottleEvents", dimensions, f"{at}{words}")
                for kind in kinds
                for at, dimensions in places.items()
                for reason, words in _REASONS.items()
            ]
            yield graph(title, curves, unit="a minute", stacked=True)

    def _layouts(self) -> Iterator[cloudwatch.IWidget]:
        changes = [
            self._own("LayoutsGrown", "ingest", "grown by writers"),
            self._own("LayoutsGrown", "scaler", "grown by the scaler"),
            self._own("LayoutsShrunk", "scaler", "shrunk"),
            self._own("GrowthStopped", "ingest", "growth stopped, writers"),
            self._own("GrowthStopped", "scaler", "growth stopped, scaler"),
            self._own("WarmThroughputRaised", "scaler", "warm throughput raised"),
            self._own("ProvisionedThroughputRaised", "scaler", "provisioned raised"),
            self._own("CapacityBoundReached", "scaler", "bound reached"),
            self._own("DecisionsNotCarriedOut", "scaler", "decided, dry run"),
        ]
        yield graph("Layouts changed, and what was done instead", changes, unit="a minute")
        ingest, scaler = (self._log_group(name) for name in ("ingest", "scaler"))
        yield cloudwatch.LogQueryWidget(
            title="Hottest series by events stored",
            log_group_names=[ingest],
            query_lines=[
                'filter message = "wrote events" and ispresent(series)',
                "stats sum(accepted) as events, count(*) as requests by series",
                "sort events desc",
                "limit 10",
            ],
            width=8,
            height=HEIGHT,
        )
        yield cloudwatch.LogQueryWidget(
            title="Latest decisions",
            log_group_names=[ingest, scaler],
            query_lines=[
                'filter message = "scaling"',
                f"fields {', '.join(_DECISION)}",
                "sort @timestamp desc",
                "limit 20",
            ],
            width=8,
            height=HEIGHT,
        )

    def _log_group(self, name: str) -> str:
        return self._inputs.functions[name].log_group.log_group_name

    def _costs(self) -> Iterator[cloudwatch.IWidget]:
        tables = self._inputs.tables
        layouts = {"TableName": tables.layouts.table_name}
        curves = cost_curves(
            self._stage,
            events=(self._table, self._index),
            others=(
                layouts,
                {**layouts, "GlobalSecondaryIndexName": keys.LAYOUT_INDEX_NAME},
                {"TableName": tables.usage.table_name},
            ),
            functions=self._inputs.functions,
            api=self._inputs.api,
        )
        fixed = fixed_cost_an_hour(self._stage)
        lines = [("DAX, used or not", fixed)] if fixed else []
        yield graph(
            f"Cost estimate by prices of N. Virginia, {PRICES.as_of}",
            list(curves),
            unit="US$ an hour",
            lines=lines,
            width=16,
            stacked=True,
        )
        yield cloudwatch.TextWidget(
            markdown=_COSTS.format(fixed * HOURS_OF_A_MONTH), width=8, height=HEIGHT
        )


_COSTS = """**What the estimate holds**: request or capacity units, functions' time and calls,
API requests.

**What it lacks**: storage, point-in-time recovery, logs, alarms, metrics, data transfer, free
tiers.

DAX: US${:.2f} a month by the hour. Prices stand in `stacks/costs.py`; what to do about them in
`docs/operations.md`.
"""
