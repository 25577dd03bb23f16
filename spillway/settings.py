"""Settings of an event store: what a deployment decides, with the defaults of the design."""

from dataclasses import dataclass, field
from datetime import timedelta

from spillway.keys import Bucket
from spillway.scaling.growth import Growth
from spillway.sharding import MAX_SHARDS, Mode, is_power_of_two

__all__ = ["Settings", "check_counts"]


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
        most_epochs: epochs of a series beyond which the cheapest pair is folded into one.
        clock_error: how far a writer's clock may be off; 1 or more. Where DynamoDB's date shows
            that a process is further off, its writes and its changes of layouts are refused
            (`ClockSkewError`).
        layout_ttl: how long a layout snapshot serves writes and the first guess of reads.
        index_has_payload: whether the index's projection holds the payload.
        write_timeout: default deadline of a write.
        page_bytes: budget of one page of a read.
        growth: when and how far writers grow a layout.
    """

    mode: Mode = Mode.CALCULATED
    bucket: Bucket = Bucket.HOUR
    shards: int = 1
    index_shards: int = 1
    retention: timedelta | None = None
    late_limit: timedelta | None = None
    future_skew: float = 300
    horizon: float = 600
    slack: float = 300
    most_epochs: int = 100
    clock_error: float = 5
    layout_ttl: float = 10
    index_has_payload: bool = True
    write_timeout: float = 20
    page_bytes: int = 4_000_000
    growth: Growth = field(default_factory=Growth)

    @property
    def open_for(self) -> float:
        """Seconds after its end for which a range of time is expected to grow: late events, and writes under way.

        Where events may come late without limit, those later than `slack` are not expected.
        """
        late = self.slack if self.late_limit is None else self.late_limit.total_seconds()
        return late + self.write_timeout + 2 * self.clock_error

    def __post_init__(self) -> None:
        check_counts(self.mode, self.shards, self.index_shards)
        if self.future_skew > self.horizon - 2 * self.clock_error:
            raise ValueError("future_skew must stay below horizon less twice clock_error")


def check_counts(mode: Mode, shards: int, index_shards: int) -> None:
    """Check shard counts; ValueError says what is wrong."""
    _check_count("shards", shards, any_number=mode is Mode.RANDOM)
    _check_count("index_shards", index_shards, any_number=False)


def _check_count(name: str, count: int, *, any_number: bool) -> None:
    if not 1 <= count <= MAX_SHARDS:
        raise ValueError(f"{name} must be 1 to {MAX_SHARDS}, not {count}")
    if not any_number and not is_power_of_two(count):
        raise ValueError(f"{name} must be a power of two, not {count}: others leave shards empty")
