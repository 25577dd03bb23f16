"""How long to wait before the next attempt."""

from collections.abc import Callable

__all__ = ["full_jitter"]


def full_jitter(
    attempt: int, random: Callable[[], float], *, base: float = 0.05, cap: float = 2.0
) -> float:
    """Return seconds to wait before attempt `attempt` (1 is the first retry): uniform in [0, min(cap, base x 2^n)).

    Full jitter, since clients that wait the same time collide again (AWS Architecture Blog, "Exponential backoff and jitter").
    """
    return random() * min(cap, base * 2.0 ** min(attempt, 30))
