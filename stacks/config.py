"""Every number of a stage: what differs from the defaults of `spillway.cdk.settings`.

Nothing else in `stacks` holds a limit, a size or a retention.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import RetentionDays

from spillway.cdk.settings import (
    ALARMS,
    EVENTS,
    FUNCTIONS,
    GROWTH,
    ON_DEMAND,
    SCALER,
    AlarmSettings,
    Capacity,
    EventSettings,
    FunctionSettings,
    GrowthSettings,
    ScalerSettings,
)

__all__ = [
    "STAGES",
    "CacheSettings",
    "Stage",
    "UnknownStageError",
    "stage_named",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheSettings:
    """A DAX cluster, and its network, where the function that reads through it stands too."""

    nodes: int  # three survive the loss of a zone without a pause
    node_type: str
    zones: int  # availability zones with a subnet each
    item_ttl_seconds: int = 10  # of layouts: what DAX adds to the age of what a read sees
    query_ttl_seconds: int = 30  # of closed ranges of events
    cidr: str = "10.0.0.0/24"
    subnet_bits: int = 26  # 59 addresses: a node each, and a few interfaces of functions

    def __post_init__(self) -> None:
        """Refuse what only a deployment would refuse."""
        if not 1 <= self.nodes <= 11:
            raise ValueError(f"a DAX cluster has 1 to 11 nodes, not {self.nodes}")
        if min(self.zones, self.item_ttl_seconds, self.query_ttl_seconds) < 1:
            raise ValueError("zones and TTLs of a cache are 1 or more: a TTL of 0 keeps forever")


class UnknownStageError(ValueError):
    """There is no stage of that name."""

    def __init__(self, name: object) -> None:
        """Keep the name; the message lists the stages that exist."""
        stages = ", ".join(STAGES)
        super().__init__(f"unknown stage {name!r}: choose one of {stages} (-c stage=…)")
        self.name = name


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One environment. Layouts and usage are on demand; a name is part of every stack's name."""

    name: str

    # Storage
    removal_policy: RemovalPolicy
    deletion_protection: bool  # of the tables, and of the stacks against deletion
    point_in_time_recovery: bool = True
    capacity: Capacity = ON_DEMAND  # of events and their index

    # Events
    events: EventSettings = EVENTS
    growth: GrowthSettings = GROWTH

    # Cache of eventually consistent reads; None: no DAX, no network, no cost
    cache: CacheSettings | None = None

    # Functions
    functions: FunctionSettings = FUNCTIONS
    bundle_for_this_machine: bool = False  # else for AWS Lambda

    # Heat
    alarms: AlarmSettings = ALARMS
    scaler: ScalerSettings = SCALER
    people: tuple[str, ...] = ()  # e-mail addresses that receive alarms

    # API
    authorizer: bool = True  # AWS_IAM on every route
    requests_per_second: int  # steady rate over which API Gateway answers 429
    burst_requests: int

    def __post_init__(self) -> None:
        """Refuse settings that only a deployment or the first write would refuse."""
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
        # The default quota of an account in one region. For more, ask AWS first.
        requests_per_second=10_000,
        burst_requests=5_000,
    ),
)

STAGES: Final[Mapping[str, Stage]] = {stage.name: stage for stage in _ALL}


def stage_named(name: object) -> Stage:
    """Return the stage of that name.

    Raises:
        UnknownStageError: There is none.
    """
    stage = STAGES.get(name) if isinstance(name, str) else None
    if stage is None:
        raise UnknownStageError(name)
    return stage
