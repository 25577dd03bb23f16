"""Rate limits: token buckets, and the throughput limits of a whole table or index.

A table's limits are provisioned throughput with burst, or on-demand peaks, maxima and quotas. One
bucket a limit stands for all of DynamoDB's request routers together, as if global admission control
knew of every token at once. Adaptive capacity needs no code: partitions have no equal share to stay
within, so each may use the table's tokens up to its own limit.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from dynamoheat.parameters import ModelParameters
from dynamoheat.reasons import ThrottleCause
from dynamoheat.settings import ThroughputSettings

__all__ = ["PeakRate", "RateLimit", "ThroughputLimits", "TokenBucket"]

_ROUNDING: Final = 1e-6  # tokens; a refill in many small steps must not lose a unit to rounding


class TokenBucket:
    """Tokens that refill at `rate` a second up to `depth`. Below zero they are a debt.

    Callers refill before they look: `fill(now)`. A clock that steps back refills nothing.
    """

    __slots__ = ("depth", "filled_at", "rate", "tokens")

    def __init__(self, rate: float, depth: float, tokens: float, now: float) -> None:
        self.rate = rate
        self.depth = depth
        self.tokens = tokens
        self.filled_at = now

    def fill(self, now: float) -> float:
        """Refill up to `now` and return the tokens."""
        if now > self.filled_at:
            tokens = self.tokens + (now - self.filled_at) * self.rate
            self.tokens = tokens if tokens < self.depth else self.depth  # noqa: FURB136  # min() is slower
            self.filled_at = now
        return self.tokens

    def fill_over(self, start: float, end: float) -> float:
        """Refill from `start` up to `end`, past the depth, and return the tokens.

        They are what can be taken at an even rate over that time. Call `trim` afterwards.
        """
        self.fill(start)
        if end > self.filled_at:
            self.tokens += (end - self.filled_at) * self.rate
            self.filled_at = end
        return self.tokens

    def trim(self) -> None:
        """Drop tokens above the depth."""
        self.tokens = min(self.tokens, self.depth)

    def may_take(self, units: float, *, whole: bool) -> bool:
        """Return whether `units` may be taken.

        With `whole` they are one request. One larger than the bucket may pass when the bucket is
        full, and leaves a debt; otherwise it could never pass.
        """
        wanted = min(units, self.depth) if whole else units
        return self.tokens + _ROUNDING >= wanted

    def resize(self, rate: float, depth: float, now: float) -> None:
        """Change rate and depth from `now` on. Tokens above the new depth are lost."""
        self.fill(now)
        self.rate = rate
        self.depth = depth
        self.tokens = min(self.tokens, depth)


@dataclass(slots=True)
class RateLimit:
    """A token bucket and the throttling cause it stands for."""

    cause: ThrottleCause
    bucket: TokenBucket


@dataclass(slots=True)
class PeakRate:
    """The highest rate consumed, and higher ones too recent to count as the previous peak."""

    previous: float = 0.0
    recent: deque[tuple[float, float]] = field(default_factory=deque)  # when it counts, rate

    def record(self, rate: float, counts_from: float) -> None:
        """Record a consumed rate that counts as previous from `counts_from` on."""
        if rate > max([self.previous, *(seen for _, seen in self.recent)]):
            self.recent.append((counts_from, rate))

    def advance(self, now: float) -> float:
        """Return the previous peak as of `now`."""
        while self.recent and self.recent[0][0] <= now:
            self.previous = self.recent.popleft()[1]
        return self.previous


class ThroughputLimits:
    """The limits of a table or an index for writes or for reads, in the order of admission."""

    def __init__(
        self,
        write: bool,
        throughput: ThroughputSettings,
        provisioned: bool,
        limits: ModelParameters,
        now: float,
    ) -> None:
        self._limits = limits
        self._per_partition = limits.partition_wcu if write else limits.partition_rcu
        self._is_write = write
        self.peak = PeakRate()
        self.warm_throughput = 0.0  # never decreases
        self.limits: list[RateLimit] = []
        self.change(throughput, provisioned, now, fresh=True)

    def change(
        self,
        throughput: ThroughputSettings,
        provisioned: bool,
        now: float,
        *,
        fresh: bool = False,
    ) -> None:
        """Apply new settings.

        Limits that remain keep their tokens; warm throughput never decreases.
        """
        figure = throughput.provisioned_write if self._is_write else throughput.provisioned_read
        self.provisioned = _first(figure, 1.0) if provisioned else 0.0
        self.maximum = throughput.max_write if self._is_write else throughput.max_read
        warm = throughput.warm_write if self._is_write else throughput.warm_read
        initial = 0.0 if provisioned else self._limits.on_demand_partitions * self._per_partition
        self.warm_throughput = max(
            self.warm_throughput, _first(warm, 0.0), initial, self.provisioned
        )
        before = {limit.cause: limit.bucket for limit in self.limits}
        self.limits = [
            RateLimit(cause, self._bucket(before.get(cause), rate, seconds, now, fresh=fresh))
            for cause, rate, seconds in self._current_limits(provisioned)
        ]

    def advance(self, rate_seen: float, now: float) -> None:
        """Record a consumed rate, and raise on-demand limits once a peak counts as previous.

        A rate above the limit, which a full bucket can let through, does not raise the peak.
        """
        self.peak.record(min(rate_seen, self.warm_throughput), now + self._limits.growth_seconds)
        previous = self.peak.advance(now)
        for limit in self.limits:
            if limit.cause is ThrottleCause.KEY_RANGE:  # only on demand is there such a limit
                self.warm_throughput = max(
                    self.warm_throughput, self._limits.peak_multiple * previous
                )
                limit.bucket.resize(
                    self.warm_throughput,
                    self.warm_throughput * self._limits.rate_bucket_seconds,
                    now,
                )

    def _current_limits(self, provisioned: bool) -> list[tuple[ThrottleCause, float, float]]:
        if provisioned:
            return [
                (ThrottleCause.PROVISIONED, self.provisioned, max(self._limits.burst_seconds, 1.0))
            ]
        quota = self._limits.quota_wcu if self._is_write else self._limits.quota_rcu
        seconds = self._limits.rate_bucket_seconds
        wanted = [
            (ThrottleCause.ACCOUNT, quota, seconds),
            (ThrottleCause.KEY_RANGE, self.warm_throughput, seconds),
        ]
        return (
            wanted
            if self.maximum is None
            else [(ThrottleCause.MAXIMUM, self.maximum, seconds), *wanted]
        )

    def _bucket(
        self, before: TokenBucket | None, rate: float, seconds: float, now: float, *, fresh: bool
    ) -> TokenBucket:
        if before is not None:
            before.resize(rate, rate * seconds, now)
            return before
        saved = 1.0 + (self._limits.initial_burst_seconds if fresh else 0.0)
        return TokenBucket(rate, rate * seconds, rate * min(saved, seconds), now)


def _first(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
