"""Limits on a whole table or index: provisioned throughput with burst, or on-demand's peaks and maxima.

One bucket a limit stands for all of DynamoDB's request routers together, as global admission control
would have it if it were told of every token at once. Adaptive capacity needs no code: no partition has an
equal share to stay in, each may use the table's tokens up to its own limit.
"""

from collections import deque
from dataclasses import dataclass, field

from dynamoheat.buckets import TokenBucket
from dynamoheat.parameters import ModelParameters
from dynamoheat.reasons import ThrottleCause
from dynamoheat.settings import ProvisionedThroughput

__all__ = ["Limit", "Peak", "Rates"]


@dataclass(slots=True)
class Limit:
    """A rate, and what it is called when it is exceeded."""

    cause: ThrottleCause
    bucket: TokenBucket


@dataclass(slots=True)
class Peak:
    """The highest rate ever consumed, and those that are too new to count as previous."""

    previous: float = 0.0
    recent: deque[tuple[float, float]] = field(default_factory=deque)  # when it counts, rate

    def see(self, rate: float, counts_from: float) -> None:
        """Take note of a rate."""
        if rate > max([self.previous, *(seen for _, seen in self.recent)]):
            self.recent.append((counts_from, rate))

    def advance(self, now: float) -> float:
        """Return the previous peak as of `now`."""
        while self.recent and self.recent[0][0] <= now:
            self.previous = self.recent.popleft()[1]
        return self.previous


class Rates:
    """The limits of one resource for one kind of operation (write or read), in the order of admission."""

    def __init__(
        self,
        write: bool,
        throughput: ProvisionedThroughput,
        provisioned: bool,
        limits: ModelParameters,
        now: float,
    ) -> None:
        self._limits = limits
        self._per_partition = limits.partition_wcu if write else limits.partition_rcu
        self._write = write
        self.peak = Peak()
        self.warm = 0.0  # never decreases
        self.limits: list[Limit] = []
        self.change(throughput, provisioned, now, fresh=True)

    def change(
        self,
        throughput: ProvisionedThroughput,
        provisioned: bool,
        now: float,
        *,
        fresh: bool = False,
    ) -> None:
        """Take new settings. Rates that stay keep their tokens; warm throughput never decreases."""
        figure = throughput.provisioned_write if self._write else throughput.provisioned_read
        self.provisioned = _first(figure, 1.0) if provisioned else 0.0
        self.maximum = throughput.maximum_write if self._write else throughput.maximum_read
        warm = throughput.warm_write if self._write else throughput.warm_read
        initial = 0.0 if provisioned else self._limits.on_demand_partitions * self._per_partition
        self.warm = max(self.warm, _first(warm, 0.0), initial, self.provisioned)
        before = {limit.cause: limit.bucket for limit in self.limits}
        self.limits = [
            Limit(cause, self._bucket(before.get(cause), rate, seconds, now, fresh=fresh))
            for cause, rate, seconds in self._wanted(provisioned)
        ]

    def advance(self, rate_seen: float, now: float) -> None:
        """Learn a consumed rate; on-demand limits grow once a peak counts as previous.

        What a full bucket let through beyond the limit is no peak.
        """
        self.peak.see(min(rate_seen, self.warm), now + self._limits.growth_seconds)
        previous = self.peak.advance(now)
        for limit in self.limits:
            if limit.cause is ThrottleCause.KEY_RANGE:  # only on demand is there such a limit
                self.warm = max(self.warm, self._limits.peak_multiple * previous)
                limit.bucket.reshape(self.warm, self.warm * self._limits.rate_bucket_seconds, now)

    def _wanted(self, provisioned: bool) -> list[tuple[ThrottleCause, float, float]]:
        if provisioned:
            return [
                (ThrottleCause.PROVISIONED, self.provisioned, max(self._limits.burst_seconds, 1.0))
            ]
        quota = self._limits.quota_wcu if self._write else self._limits.quota_rcu
        seconds = self._limits.rate_bucket_seconds
        wanted = [
            (ThrottleCause.ACCOUNT, quota, seconds),
            (ThrottleCause.KEY_RANGE, self.warm, seconds),
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
            before.reshape(rate, rate * seconds, now)
            return before
        saved = 1.0 + (self._limits.initial_burst_seconds if fresh else 0.0)
        return TokenBucket(rate, rate * seconds, rate * min(saved, seconds), now)


def _first(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
