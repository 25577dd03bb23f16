"""Answers GetInsightRuleReport from the model's counts of keys."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynamoheat import Contributor
from local.cloudwatch.contributors import Contributors
from local.cloudwatch.errors import invalid, not_found
from local.cloudwatch.parameters import Parameters, entries, instant, integer, text
from local.cloudwatch.protocols import Instant
from local.cloudwatch.store import MINUTE, MetricTime

__all__ = ["report"]

_LABELS: Final = ("PartitionKey", "SortKey")
_ALL: Final = 10**9
_ORDERS: Final = ("Sum", "Maximum")
_METRICS: Final = (
    "UniqueContributors",
    "MaxContributorValue",
    "SampleCount",
    "Sum",
    "Minimum",
    "Maximum",
    "Average",
)

_Counts = Mapping[float, float]  # start of a period → count


@dataclass(frozen=True, slots=True)
class _Wanted:
    rule: str
    start: int  # seconds of metric time
    end: int
    period: int
    most: int
    metrics: Sequence[str]
    order: str

    @classmethod
    def read(cls, asked: Parameters, time: MetricTime) -> "_Wanted":
        rule = text(asked, "RuleName")
        start, end = instant(asked, "StartTime"), instant(asked, "EndTime")
        if start >= end:
            raise invalid("The parameter StartTime must be less than the parameter EndTime.")
        wanted = cls(
            rule,
            time.seconds(start) // MINUTE * MINUTE,
            time.seconds(end),
            integer(asked, "Period"),
            integer(asked, "MaxContributorCount", 10),
            entries(asked, "Metrics"),
            asked.get("OrderBy") or "Sum",
        )
        wanted.check()
        return wanted

    def check(self) -> None:
        if self.period < MINUTE or self.period % MINUTE:
            raise invalid("The parameter Period must be a multiple of 60.")
        if not 1 <= self.most <= 100:
            raise invalid("The parameter MaxContributorCount must be between 1 and 100.")
        if self.order not in _ORDERS:
            raise invalid("The parameter OrderBy must be Sum or Maximum.")
        if any(metric not in _METRICS for metric in self.metrics):
            raise invalid(f"The parameter Metrics may hold {', '.join(_METRICS)}.")


def report(asked: Parameters, contributors: Contributors, time: MetricTime) -> dict[str, Any]:
    """Return the report of a rule.

    Raises:
        CloudWatchError: A parameter is missing or out of range, or there is no such rule.
    """
    wanted = _Wanted.read(asked, time)
    target = contributors.target(wanted.rule)
    if target is None:
        raise not_found(f"The rule {wanted.rule} does not exist.")
    insights = contributors.insights(target.place)
    quarter = time.wall(MINUTE) / 4  # slots begin on whole minutes, but for the rounding of floats
    start, end = time.wall(wanted.start) - quarter, time.wall(wanted.end) - quarter
    found = [] if insights is None else insights.report(target.kind, start, end, _ALL)
    return _shown(wanted, target.kind, found, time)


def _shown(
    wanted: _Wanted, kind: str, found: Iterable[Contributor], time: MetricTime
) -> dict[str, Any]:
    counts = {one.keys: _by_period(one, wanted, time) for one in found}
    rank = sum if wanted.order == "Sum" else max
    values = {keys: float(rank(periods.values())) for keys, periods in counts.items()}
    greatest = sorted(values, key=lambda keys: (-values[keys], keys))[: wanted.most]
    return {
        "KeyLabels": list(_LABELS[: 2 if kind.startswith("SK") else 1]),
        "AggregationStatistic": "Sum",
        "AggregateValue": sum(sum(periods.values()) for periods in counts.values()),
        "ApproximateUniqueCount": len(counts),
        "Contributors": [
            {
                "Keys": list(keys),
                "ApproximateAggregateValue": values[keys],
                "Datapoints": [
                    {"Timestamp": Instant(at), "ApproximateValue": count}
                    for at, count in counts[keys].items()
                ],
            }
            for keys in greatest
        ],
        "MetricDatapoints": _metric_points(wanted.metrics, counts.values()),
    }


def _by_period(one: Contributor, wanted: _Wanted, time: MetricTime) -> _Counts:
    sums: defaultdict[float, float] = defaultdict(float)
    half = time.wall(MINUTE) / 2
    for start, count in one.datapoints:
        place = (time.seconds(start + half) - wanted.start) // wanted.period
        sums[time.wall(wanted.start + place * wanted.period)] += count
    return sums


def _metric_points(metrics: Sequence[str], counts: Iterable[_Counts]) -> list[dict[str, Any]]:
    if not metrics:
        return []
    by_period: defaultdict[float, list[float]] = defaultdict(list)
    for periods in counts:
        for at, count in periods.items():
            by_period[at].append(count)
    return [
        {"Timestamp": Instant(at), **{name: _figures(values)[name] for name in metrics}}
        for at, values in sorted(by_period.items())
    ]


def _figures(values: Sequence[float]) -> dict[str, float]:
    total = sum(values)
    return {
        "UniqueContributors": float(len(values)),
        "MaxContributorValue": max(values),
        "SampleCount": float(len(values)),
        "Sum": total,
        "Minimum": min(values),
        "Maximum": max(values),
        "Average": total / len(values),
    }
