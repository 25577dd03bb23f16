"""The designs from global admission control on: `dynamoheat.Heat` behind request routers.

ATC22 section 4.2: a central bucket tracks what the table consumes. A router spends its own tokens,
and asks for more when they are spent or expired; the centre gives each router a share by the
consumption it reported. Partitions keep only their own limits, so any of them may burst at once.

Today's DynamoDB is `dynamoheat.Heat` alone. The designs before it are the same model without splits
for heat, and with provisioned throughput spent through routers. On demand, the model's one bucket
stands for all routers.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import Final

from dynamoheat.limits import TokenBucket
from dynamoheat.model import Heat
from dynamoheat.partitions import Partitions
from dynamoheat.settings import Key, TableSettings, ThroughputSettings
from dynamoheat.sizes import WRITE_UNIT_BYTES
from dynamoheat.studies.generations.assumptions import DesignAssumptions, ItemRequest, NewTable

__all__ = ["GlobalAdmission", "HeatTable"]

_NAME: Final = "table"
_KEY_BYTES: Final = 512  # of a write unit, left for names and keys


@dataclass(slots=True)
class _Router:
    tokens: float = 0.0
    expires: float = float("-inf")
    reported: float = 0.0  # requested units a second, when it last asked the centre
    requested: float = 0.0  # units since then
    reported_at: float = float("-inf")
    next_request_at: float = float("-inf")

    def valid_tokens(self, now: float) -> float:
        return self.tokens if now < self.expires else 0.0


class GlobalAdmission:
    """Request routers in front of one table's bucket of throughput.

    The bucket pays when a request is admitted, not when tokens are handed out. Tokens handed out
    and not yet expired are reserved for their router. So all routers together never admit more than
    the bucket holds, and nothing is lost with tokens that expire.
    """

    def __init__(self, centre: TokenBucket, assumptions: DesignAssumptions) -> None:
        self._central_bucket = centre
        self._assumptions = assumptions
        self._routers = [_Router() for _ in range(assumptions.routers)]

    def may_admit(self, router: int, units: float, now: float) -> bool:
        """Return whether a router has tokens for a request, after asking for more if it must."""
        local = self._routers[router % len(self._routers)]
        local.requested += units
        if local.valid_tokens(now) < units and now >= local.next_request_at:
            self._replenish(local, units, now)
        return local.valid_tokens(now) >= units

    def spend(self, router: int, units: float) -> None:
        """Spend a router's tokens on a request that its partition admitted.

        The central bucket pays elsewhere.
        """
        self._routers[router % len(self._routers)].tokens -= units

    def outstanding_tokens(self, now: float) -> float:
        """Return the tokens that routers hold."""
        return sum(router.valid_tokens(now) for router in self._routers)

    def _replenish(self, local: _Router, units: float, now: float) -> None:
        self._report(local, now)
        asked = max(local.reported * self._assumptions.router_interval_seconds, units)
        local.tokens = 0.0
        available = self._central_bucket.fill(now) - self.outstanding_tokens(now)
        local.tokens = max(0.0, min(asked, available * self._share(local, now)))
        local.expires = now + self._assumptions.token_lifetime_seconds
        if local.tokens < asked:
            local.next_request_at = now + self._assumptions.router_interval_seconds

    def _report(self, local: _Router, now: float) -> None:
        elapsed = min(max(now - local.reported_at, 1.0), self._assumptions.token_lifetime_seconds)
        local.reported = local.requested / elapsed
        local.requested, local.reported_at = 0.0, now

    def _share(self, local: _Router, now: float) -> float:
        """Return a router's part of the consumption that was lately reported to the centre."""
        heard_since = now - self._assumptions.token_lifetime_seconds
        lately = sum(each.reported for each in self._routers if each.reported_at >= heard_since)
        return local.reported / lately


class HeatTable:
    """One table in a `Heat`; `splits` and `on_demand` switch on what the last two designs added."""

    def __init__(
        self,
        opening: NewTable,
        *,
        splits: bool,
        on_demand: bool,
        assumptions: DesignAssumptions | None = None,
        seed: int = 0,
    ) -> None:
        assumptions = assumptions or DesignAssumptions()
        limits = assumptions.limits
        self.heat = Heat(limits if splits else replace(limits, split_threshold=inf), seed=seed)
        self.heat.create_table(_settings(opening, on_demand=on_demand), opening.now)
        resource = self.heat.resource(_NAME)
        for partition in resource.partitions:
            partition.bytes = opening.stored_bytes / len(resource.partitions)
        self.routers: GlobalAdmission | None = None
        if not on_demand:
            self.routers = GlobalAdmission(resource.writes.limits[0].bucket, assumptions)

    @property
    def partitions(self) -> Partitions:
        """The table's partitions as they are."""
        return self.heat.resource(_NAME).partitions

    def put(self, ask: ItemRequest, now: float) -> bool:
        """Admit a write or refuse it whole."""
        if self.routers and not self.routers.may_admit(ask.router, ask.units, now):
            return False
        admitted = not self.heat.admit("PutItem", _put(ask), now).throttles
        if admitted and self.routers:
            self.routers.spend(ask.router, ask.units)
        return admitted

    def advance(self, now: float) -> None:
        """Nothing: the model advances with its requests."""


def _settings(opening: NewTable, *, on_demand: bool) -> TableSettings:
    rates = ThroughputSettings(provisioned_read=opening.read, provisioned_write=opening.write)
    return TableSettings(
        name=_NAME,
        key=Key("pk", "sk"),
        provisioned=not on_demand,
        throughput=ThroughputSettings() if on_demand else rates,
        stored_bytes=int(opening.stored_bytes),
    )


def _put(ask: ItemRequest) -> dict[str, object]:
    item = {"pk": {"S": ask.key}, "sk": {"S": ask.sort}, "pad": _pad(ask.units)}
    return {"TableName": _NAME, "Item": item}


@cache  # the model caches items, which must not hold a copy each
def _pad(units: float) -> dict[str, str]:
    return {"S": "x" * int(units * WRITE_UNIT_BYTES - _KEY_BYTES)}
