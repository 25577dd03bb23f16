"""Global admission control: request routers spend tokens that they hold for a few seconds.

ATC22 section 4.2: a central bucket tracks what the table consumes. A router deducts from its own tokens
and asks for more when they are spent or expired; the centre estimates consumption from what routers report
and gives each its share. Partitions keep only their own limits, so any of them may burst at once.
"""

from dataclasses import dataclass

from dynamoheat.buckets import TokenBucket
from dynamoheat.studies.generations.assumptions import Assumptions

__all__ = ["GlobalAdmission"]


@dataclass(slots=True)
class _Router:
    tokens: float = 0.0
    expires: float = float("-inf")
    reported: float = 0.0  # units a second that it was asked for, when it last asked the centre
    wanted: float = 0.0  # units since then
    since: float = float("-inf")
    may_ask: float = float("-inf")

    def left(self, now: float) -> float:
        return self.tokens if now < self.expires else 0.0


class GlobalAdmission:
    """Routers in front of one table's bucket of throughput.

    The bucket pays when a request is admitted, not when tokens are handed out; what is handed out and
    not yet expired is kept back for its router. So all routers together never admit more than it holds,
    and nothing is lost with tokens that expire.
    """

    def __init__(self, centre: TokenBucket, assumed: Assumptions) -> None:
        self._centre = centre
        self._assumed = assumed
        self._routers = [_Router() for _ in range(assumed.routers)]

    def admits(self, router: int, units: float, now: float) -> bool:
        """Say whether a router has tokens for a request, having asked for more if it must."""
        local = self._routers[router % len(self._routers)]
        local.wanted += units
        if local.left(now) < units and now >= local.may_ask:
            self._replenish(local, units, now)
        return local.left(now) >= units

    def spend(self, router: int, units: float) -> None:
        """Take the tokens of a request that its partition admitted too. The centre's are taken elsewhere."""
        self._routers[router % len(self._routers)].tokens -= units

    def outstanding(self, now: float) -> float:
        """Return the tokens that routers hold."""
        return sum(router.left(now) for router in self._routers)

    def _replenish(self, local: _Router, units: float, now: float) -> None:
        self._report(local, now)
        asked = max(local.reported * self._assumed.router_interval, units)
        local.tokens = 0.0
        available = self._centre.fill(now) - self.outstanding(now)
        local.tokens = max(0.0, min(asked, available * self._share(local, now)))
        local.expires = now + self._assumed.token_lifetime
        if local.tokens < asked:
            local.may_ask = now + self._assumed.router_interval

    def _report(self, local: _Router, now: float) -> None:
        elapsed = min(max(now - local.since, 1.0), self._assumed.token_lifetime)
        local.reported = local.wanted / elapsed
        local.wanted, local.since = 0.0, now

    def _share(self, local: _Router, now: float) -> float:
        """Return a router's part of the consumption that the centre has lately been told of."""
        heard_since = now - self._assumed.token_lifetime
        lately = sum(each.reported for each in self._routers if each.since >= heard_since)
        return local.reported / lately
