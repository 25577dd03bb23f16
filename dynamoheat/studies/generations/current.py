"""The designs from global admission control on: `dynamoheat.Heat` as it is, its later parts switched off.

Today's DynamoDB is `dynamoheat.Heat` and nothing else. What came before it is the same model without splits for
heat, and with provisioned throughput spent through request routers (on demand the model's own single
bucket stands for all routers, see `heat`).
"""

from dataclasses import replace
from functools import cache
from math import inf
from typing import Final

from dynamoheat.model import Heat
from dynamoheat.partitions import Partitions
from dynamoheat.settings import Key, ProvisionedThroughput, TableSettings
from dynamoheat.studies.generations.assumptions import Assumptions
from dynamoheat.studies.generations.routers import GlobalAdmission
from dynamoheat.studies.generations.settings import Ask, Opening

__all__ = ["HeatTable"]

_NAME: Final = "table"
_KEY_BYTES: Final = 512  # of a kilobyte's 1,024, left for names and keys


class HeatTable:
    """One table in a `Heat`. `splits` and `on_demand` are what the last two designs added."""

    def __init__(
        self,
        opening: Opening,
        *,
        splits: bool,
        on_demand: bool,
        assumed: Assumptions | None = None,
        seed: int = 0,
    ) -> None:
        assumed = assumed or Assumptions()
        limits = assumed.limits
        self.heat = Heat(limits if splits else replace(limits, split_threshold=inf), seed=seed)
        self.heat.create_table(_settings(opening, on_demand=on_demand), opening.now)
        resource = self.heat.resource(_NAME)
        for partition in resource.partitions:
            partition.bytes = opening.stored_bytes / len(resource.partitions)
        self.routers: GlobalAdmission | None = None
        if not on_demand:
            self.routers = GlobalAdmission(resource.writes.limits[0].bucket, assumed)

    @property
    def partitions(self) -> Partitions:
        """The table's partitions as they are."""
        return self.heat.resource(_NAME).partitions

    def put(self, ask: Ask, now: float) -> bool:
        """Admit a write or refuse it whole."""
        if self.routers and not self.routers.admits(ask.router, ask.units, now):
            return False
        admitted = not self.heat.admit("PutItem", _put(ask), now).throttles
        if admitted and self.routers:
            self.routers.spend(ask.router, ask.units)
        return admitted

    def advance(self, now: float) -> None:
        """Nothing: the model advances with its requests."""


def _settings(opening: Opening, *, on_demand: bool) -> TableSettings:
    rates = ProvisionedThroughput(provisioned_read=opening.read, provisioned_write=opening.write)
    return TableSettings(
        name=_NAME,
        key=Key("pk", "sk"),
        provisioned=not on_demand,
        throughput=ProvisionedThroughput() if on_demand else rates,
        stored_bytes=int(opening.stored_bytes),
    )


def _put(ask: Ask) -> dict[str, object]:
    item = {"pk": {"S": ask.key}, "sk": {"S": ask.sort}, "pad": _pad(ask.units)}
    return {"TableName": _NAME, "Item": item}


@cache  # the model remembers items: they must not hold a copy each
def _pad(units: float) -> dict[str, str]:
    return {"S": "x" * int(units * 1024 - _KEY_BYTES)}
