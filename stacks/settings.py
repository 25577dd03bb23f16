"""The shapes of what a stage decides: capacity, functions, alarms, scaling. Their numbers stand in `config`."""

from dataclasses import dataclass
from typing import Literal

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import RetentionDays

from spillway.keys import TimeBucket

__all__ = [
    "AlarmRule",
    "AlarmSettings",
    "Capacity",
    "EventSettings",
    "FunctionSettings",
    "GrowthSettings",
    "OnDemand",
    "Projection",
    "Provisioned",
    "ScaledUnits",
    "ScalerSettings",
    "Units",
]

Projection = Literal["ALL", "INCLUDE", "KEYS_ONLY"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Units:
    """Capacity units a second; None where nothing is stated."""

    read: int | None = None
    write: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OnDemand:
    """Capacity by the request.

    `maximum` bounds the cost, of the table and of the index each: above it requests throttle, and alarms say so.
    `warm` is what the table is ready for at once. It never decreases and the scaler may raise it, so a template that names
    it fails to deploy as soon as it names less than there is: leave it out, unless a new table must take a known peak.
    """

    maximum: Units = Units()
    warm: Units = Units()


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaledUnits:
    """Provisioned units a second that Application Auto Scaling keeps between two bounds.

    `target` is the share that shall be in use, in percent. The cooldowns are seconds between two changes of one direction.
    `start` is what a table has from its switch from on-demand until auto scaling is in charge: what its traffic wants, if it has any.
    """

    minimum: int
    maximum: int
    start: int | None = None  # the minimum
    target: int = 70
    cooldown_up: int = 60
    cooldown_down: int = 300

    def __post_init__(self) -> None:
        """Refuse what CloudFormation would refuse, minutes later."""
        if not 0 < self.minimum <= self.maximum:
            raise ValueError(f"minimum {self.minimum} to maximum {self.maximum} is no range")
        if not 20 <= self.target <= 90:
            raise ValueError(f"auto scaling aims at 20 to 90 percent, not {self.target}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Provisioned:
    """Capacity by the hour, auto scaled: of the table and of its index, each by itself.

    Every write of an event is one of the index too, so an index that is short of capacity throttles the table.
    """

    read: ScaledUnits
    write: ScaledUnits
    index_read: ScaledUnits
    index_write: ScaledUnits


Capacity = OnDemand | Provisioned


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionSettings:
    """What functions run on, and how long their logs are kept."""

    memory_mb: int  # CPU comes with memory: 1,769 MB is one vCPU
    log_retention: RetentionDays
    removal_policy: RemovalPolicy  # of the logs
    timeout_seconds: int = 29  # API Gateway gives up at 30; ingest answers within 25
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    metrics_namespace: str = "Spillway"  # one for each stage that shares an account and a region
    endpoint: str | None = None  # of DynamoDB and CloudWatch, where it is not AWS's own
    python: str = "3.13"
    architecture: Literal["arm64", "x86_64"] = "arm64"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlarmRule:
    """When an alarm fires: `datapoints` of the last `periods` reach the threshold."""

    threshold: float
    period: int = 60  # seconds
    periods: int = 1
    datapoints: int = 1

    def __post_init__(self) -> None:
        """Refuse what CloudWatch would refuse, or what its metrics of a minute could never feed."""
        if self.period % 60 or self.period <= 0:
            raise ValueError(
                f"these metrics come once a minute: period 60, 120 …, not {self.period}"
            )
        if not 0 < self.datapoints <= self.periods:
            raise ValueError(f"{self.datapoints} of {self.periods} datapoints")


@dataclass(frozen=True, kw_only=True, slots=True)
class AlarmSettings:
    """The rules of all alarms, by what they watch; counts are a period's sum."""

    hot: AlarmRule  # key ranges that throttle writes: the scaler's
    still_hot: AlarmRule  # the same, long enough that the scaler should have helped
    reads: AlarmRule  # key ranges that throttle reads
    capacity: AlarmRule  # the table or the index as a whole: provisioned, on-demand maximum
    account: AlarmRule  # the account's limits
    back_pressure: AlarmRule  # the index refuses writes to the table
    own_tables: AlarmRule  # layouts and usage
    errors: AlarmRule  # of functions, and lost events of the scaler
    throttles: AlarmRule  # of functions
    server_errors: AlarmRule  # 5xx
    latency: AlarmRule  # p99 in milliseconds


@dataclass(frozen=True, kw_only=True, slots=True)
class EventSettings:
    """How events are sharded and kept: the same for every function that works on a table."""

    bucket: TimeBucket = TimeBucket.HOUR  # length of a time bucket in the index's partition key
    mode: Literal["calculated", "random"] = "calculated"
    shards: int = 1  # of a new series; a power of two where the mode is calculated
    index_shards: int = 1
    retention_days: int = 0  # 0 keeps events
    late_limit_seconds: int = 0  # 0 takes events of any age

    def __post_init__(self) -> None:
        """Refuse counts that only the first write would find wrong."""
        counts = (self.shards, self.index_shards)
        if min(counts) < 1 or (self.mode == "calculated" and any(n & (n - 1) for n in counts)):
            raise ValueError(f"calculated shard counts are powers of two: {counts}")


@dataclass(frozen=True, kw_only=True, slots=True)
class GrowthSettings:
    """How layouts follow heat, by the writers and by the scaler alike.

    The bounds of capacity are for what more shards cannot mend; 0 never raises it. Warm throughput costs once, when it is
    raised, and never decreases. Provisioned units are for tables that Application Auto Scaling does not look after.
    A bound over 0 gives the scaler UpdateTable on the table of events, which IAM cannot narrow to
    throughput: it also changes deletion protection, indexes and billing mode.
    """

    writers: bool  # whether writers grow layouts themselves, in milliseconds
    dry_run: bool  # the scaler says what it would do, and does nothing
    max_shards: int
    cooldown_seconds: float  # between two growths of a series
    shrink_window_hours: int  # of low usage before a layout shrinks, 1 to 48; 0 never shrinks
    max_warm_write_units: int = 0
    max_provisioned_write_units: int = 0
    partition_wcu: int | None = (
        None  # only where a local cloud's partitions take less than DynamoDB's
    )

    def __post_init__(self) -> None:
        """Refuse what the functions would refuse at their start."""
        if not 0 <= self.shrink_window_hours <= 48:
            raise ValueError(
                f"layouts shrink after 1 to 48 hours of low usage, or never (0), not after {self.shrink_window_hours}"
            )
        if not 1 <= self.max_shards <= 256:
            raise ValueError(f"a layout has 1 to 256 shards, not {self.max_shards}")

    @property
    def raises_capacity(self) -> bool:
        """Whether the scaler may change a table."""
        return max(self.max_warm_write_units, self.max_provisioned_write_units) > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalerSettings:
    """How the scaler function is called."""

    every_minutes: int  # how often it looks by itself
    timeout_seconds: int
    concurrency: (
        int | None
    )  # reserved, so that a storm of alarms waits its turn; None reserves nothing
    retries: int  # of an event that failed
    event_age_seconds: int  # an alarm that waited longer is the schedule's
    failed_days: int  # that failed events are kept
