"""Token buckets: what a limit still allows, refilled by the clock."""

from typing import Final

__all__ = ["TokenBucket"]

_ROUNDING: Final = 1e-6  # tokens; a refill in many small steps must not lose a unit to rounding


class TokenBucket:
    """Tokens that refill at `rate` a second up to `depth`, and may be owed (below zero).

    Callers refill before they look: `fill(now)`. A clock that steps back refills nothing.
    """

    __slots__ = ("at", "depth", "rate", "tokens")

    def __init__(self, rate: float, depth: float, tokens: float, now: float) -> None:
        self.rate = rate
        self.depth = depth
        self.tokens = tokens
        self.at = now

    def fill(self, now: float) -> float:
        """Refill up to `now` and return the tokens."""
        if now > self.at:
            tokens = self.tokens + (now - self.at) * self.rate
            self.tokens = tokens if tokens < self.depth else self.depth  # noqa: FURB136  # min() is slower
            self.at = now
        return self.tokens

    def pour(self, start: float, end: float) -> float:
        """Refill up to `end`, from `start` on past the depth, and return the tokens.

        That is what can be taken at an even rate over the time between; `level` ends it.
        """
        self.fill(start)
        if end > self.at:
            self.tokens += (end - self.at) * self.rate
            self.at = end
        return self.tokens

    def level(self) -> None:
        """Lose what is above the depth."""
        self.tokens = min(self.tokens, self.depth)

    def holds(self, units: float, *, whole: bool) -> bool:
        """Say whether `units` may be taken.

        With `whole` they are one request: one larger than the bucket passes when the bucket is full and
        leaves a debt, or it could never pass.
        """
        wanted = min(units, self.depth) if whole else units
        return self.tokens + _ROUNDING >= wanted

    def reshape(self, rate: float, depth: float, now: float) -> None:
        """Change the limits from `now` on; tokens above the new depth are lost."""
        self.fill(now)
        self.rate = rate
        self.depth = depth
        self.tokens = min(self.tokens, depth)
