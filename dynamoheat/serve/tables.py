"""Keeps the model told of every table: what it is described as, and what calls change about it."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from dynamoheat.model import Heat
from dynamoheat.reasons import Throttle
from dynamoheat.resources import Resource
from dynamoheat.serve.descriptions import GLOBAL, Description, described_mode, updated
from dynamoheat.serve.wire import EndpointCall, table_name
from dynamoheat.settings import TableSettings

__all__ = ["Describe", "ModelTables", "plain_arn"]

_log = logging.getLogger(__name__)

Describe = Callable[[str, EndpointCall], Awaitable[Description | None]]
"""Describes a table that a call named, as CreateTable or DescribeTable do; None where there is none."""


class ModelTables:
    """The tables that the model knows, by name. Every method runs on the event loop's thread."""

    def __init__(self, heat: Heat, clock: Callable[[], float], describe: Describe) -> None:
        """Take the model to tell, its clock, and whom to ask about a table that is new."""
        self._heat = heat
        self._clock = clock
        self._describe = describe
        self._stated: dict[str, Description] = {}  # as described, to notice what changed since
        self._current: dict[str, Description] = {}  # and as later calls made it

    def __contains__(self, name: object) -> bool:
        return name in self._current

    async def learn(self, name: str, call: EndpointCall) -> bool:
        """Ask about a table and tell the model; False where there is none, or nothing to model."""
        description = await self._describe(name, call)
        if description is None:
            return False
        self.state(description)
        return name in self._current

    def state(self, description: Description) -> None:
        """Take a description. One that is unchanged leaves alone what calls changed about the table."""
        try:
            name = description["TableName"]
            if self._stated.get(name) != description:
                self._tell(described_mode(description), self._stated.get(name))
                self._stated[name] = description
        except (AttributeError, LookupError, TypeError, ValueError):
            _log.warning("a table's description can't be read: %r", description, exc_info=True)

    def match(self, described: Mapping[str, Description]) -> None:
        """Make the model's tables those that are described."""
        for name in self._stated.keys() - described.keys():
            self.forget(name)
        for description in described.values():
            self.state(description)

    def update(self, request: Mapping[str, Any], described: Description | None = None) -> None:
        """Take an UpdateTable request that was accepted; `described` is the table as described since."""
        name = table_name(str(request.get("TableName")))
        before = self._current.get(name)
        if before is None:
            return
        self._tell(updated(before, request), before)
        if described is not None:
            self._stated[name] = described

    def forget(self, name: str) -> None:
        """Remove a table, all that happened to it included."""
        self._heat.delete_table(name)
        self._stated.pop(name, None)
        self._current.pop(name, None)

    def complete(self, answer: dict[str, Any]) -> None:
        """Put into a table's description what engines don't know: warm and maximum throughput."""
        current = self._current.get(answer.get("TableName", ""))
        if current is None:
            return
        name = current["TableName"]
        _complete(answer, self._heat.resource(name))
        known = {index["IndexName"] for index in current.get(GLOBAL) or ()}
        for index in answer.get(GLOBAL) or ():
            if index.get("IndexName") in known:
                _complete(index, self._heat.resource(name, index["IndexName"]))

    def is_provisioned(self, name: str) -> bool:
        """Say whether a table is in provisioned mode; one that is not known is not."""
        return name in self._current and self._heat.resource(name).provisioned

    def arn(self, throttle: Throttle) -> str:
        """Return the ARN of the table or index that was short."""
        arn: str | None = self._current.get(throttle.table, {}).get("TableArn")
        if arn is None:
            return plain_arn(throttle)
        return arn if throttle.index is None else f"{arn}/index/{throttle.index}"

    def key_types(self, name: str) -> Mapping[str, str]:
        """Return the types of a table's key attributes, as far as they are known."""
        current = self._current.get(table_name(name), {})
        attributes: Iterable[Mapping[str, str]] = current.get("AttributeDefinitions") or ()
        return {each["AttributeName"]: each["AttributeType"] for each in attributes}

    def _tell(self, description: Description, before: Description | None) -> None:
        settings = TableSettings.from_description(description)
        same = before is not None and _identity(before) == _identity(description)
        change = self._heat.update_table if same else self._heat.create_table
        change(settings, self._clock())
        self._current[settings.name] = description


def _identity(description: Description) -> tuple[Any, Any]:
    return description.get("TableId"), description["KeySchema"]


def plain_arn(throttle: Throttle) -> str:
    """Return the ARN of a table or index in an account and a region that nobody stated."""
    return f"arn:aws:dynamodb:us-east-1:000000000000:{throttle.resource}"


def _complete(answer: dict[str, Any], resource: Resource) -> None:
    warm = (resource.reads.warm, resource.writes.warm)
    answer["WarmThroughput"] = {
        "ReadUnitsPerSecond": max(1, round(warm[0])),
        "WriteUnitsPerSecond": max(1, round(warm[1])),
        "Status": "ACTIVE",
    }
    maximum = {
        f"Max{kind}RequestUnits": int(most)
        for kind, most in (("Read", resource.reads.maximum), ("Write", resource.writes.maximum))
        if most is not None
    }
    answer.pop("OnDemandThroughput", None)
    if maximum and not resource.provisioned:
        answer["OnDemandThroughput"] = maximum
