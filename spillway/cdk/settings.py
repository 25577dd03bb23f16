"""Settings of the constructs: capacity, functions, alarms, scaling, and their defaults."""

from dataclasses import dataclass
from typing import Final, Literal

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import RetentionDays

from spillway.keys import TimeBucket

__all__ = [
    "ALARMS",
    "EVENTS",
    "FUNCTIONS",
    "GROWTH",
    "ON_DEMAND",
    "SCALER",
    "AlarmRule",
    "AlarmSettings",
    "Capacity",
    "EventSettings",
    "FunctionSettings",
    "GrowthSettings",
    "OnDemand",
    "Provisioned",
    "ScaledUnits",
    "ScalerSettings",
    "Units",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Units:
    """Capacity units a second; None where nothing is stated."""

    read: int | None = None
    write: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OnDemand:
    """Capacity by the request.

    Warm throughput never decreases, and the scaler may raise it. A template that names less than
    there is fails to deploy. Leave it out, unless a new table must take a known peak.

    Attributes:
        maximum: bounds the cost, of the table and of the index each. Requests above it throttle,
            and alarms say so.
        warm: what the table is ready for at once.
    """

    maximum: Units = Units()
    warm: Units = Units()


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaledUnits:
    """Provisioned units a second that Application Auto Scaling keeps between two bounds.

    Attributes:
        minimum, maximum: the bounds.
        start: what a table has from its switch from on demand until auto scaling takes over. Give
            it what its traffic needs; None is the minimum.
        target: the share that should be in use, in percent.
        cooldown_up, cooldown_down: seconds between two changes of one direction.
    """

    minimum: int
    maximum: int
    start: int | None = None
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

    Every write of an event also writes to the index. An index that is short of capacity throttles
    the table.
    """

    read: ScaledUnits
    write: ScaledUnits
    index_read: ScaledUnits
    index_write: ScaledUnits


Capacity = OnDemand | Provisioned


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionSettings:
    """What functions run on, and how long their logs are kept."""

    memory_mb: int = 1_024  # CPU comes with memory: 1,769 MB is one vCPU
    log_retention: RetentionDays = RetentionDays.ONE_WEEK
    removal_policy: RemovalPolicy = RemovalPolicy.DESTROY  # of the logs
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
        """Refuse what CloudWatch would refuse, and periods shorter than its metrics' minute."""
        if self.period % 60 or self.period <= 0:
            raise ValueError(
                f"these metrics come once a minute: period 60, 120 …, not {self.period}"
            )
        if not 0 < self.datapoints <= self.periods:
            raise ValueError(f"{self.datapoints} of {self.periods} datapoints")


@dataclass(frozen=True, kw_only=True, slots=True)
class AlarmSettings:
    """The rules of all alarms. Counts are the sum of a period.

    Attributes:
        hot: key ranges that throttle writes. The scaler acts on it.
        still_hot: the same, for so long that the scaler should have helped.
        reads: key ranges that throttle reads.
        capacity: the table or the index as a whole: provisioned units, on-demand maximum.
        account: the account's limits.
        back_pressure: the index makes DynamoDB refuse writes to the table.
        own_tables: the tables of layouts and usage.
        errors: errors of functions, and events that the scaler lost.
        throttles: throttled functions.
        server_errors: answers with 5xx.
        latency: p99 in milliseconds.
    """

    # Writers settle a few throttled writes by themselves, within the second.
    hot: AlarmRule = AlarmRule(threshold=10)
    still_hot: AlarmRule = AlarmRule(threshold=10, periods=15, datapoints=10)
    reads: AlarmRule = AlarmRule(threshold=10, periods=5, datapoints=3)
    # Auto scaling takes two minutes to see a rise, and about one to follow it.
    capacity: AlarmRule = AlarmRule(threshold=10, periods=5, datapoints=3)
    account: AlarmRule = AlarmRule(threshold=1)
    back_pressure: AlarmRule = AlarmRule(threshold=100, periods=3, datapoints=2)
    own_tables: AlarmRule = AlarmRule(threshold=1, periods=3, datapoints=2)
    errors: AlarmRule = AlarmRule(threshold=1, period=300)
    throttles: AlarmRule = AlarmRule(threshold=1, period=300)
    server_errors: AlarmRule = AlarmRule(threshold=5, period=300)
    latency: AlarmRule = AlarmRule(threshold=5_000, periods=5, datapoints=3)


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
        """Refuse counts that only the first write would refuse."""
        counts = (self.shards, self.index_shards)
        if min(counts) < 1 or (self.mode == "calculated" and any(n & (n - 1) for n in counts)):
            raise ValueError(f"calculated shard counts are powers of two: {counts}")


@dataclass(frozen=True, kw_only=True, slots=True)
class GrowthSettings:
    """How layouts follow heat, by the writers and by the scaler alike.

    The bounds of capacity are for what more shards can't relieve; 0 never raises it. Warm
    throughput costs once, when it is raised, and never decreases. Provisioned units are for tables
    that Application Auto Scaling does not manage. A bound over 0 gives the scaler UpdateTable on
    the table of events. IAM cannot narrow that to throughput: it also changes deletion protection,
    indexes and billing mode.
    """

    writers: bool = True  # whether writers grow layouts themselves, in milliseconds
    dry_run: bool = False  # the scaler says what it would do, and does nothing
    max_shards: int = 256
    cooldown_seconds: float = 1  # between two growths of a series
    shrink_window_hours: int = 36  # of low usage before a layout shrinks, 1 to 48; 0 never shrinks
    max_warm_write_units: int = 0
    max_provisioned_write_units: int = 0
    partition_wcu: int | None = None  # for local clouds whose partitions take less than DynamoDB's

    def __post_init__(self) -> None:
        """Refuse what the functions would refuse at their start."""
        if not 0 <= self.shrink_window_hours <= 48:
            raise ValueError(
                "layouts shrink after 1 to 48 hours of low usage, or never (0), not after"
                f" {self.shrink_window_hours}"
            )
        if not 1 <= self.max_shards <= 256:
            raise ValueError(f"a layout has 1 to 256 shards, not {self.max_shards}")

    @property
    def raises_capacity(self) -> bool:
        """Whether the scaler may change a table."""
        return max(self.max_warm_write_units, self.max_provisioned_write_units) > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalerSettings:
    """How the scaler function is called.

    Attributes:
        every_minutes: how often the schedule calls it.
        timeout_seconds: of one run.
        concurrency: runs at once, reserved, so that a storm of alarms waits its turn. The account
            needs 100 unreserved besides. None reserves nothing, for new accounts, whose limit is
            10.
        retries: of an event that failed.
        event_age_seconds: alarms that waited longer are left to the schedule.
        failed_days: how long failed events are kept.
    """

    every_minutes: int = 1
    timeout_seconds: int = 60
    concurrency: int | None = 2
    retries: int = 2
    event_age_seconds: int = 300
    failed_days: int = 4


ON_DEMAND: Final = OnDemand()
EVENTS: Final = EventSettings()
GROWTH: Final = GrowthSettings()
FUNCTIONS: Final = FunctionSettings()
ALARMS: Final = AlarmSettings()
SCALER: Final = ScalerSettings()
