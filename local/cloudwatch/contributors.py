"""Contributor KeyInsights for DynamoDB: which rules there are, and what they report.

MiniStack keeps whether insights are on; the mode and the rules, which it lacks, are kept here. They begin
as the deployed templates say and follow UpdateContributorInsights. Accessed keys are counted only in the
mode that reports them, throttled ones always; writes that an index held up are in neither, as in DynamoDB.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynamoheat import Heat, KeyInsights, Resource, Rule, UnknownTableError
from local.templates import TemplateSettings

__all__ = ["ALL_KEYS", "THROTTLED_KEYS", "Contributors", "InsightTarget", "Place", "completed"]

ALL_KEYS: Final = "ACCESSED_AND_THROTTLED_KEYS"
THROTTLED_KEYS: Final = "THROTTLED_KEYS"

_KINDS: Final = {
    ALL_KEYS: (Rule.CONSUMED, Rule.THROTTLED, Rule.CONSUMED_ITEMS, Rule.THROTTLED_ITEMS),
    THROTTLED_KEYS: (Rule.THROTTLED, Rule.THROTTLED_ITEMS),
}
_WITH_SORT_KEY: Final = (Rule.CONSUMED_ITEMS, Rule.THROTTLED_ITEMS)


@dataclass(frozen=True, slots=True)
class Place:
    """A table, or one of its indexes."""

    table: str
    index: str | None = None


@dataclass(frozen=True, slots=True)
class _Enabled:
    mode: str
    since: int  # milliseconds since the epoch


@dataclass(frozen=True, slots=True)
class InsightTarget:
    """What a rule watches."""

    place: Place
    kind: str  # of `heat.Rule`


class Contributors:
    """The rules of all tables and indexes."""

    def __init__(self, heat: Heat) -> None:
        """Take the model that counts the keys."""
        self._heat = heat
        self._enabled: dict[Place, _Enabled] = {}
        self._stated: dict[Place, str | None] = {}

    def learn(self, templates: Mapping[str, TemplateSettings], now: float) -> None:
        """Take what templates state, where it changed since the last time; `now` is wall time."""
        stated = {
            Place(table, index): throughput.insights
            for table, settings in templates.items()
            for index, throughput in ((None, settings.table), *settings.indexes.items())
        }
        for place in self._stated.keys() - stated.keys():
            self.disable(place)
        for place, mode in stated.items():
            if mode != self._stated.get(place):
                self._change(place, mode, now)
        self._stated = dict(stated)
        self._count_accessed()

    def _change(self, place: Place, mode: str | None, now: float) -> None:
        if mode is None:
            self.disable(place)
        else:
            self.enable(place, mode, now)

    def enable(self, place: Place, mode: str, now: float) -> None:
        """Turn insights on, or change their mode; rules that stay keep their names."""
        before = self._enabled.get(place)
        self._enabled[place] = _Enabled(mode, before.since if before else int(now * 1000))
        self._count_accessed()

    def disable(self, place: Place) -> None:
        """Turn insights off."""
        if self._enabled.pop(place, None) is not None:
            resource = self._resource(place)
            if resource is not None:
                resource.insights.accessed = False

    def forget(self, table: str, index: str | None = None) -> None:
        """Take that a table, or one index of it, was deleted."""
        for place in list(self._enabled):
            if place.table == table and index in (None, place.index):
                self.disable(place)

    def mode(self, place: Place) -> str | None:
        """Return the mode, None where insights are off."""
        found = self._enabled.get(place)
        return None if found is None else found.mode

    def rules(self, place: Place) -> dict[str, InsightTarget]:
        """Return the rules of a table or index by name."""
        found = self._enabled.get(place)
        if found is None:
            return {}
        named = place.table if place.index is None else f"{place.table}-{place.index}"
        return {
            f"DynamoDBContributorInsights-{kind}-{named}-{found.since}": InsightTarget(place, kind)
            for kind in _KINDS[found.mode]
            if kind not in _WITH_SORT_KEY or self._has_sort_key(place)
        }

    def target(self, rule: str) -> InsightTarget | None:
        """Return what a rule watches, None where there is no such rule."""
        for place in self._enabled:
            found = self.rules(place).get(rule)
            if found is not None:
                return found
        return None

    def insights(self, place: Place) -> KeyInsights | None:
        """Return the counts of a table or index, None where the model does not know it."""
        resource = self._resource(place)
        return None if resource is None else resource.insights

    def _count_accessed(self) -> None:
        for place, enabled in self._enabled.items():
            resource = self._resource(place)
            if resource is not None:
                resource.insights.accessed = enabled.mode == ALL_KEYS

    def _resource(self, place: Place) -> Resource | None:
        try:
            return self._heat.resource(place.table, place.index)
        except UnknownTableError:
            return None

    def _has_sort_key(self, place: Place) -> bool:
        table = self._heat.tables.get(place.table)
        if table is None:
            return False
        if place.index is None:
            return table.settings.key.sort is not None
        keys = {index.name: index.key for index in table.settings.indexes}
        return place.index in keys and keys[place.index].sort is not None


def completed(answer: dict[str, Any], contributors: Contributors) -> dict[str, Any]:
    """Return a Describe, Update or List answer with the mode and the rules."""
    for summary in answer.get("ContributorInsightsSummaries") or ():
        _complete(summary, contributors)
    if "ContributorInsightsStatus" in answer:
        _complete(answer, contributors)
    if "ContributorInsightsRuleList" in answer:
        place = Place(answer["TableName"], answer.get("IndexName"))
        on = answer["ContributorInsightsStatus"] in ("ENABLED", "ENABLING")
        answer["ContributorInsightsRuleList"] = list(contributors.rules(place)) if on else []
    return answer


def _complete(summary: dict[str, Any], contributors: Contributors) -> None:
    mode = contributors.mode(Place(summary["TableName"], summary.get("IndexName")))
    if mode is not None and summary["ContributorInsightsStatus"] in ("ENABLED", "ENABLING"):
        summary["ContributorInsightsMode"] = mode
