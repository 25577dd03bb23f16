"""What a deployed metric alarm watches and when it fires, read from a DescribeAlarms answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from local.cloudwatch.store import MINUTE, Metric

__all__ = ["DeployedAlarm", "Query", "Stat", "State", "metric_of", "queries_of"]

State = Literal["OK", "ALARM", "INSUFFICIENT_DATA"]

_DYNAMODB: Final = "AWS/DynamoDB"


@dataclass(frozen=True, slots=True)
class Stat:
    """A statistic of a metric; `unit` None takes samples of every unit."""

    metric: Metric
    statistic: str
    period: int  # seconds of metric time
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """An entry of `Metrics` or `MetricDataQueries`: a metric's statistic, or an expression."""

    id: str
    stat: Stat | None = None
    expression: str = ""
    returned: bool = True
    label: str = ""
    period: int | None = None  # of an expression


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedAlarm:
    """A metric alarm as evaluation needs it."""

    name: str
    state: State
    queries: tuple[Query, ...]
    watched: str  # id of the query that is compared
    comparison: str
    threshold: float = 0.0
    band: str | None = None  # id of the query that gives the threshold in place of a number
    evaluation_periods: int = 1
    datapoints_to_alarm: int = 1
    missing: str = "missing"
    low_samples: str = "evaluate"  # percentiles of few samples: evaluate or ignore

    @classmethod
    def from_description(cls, described: Mapping[str, Any]) -> "DeployedAlarm":
        """Read one of `MetricAlarms`.

        KeyError where it watches nothing.
        """
        queries = _queries(described)
        band = described.get("ThresholdMetricId") or None
        periods = int(described.get("EvaluationPeriods") or 1)
        return cls(
            name=described["AlarmName"],
            state=described["StateValue"],
            queries=queries,
            watched=_watched(queries, band),
            comparison=described["ComparisonOperator"],
            threshold=float(described.get("Threshold") or 0.0),
            band=band,
            evaluation_periods=periods,
            datapoints_to_alarm=int(described.get("DatapointsToAlarm") or periods),
            missing=described.get("TreatMissingData") or _default_treatment(queries),
            low_samples=described.get("EvaluateLowSampleCountPercentile") or "evaluate",
        )

    @property
    def period(self) -> int:
        """Length of a datapoint, in seconds: the longest of what is watched, a minute if nothing is."""
        stats = [query.stat.period for query in self.queries if query.stat is not None]
        stated = [query.period for query in self.queries if query.period is not None]
        return max([*stats, *stated], default=MINUTE)

    @property
    def statistic(self) -> str | None:
        """The statistic of an alarm on a single metric."""
        stat = self.queries[0].stat
        return stat.statistic if stat is not None and len(self.queries) == 1 else None


def _watched(queries: Sequence[Query], band: str | None) -> str:
    returned = [query.id for query in queries if query.returned and query.id != band]
    if not returned:
        raise KeyError("ReturnData")
    return returned[0]


def _queries(described: Mapping[str, Any]) -> tuple[Query, ...]:
    if described.get("Metrics"):
        return queries_of(described["Metrics"])
    statistic = described.get("ExtendedStatistic") or described.get("Statistic") or "Average"
    stat = Stat(
        metric_of(described),
        statistic,
        int(described.get("Period") or 60),
        described.get("Unit") or None,
    )
    return (Query("m1", stat),)


def queries_of(entries: Sequence[Mapping[str, Any]]) -> tuple[Query, ...]:
    """Read the entries of `Metrics` or `MetricDataQueries`."""
    return tuple(_query(entry) for entry in entries)


def _query(entry: Mapping[str, Any]) -> Query:
    wanted = entry.get("MetricStat")
    return Query(
        id=entry["Id"],
        stat=None if wanted is None else _stat(wanted),
        expression=entry.get("Expression") or "",
        returned=entry.get("ReturnData", True) not in (False, "false"),
        label=entry.get("Label") or "",
        period=int(entry["Period"]) if entry.get("Period") else None,
    )


def _stat(wanted: Mapping[str, Any]) -> Stat:
    return Stat(
        metric_of(wanted["Metric"]),
        wanted["Stat"],
        int(wanted["Period"]),
        wanted.get("Unit") or None,
    )


def metric_of(named: Mapping[str, Any]) -> Metric:
    """Return the metric that `Namespace`, `MetricName` and `Dimensions` name."""
    dimensions = frozenset((pair["Name"], pair["Value"]) for pair in named.get("Dimensions") or ())
    return Metric(named["Namespace"], named["MetricName"], dimensions)


def _default_treatment(queries: Sequence[Query]) -> str:
    """Alarms on DynamoDB's metrics ignore missing data unless they say otherwise."""
    watched = {query.stat.metric.namespace for query in queries if query.stat is not None}
    return "ignore" if watched == {_DYNAMODB} else "missing"
