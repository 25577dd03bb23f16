"""Metrics as dashboards draw them: short makers of graphs and expressions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

__all__ = ["HEIGHT", "MINUTE", "Curve", "curve", "graph", "per_second", "sum_of"]

HEIGHT: Final = 6
MINUTE: Final = Duration.minutes(1)

Curve = cloudwatch.IMetric


def curve(  # noqa: PLR0913  what a metric is made of
    namespace: str,
    name: str,
    dimensions: Mapping[str, str],
    label: str,
    *,
    statistic: str = "Sum",
    period: Duration = MINUTE,
) -> cloudwatch.Metric:
    """Return one metric under a label."""
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map=dict(dimensions),
        statistic=statistic,
        period=period,
        label=label,
    )


def per_second(metric: cloudwatch.Metric, identifier: str, label: str) -> cloudwatch.MathExpression:
    """Return the rate of a metric that counts: its sum of a period by the period's seconds."""
    return cloudwatch.MathExpression(
        expression=f"{identifier} / PERIOD({identifier})",
        using_metrics={identifier: metric},
        label=label,
        period=MINUTE,
    )


def sum_of(
    weights: Mapping[str, tuple[float, cloudwatch.Metric]], label: str, period: Duration
) -> cloudwatch.MathExpression:
    """Return a weighted sum of metrics, by identifier; what has no data counts as nothing."""
    return cloudwatch.MathExpression(
        # Metric math may know no exponents.
        expression=" + ".join(f"FILL({name}, 0) * {w:.14f}" for name, (w, _) in weights.items()),
        using_metrics={name: metric for name, (_, metric) in weights.items()},
        label=label,
        period=period,
    )


def graph(  # noqa: PLR0913  what a graph may show
    title: str,
    curves: Sequence[Curve],
    *,
    unit: str,
    right: Sequence[Curve] = (),
    right_unit: str = "",
    lines: Iterable[tuple[str, float]] = (),
    width: int = 8,
    stacked: bool = False,
) -> cloudwatch.GraphWidget:
    """Return a graph from zero up; `lines` are labelled values across it."""
    return cloudwatch.GraphWidget(
        title=title,
        left=list(curves),
        right=list(right),
        left_y_axis=cloudwatch.YAxisProps(label=unit, min=0, show_units=False),
        right_y_axis=cloudwatch.YAxisProps(label=right_unit, min=0, show_units=False),
        left_annotations=[
            cloudwatch.HorizontalAnnotation(label=label, value=value) for label, value in lines
        ],
        width=width,
        height=HEIGHT,
        stacked=stacked,
    )
