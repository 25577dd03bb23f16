"""Contributor Insights for DynamoDB: which rules exist, and their reports of hot keys.

MiniStack keeps whether insights are enabled. The mode and the rules, which it lacks, are kept here.
They begin as the deployed templates say and follow UpdateContributorInsights. Throttled keys are
always counted, accessed keys only in the mode that reports them. Writes that an index held up count
in neither, as in DynamoDB.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dynamoheat import Contributor, Heat, KeyInsights, Resource, Rule, UnknownTableError
from local.cloudwatch.metric_store import MINUTE, MetricTime
from local.cloudwatch.requests import (
    Instant,
    Parameters,
    integer_parameter,
    invalid_value,
    list_parameter,
    not_found,
    text_parameter,
    time_parameter,
)
from local.table_settings import TemplateSettings

__all__ = [
    "ALL_KEYS",
    "THROTTLED_KEYS",
    "InsightRule",
    "InsightRules",
    "TableOrIndex",
    "complete_answer",
    "get_insight_rule_report",
]

ALL_KEYS: Final = "ACCESSED_AND_THROTTLED_KEYS"
THROTTLED_KEYS: Final = "THROTTLED_KEYS"

_KINDS: Final = {
    ALL_KEYS: (Rule.CONSUMED, Rule.THROTTLED, Rule.CONSUMED_ITEMS, Rule.THROTTLED_ITEMS),
    THROTTLED_KEYS: (Rule.THROTTLED, Rule.THROTTLED_ITEMS),
}
_WITH_SORT_KEY: Final = (Rule.CONSUMED_ITEMS, Rule.THROTTLED_ITEMS)
_NO_LIMIT: Final = 10**9
_MAX_CONTRIBUTORS: Final = 100
_METRICS: Final = (
    "UniqueContributors",
    "MaxContributorValue",
    "SampleCount",
    "Sum",
    "Minimum",
    "Maximum",
    "Average",
)


@dataclass(frozen=True, slots=True)
class TableOrIndex:
    """A table, or one of its indexes."""

    table: str
    index: str | None = None


@dataclass(frozen=True, slots=True)
class InsightRule:
    """What a rule counts, and where."""

    place: TableOrIndex
    kind: str  # of `dynamoheat.Rule`


@dataclass(frozen=True, slots=True)
class _Enabled:
    mode: str
    since: int  # milliseconds since the epoch


class InsightRules:
    """The rules of all tables and indexes."""

    def __init__(self, heat: Heat) -> None:
        """Take the model that counts the keys."""
        self._heat = heat
        self._enabled: dict[TableOrIndex, _Enabled] = {}
        self._templates: dict[TableOrIndex, str | None] = {}  # the modes applied last

    def apply_templates(self, templates: Mapping[str, TemplateSettings], now: float) -> None:
        """Apply the modes in templates that changed since the last call; `now` is wall time."""
        modes = {
            TableOrIndex(table, index): throughput.insights
            for table, settings in templates.items()
            for index, throughput in ((None, settings.table), *settings.indexes.items())
        }
        for place in self._templates.keys() | modes.keys():
            mode = modes.get(place)
            if mode == self._templates.get(place):
                continue
            if mode is None:
                self.disable(place)
            else:
                self.enable(place, mode, now)
        self._templates = modes
        self._count_accessed_keys()

    def enable(self, place: TableOrIndex, mode: str, now: float) -> None:
        """Enable insights, or change their mode. Rules that stay keep their names."""
        before = self._enabled.get(place)
        self._enabled[place] = _Enabled(mode, before.since if before else int(now * 1000))
        self._count_accessed_keys()

    def disable(self, place: TableOrIndex) -> None:
        """Disable insights."""
        if self._enabled.pop(place, None) is not None:
            insights = self.insights(place)
            if insights is not None:
                insights.counts_accessed_keys = False

    def forget(self, table: str, index: str | None = None) -> None:
        """Drop the rules of a deleted table, or of one deleted index."""
        for place in list(self._enabled):
            if place.table == table and index in (None, place.index):
                self.disable(place)

    def mode(self, place: TableOrIndex) -> str | None:
        """Return the mode, None where insights are disabled."""
        enabled = self._enabled.get(place)
        return None if enabled is None else enabled.mode

    def rules(self, place: TableOrIndex) -> dict[str, InsightRule]:
        """Return the rules of a table or index by name."""
        enabled = self._enabled.get(place)
        if enabled is None:
            return {}
        suffix = place.table if place.index is None else f"{place.table}-{place.index}"
        return {
            f"DynamoDBContributorInsights-{kind}-{suffix}-{enabled.since}": InsightRule(place, kind)
            for kind in _KINDS[enabled.mode]
            if kind not in _WITH_SORT_KEY or self._has_sort_key(place)
        }

    def rule(self, name: str) -> InsightRule | None:
        """Return a rule by name, None where there is no such rule."""
        for place in self._enabled:
            rule = self.rules(place).get(name)
            if rule is not None:
                return rule
        return None

    def insights(self, place: TableOrIndex) -> KeyInsights | None:
        """Return the model's counts of a table or index, None where the model lacks it."""
        resource = self._resource(place)
        return None if resource is None else resource.insights

    def _count_accessed_keys(self) -> None:
        for place, enabled in self._enabled.items():
            insights = self.insights(place)
            if insights is not None:
                insights.counts_accessed_keys = enabled.mode == ALL_KEYS

    def _resource(self, place: TableOrIndex) -> Resource | None:
        try:
            return self._heat.resource(place.table, place.index)
        except UnknownTableError:
            return None

    def _has_sort_key(self, place: TableOrIndex) -> bool:
        table = self._heat.tables.get(place.table)
        if table is None:
            return False
        if place.index is None:
            return table.settings.key.sort is not None
        keys = {index.name: index.key for index in table.settings.indexes}
        return place.index in keys and keys[place.index].sort is not None


def complete_answer(answer: dict[str, Any], rules: InsightRules) -> dict[str, Any]:
    """Add mode and rules to an answer of Describe-, Update- or ListContributorInsights."""
    for summary in answer.get("ContributorInsightsSummaries") or ():
        _add_mode(summary, rules)
    if "ContributorInsightsStatus" in answer:
        _add_mode(answer, rules)
    if "ContributorInsightsRuleList" in answer:
        place = TableOrIndex(answer["TableName"], answer.get("IndexName"))
        names = list(rules.rules(place)) if _is_enabled(answer) else []
        answer["ContributorInsightsRuleList"] = names
    return answer


def _add_mode(summary: dict[str, Any], rules: InsightRules) -> None:
    mode = rules.mode(TableOrIndex(summary["TableName"], summary.get("IndexName")))
    if mode is not None and _is_enabled(summary):
        summary["ContributorInsightsMode"] = mode


def _is_enabled(summary: Mapping[str, Any]) -> bool:
    return summary["ContributorInsightsStatus"] in ("ENABLED", "ENABLING")


def get_insight_rule_report(
    parameters: Parameters, rules: InsightRules, time: MetricTime
) -> dict[str, Any]:
    """Return the report of a rule.

    Raises:
        CloudWatchError: A parameter is missing or out of range, or there is no such rule.
    """
    query = _read_report_query(parameters, time)
    rule = rules.rule(query.rule)
    if rule is None:
        raise not_found(f"The rule {query.rule} does not exist.")
    insights = rules.insights(rule.place)
    # The model's minutes begin on whole minutes, but for the rounding of floats.
    quarter = time.wall(MINUTE) / 4
    start, end = time.wall(query.start) - quarter, time.wall(query.end) - quarter
    contributors = [] if insights is None else insights.report(rule.kind, start, end, _NO_LIMIT)
    counts = {each.keys: _sum_by_period(each, query, time) for each in contributors}
    return {
        "KeyLabels": ["PartitionKey", "SortKey"][: 2 if rule.kind in _WITH_SORT_KEY else 1],
        "AggregationStatistic": "Sum",
        "AggregateValue": sum(sum(periods.values()) for periods in counts.values()),
        "ApproximateUniqueCount": len(counts),
        "Contributors": _rank(counts, query),
        "MetricDatapoints": _metric_datapoints(query.metrics, counts.values()),
    }


@dataclass(frozen=True, slots=True)
class _ReportQuery:
    rule: str
    start: int  # seconds of metric time
    end: int
    period: int
    max_contributors: int
    metrics: Sequence[str]
    order: str


def _read_report_query(parameters: Parameters, time: MetricTime) -> _ReportQuery:
    rule = text_parameter(parameters, "RuleName")
    start, end = time_parameter(parameters, "StartTime"), time_parameter(parameters, "EndTime")
    if start >= end:
        raise invalid_value("The parameter StartTime must be less than the parameter EndTime.")
    query = _ReportQuery(
        rule,
        time.seconds(start) // MINUTE * MINUTE,
        time.seconds(end),
        integer_parameter(parameters, "Period"),
        integer_parameter(parameters, "MaxContributorCount", 10),
        list_parameter(parameters, "Metrics"),
        parameters.get("OrderBy") or "Sum",
    )
    if query.period < MINUTE or query.period % MINUTE:
        raise invalid_value("The parameter Period must be a multiple of 60.")
    if not 1 <= query.max_contributors <= _MAX_CONTRIBUTORS:
        raise invalid_value(
            f"The parameter MaxContributorCount must be between 1 and {_MAX_CONTRIBUTORS}."
        )
    if query.order not in ("Sum", "Maximum"):
        raise invalid_value("The parameter OrderBy must be Sum or Maximum.")
    if any(metric not in _METRICS for metric in query.metrics):
        raise invalid_value(f"The parameter Metrics may hold {', '.join(_METRICS)}.")
    return query


_PeriodCounts = Mapping[float, float]  # start of a period → count


def _sum_by_period(
    contributor: Contributor, query: _ReportQuery, time: MetricTime
) -> _PeriodCounts:
    sums: defaultdict[float, float] = defaultdict(float)
    half = time.wall(MINUTE) / 2
    for start, count in contributor.datapoints:
        position = (time.seconds(start + half) - query.start) // query.period
        sums[time.wall(query.start + position * query.period)] += count
    return sums


def _rank(
    counts: Mapping[tuple[str, ...], _PeriodCounts], query: _ReportQuery
) -> list[dict[str, Any]]:
    """Return the greatest contributors, the greatest first."""
    total = sum if query.order == "Sum" else max
    values = {keys: float(total(periods.values())) for keys, periods in counts.items()}
    greatest = sorted(values, key=lambda keys: (-values[keys], keys))[: query.max_contributors]
    return [
        {
            "Keys": list(keys),
            "ApproximateAggregateValue": values[keys],
            "Datapoints": [
                {"Timestamp": Instant(at), "ApproximateValue": count}
                for at, count in counts[keys].items()
            ],
        }
        for keys in greatest
    ]


def _metric_datapoints(
    metrics: Sequence[str], counts: Iterable[_PeriodCounts]
) -> list[dict[str, Any]]:
    if not metrics:
        return []
    by_period: defaultdict[float, list[float]] = defaultdict(list)
    for periods in counts:
        for at, count in periods.items():
            by_period[at].append(count)
    return [
        {"Timestamp": Instant(at), **{name: _compute_metrics(values)[name] for name in metrics}}
        for at, values in sorted(by_period.items())
    ]


def _compute_metrics(values: Sequence[float]) -> dict[str, float]:
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
