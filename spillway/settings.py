"""Settings of an event store: what a deployment decides, with the defaults of the design."""

import math
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from spillway.keys import TimeBucket
from spillway.sharding import MAX_SHARDS, PARTITION_WCU, ShardingMode, is_power_of_two

__all__ = ["Growth", "GrowthPolicy", "Settings", "check_counts"]


class GrowthPolicy(StrEnum):
    """How far one growth goes."""

    DEMAND = "demand"  # to what the rate needs
    DOUBLE = "double"
    INCREMENT = "increment"  # by one, as the AWS blog does; only where any count is allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Settings of growth.

    Attributes:
        policy: how far one growth goes; None switches growth by writers off.
        max_shards: upper bound of both counts.
        max_step: largest factor of one growth.
        cooldown_seconds: time between two changes of a layout.
        min_wait_seconds, max_wait_seconds: bounds of the random wait before a change.
        wait_shape: 0 draws the wait evenly. Above 0, most draws are late and few early, so that of
            very many writers about one acts before the others see what it did.
        max_utilization: share of a layout's capacity beyond which it grows before anything
            throttles; None waits for throttling.
        stop_seconds: how long growth pauses after it was found futile.
        confirm_seconds: how long growth must look futile before it pauses: recorded rates lag by a
            second.
        settling_seconds: time after a change in which shards that suffice on paper may still
            throttle, while they work off what had to wait.
        partition_wcu: write units a second of one partition: DynamoDB's own, unless a local cloud
            is scaled down.
    """

    policy: GrowthPolicy | None = GrowthPolicy.DEMAND
    max_shards: int = MAX_SHARDS
    max_step: int = 8
    cooldown_seconds: float = 1.0
    min_wait_seconds: float = 0.0
    max_wait_seconds: float = 0.4
    wait_shape: float = 8.0
    max_utilization: float | None = 0.7
    stop_seconds: float = 60.0
    confirm_seconds: float = 1.0
    settling_seconds: float = 3.0
    partition_wcu: float = PARTITION_WCU

    def __post_init__(self) -> None:
        if not 1 <= self.max_shards <= MAX_SHARDS:
            raise ValueError(f"max_shards must be 1 to {MAX_SHARDS}, not {self.max_shards}")
        if self.partition_wcu <= 0:
            raise ValueError(f"partition_wcu must be above 0, not {self.partition_wcu}")
        if self.max_step < 2:
            raise ValueError(f"max_step must be 2 or more, not {self.max_step}")
        if not 0 <= self.min_wait_seconds <= self.max_wait_seconds:
            raise ValueError("min_wait_seconds must be 0 to max_wait_seconds")
        if self.max_utilization is not None and not 0 < self.max_utilization <= 1:
            raise ValueError(
                f"max_utilization must be above 0 and up to 1, not {self.max_utilization}"
            )

    def wait(self, random: float) -> float:
        """Return a random wait in seconds from a number in [0, 1).

        Rising truncated exponential (Nonnenmacher and Biersack, 1999).
        """
        span = self.max_wait_seconds - self.min_wait_seconds
        if self.wait_shape == 0:
            return self.min_wait_seconds + span * random
        scaled = math.log1p(random * math.expm1(self.wait_shape)) / self.wait_shape
        return self.min_wait_seconds + span * scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a deployment decides. Times in seconds unless they are timedeltas.

    Attributes:
        mode: how new series spread events over their shards.
        bucket: time buckets in the index's partition key of new series.
        shards: shards of a new series; a power of two up to 256, in random mode any number.
        index_shards: index shards of a new series; a power of two up to 256.
        retention: how long after its own time an event expires; None keeps it.
        late_limit: how old an event may be when written; None takes any.
        future_skew: how far ahead of the clock an event may be; less than `horizon`.
        horizon: how far ahead of its layout snapshot a writer may write.
        slack: how far back a new epoch reaches, for events that are on their way; 0 or more.
        max_epochs: epochs of a series beyond which the cheapest pair is folded into one.
        clock_error: how far a writer's clock may be off; 1 or more. Where DynamoDB's date shows
            that a process is further off, its writes and its changes of layouts are refused
            (`ClockSkewError`).
        layout_ttl: how long a layout snapshot serves writes and the first guess of reads.
        index_has_payload: whether the index's projection holds the payload. Leave it True: without
            payloads no read uses the index, yet each event still pays for its entry there.
        write_timeout: default deadline of a write.
        page_bytes: budget of one page of a read.
        growth: when and how far writers grow a layout.
    """

    mode: ShardingMode = ShardingMode.CALCULATED
    bucket: TimeBucket = TimeBucket.HOUR
    shards: int = 1
    index_shards: int = 1
    retention: timedelta | None = None
    late_limit: timedelta | None = None
    future_skew: float = 300
    horizon: float = 600
    slack: float = 300
    max_epochs: int = 100
    clock_error: float = 5
    layout_ttl: float = 10
    index_has_payload: bool = True
    write_timeout: float = 20
    page_bytes: int = 4_000_000
    growth: Growth = field(default_factory=Growth)

    @property
    def open_for(self) -> float:
        """Seconds after its end for which a range of time is expected to grow.

        Late events, and writes under way.

        Where events may come late without limit, those later than `slack` are not expected.
        """
        late = self.slack if self.late_limit is None else self.late_limit.total_seconds()
        return late + self.write_timeout + 2 * self.clock_error

    def __post_init__(self) -> None:
        check_counts(self.mode, self.shards, self.index_shards)
        if self.future_skew > self.horizon - 2 * self.clock_error:
            raise ValueError("future_skew must stay below horizon less twice clock_error")


def check_counts(mode: ShardingMode, shards: int, index_shards: int) -> None:
    """Check shard counts; ValueError says what is wrong."""
    _check_count("shards", shards, any_number=mode is ShardingMode.RANDOM)
    _check_count("index_shards", index_shards, any_number=False)


def _check_count(name: str, count: int, *, any_number: bool) -> None:
    if not 1 <= count <= MAX_SHARDS:
        raise ValueError(f"{name} must be 1 to {MAX_SHARDS}, not {count}")
    if not any_number and not is_power_of_two(count):
        raise ValueError(f"{name} must be a power of two, not {count}: others leave shards empty")
