"""What a partition may consume while storage nodes admit by allocation: allocated tokens, and saved ones.

ATC22 section 4.1.1: a partition has two buckets, one of its allocation and one of what it left unused, for
up to 300 seconds. The second is what bursting adds.
"""

from dynamoheat.buckets import TokenBucket

__all__ = ["Allowance"]


class Allowance:
    """One partition's tokens for reads or for writes; units a second and seconds.

    `share` is its part of the table's throughput, `boost` what adaptive capacity adds. `burst_seconds` 0
    saves nothing. Callers `fill` before they look.
    """

    __slots__ = ("allocated", "boost", "burst_seconds", "saved", "share")

    def __init__(self, share: float, burst_seconds: float, now: float) -> None:
        self.share = share
        self.boost = 0.0
        self.burst_seconds = burst_seconds
        self.allocated = TokenBucket(share, share, share, now)
        self.saved = TokenBucket(0.0, share * burst_seconds, 0.0, now)  # filled by what overflows

    @property
    def granted(self) -> float:
        """Units a second: the share and the boost."""
        return self.share + self.boost

    def fill(self, now: float) -> None:
        """Refill up to `now`; what the allocated bucket cannot hold of its share is saved."""
        bucket = self.allocated
        spilled = bucket.tokens + max(now - bucket.at, 0.0) * bucket.rate - bucket.depth
        bucket.fill(now)
        if spilled > 0 and self.burst_seconds:
            kept = spilled * self.share / self.granted  # an unused boost is the table's, not saved
            self.saved.tokens = min(self.saved.depth, self.saved.tokens + kept)

    def grant(self, share: float, boost: float, now: float) -> None:
        """Change share and boost from `now` on; saved tokens above the new depth are lost."""
        self.fill(now)
        self.share, self.boost = share, boost
        self.allocated.reshape(self.granted, self.granted, now)
        self.saved.reshape(0.0, share * self.burst_seconds, now)

    def halved(self, now: float) -> "Allowance":
        """Return what each child gets when the partition splits for size: half of everything."""
        self.fill(now)
        child = Allowance(self.share / 2, self.burst_seconds, now)
        child.grant(self.share / 2, self.boost / 2, now)
        child.allocated.tokens = self.allocated.tokens / 2
        child.saved.tokens = self.saved.tokens / 2
        return child
