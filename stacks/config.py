"""Every number of a stage. Nothing else in `stacks` holds a limit, a size or a retention."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import RetentionDays

from stacks.cache_settings import CacheSettings
from stacks.settings import (
    AlarmRule,
    AlarmSettings,
    Capacity,
    EventSettings,
    FunctionSettings,
    GrowthSettings,
    OnDemand,
    Projection,
    ScalerSettings,
)

__all__ = [
    "ALARMS",
    "EVENTS",
    "FUNCTIONS",
    "GROWTH",
    "ON_DEMAND",
    "SCALER",
    "STAGES",
    "Stage",
    "UnknownStageError",
    "stage_named",
]

ON_DEMAND: Final = OnDemand()

EVENTS: Final = EventSettings()

GROWTH: Final = GrowthSettings(
    writers=True,
    dry_run=False,
    max_shards=256,
    cooldown_seconds=1,
    shrink_window_hours=36,
)

FUNCTIONS: Final = FunctionSettings(
    memory_mb=1_024,
    log_retention=RetentionDays.ONE_WEEK,
    removal_policy=RemovalPolicy.DESTROY,
)

ALARMS: Final = AlarmSettings(
    # Writers settle a few throttled writes by themselves, within the second.
    hot=AlarmRule(threshold=10),
    still_hot=AlarmRule(threshold=10, periods=15, datapoints=10),
    reads=AlarmRule(threshold=10, periods=5, datapoints=3),
    # Auto scaling takes two minutes to see a rise, and about one to follow it.
    capacity=AlarmRule(threshold=10, periods=5, datapoints=3),
    account=AlarmRule(threshold=1),
    back_pressure=AlarmRule(threshold=100, periods=3, datapoints=2),
    own_tables=AlarmRule(threshold=1, periods=3, datapoints=2),
    errors=AlarmRule(threshold=1, period=300),
    throttles=AlarmRule(threshold=1, period=300),
    server_errors=AlarmRule(threshold=5, period=300),
    latency=AlarmRule(threshold=5_000, periods=5, datapoints=3),
)

SCALER: Final = ScalerSettings(
    every_minutes=1,
    timeout_seconds=60,
    # An account needs 100 unreserved beside it: a new one, whose limit is 10, deploys with None.
    concurrency=2,
    retries=2,
    event_age_seconds=300,
    failed_days=4,
)


class UnknownStageError(ValueError):
    """The stage that was asked for does not exist."""

    def __init__(self, name: object) -> None:
        """Name the stages there are, so that the sentence helps."""
        super().__init__(f"unknown stage {name!r}: choose one of {', '.join(STAGES)} (-c stage=…)")
        self.name = name


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One environment. Layouts and usage are on demand; a name is part of every stack's name."""

    name: str

    # Storage
    removal_policy: RemovalPolicy
    deletion_protection: bool  # of the tables, and of the stacks against deletion
    point_in_time_recovery: bool = True
    projection: Projection = "ALL"  # what the index carries besides its keys
    projected: tuple[str, ...] = ()  # attributes, where the projection is INCLUDE
    capacity: Capacity = ON_DEMAND  # of events and their index

    # Events
    events: EventSettings = EVENTS
    growth: GrowthSettings = GROWTH

    # Cache of eventually consistent reads; None: no DAX, no network, nothing to pay
    cache: CacheSettings | None = None

    # Functions
    functions: FunctionSettings = FUNCTIONS
    bundle_for_this_machine: bool = False  # else for AWS Lambda

    # Heat
    alarms: AlarmSettings = ALARMS
    scaler: ScalerSettings = SCALER
    people: tuple[str, ...] = ()  # e-mail addresses that alarms are sent to

    # API
    authorizer: bool = True  # AWS_IAM on every route
    requests_per_second: int  # steady rate over which API Gateway answers 429
    burst_requests: int

    def __post_init__(self) -> None:
        """Refuse settings that only a deployment or the first write would find wrong."""
        if (self.projection == "INCLUDE") != bool(self.projected):
            raise ValueError(f"{self.name}: `projected` goes with projection INCLUDE, and only so")
        if not 0 < self.functions.timeout_seconds < 30:
            raise ValueError(f"{self.name}: API Gateway gives up at 30 s: timeout 1 to 29")


_ALL: Final = (
    Stage(
        name="local",
        removal_policy=RemovalPolicy.DESTROY,
        deletion_protection=False,
        # The local cloud runs functions in its own process, whatever runtime they declare.
        functions=replace(
            FUNCTIONS,
            architecture="x86_64",
            endpoint="http://127.0.0.1:4566",
            memory_mb=512,
            metrics_namespace="Spillway/local",
            log_retention=RetentionDays.ONE_DAY,
        ),
        bundle_for_this_machine=True,
        authorizer=False,
        requests_per_second=10_000,
        burst_requests=5_000,
    ),
    Stage(
        name="dev",
        removal_policy=RemovalPolicy.DESTROY,
        deletion_protection=False,
        cache=CacheSettings(nodes=1, node_type="dax.t3.small", zones=2),
        functions=replace(FUNCTIONS, metrics_namespace="Spillway/dev"),
        requests_per_second=500,
        burst_requests=500,
    ),
    Stage(
        name="prod",
        removal_policy=RemovalPolicy.RETAIN,
        deletion_protection=True,
        cache=CacheSettings(nodes=3, node_type="dax.t3.small", zones=3),
        functions=replace(
            FUNCTIONS,
            memory_mb=1_769,
            metrics_namespace="Spillway/prod",
            log_retention=RetentionDays.THREE_MONTHS,
            removal_policy=RemovalPolicy.RETAIN,
        ),
        # An account's default for one region: above it, ask AWS for a higher quota first.
        requests_per_second=10_000,
        burst_requests=5_000,
    ),
)

STAGES: Final[Mapping[str, Stage]] = {stage.name: stage for stage in _ALL}


def stage_named(name: object) -> Stage:
    """Return the stage that `-c stage=…` names; UnknownStageError where there is none."""
    stage = STAGES.get(name) if isinstance(name, str) else None
    if stage is None:
        raise UnknownStageError(name)
    return stage
