"""Every number of a stage. Nothing else in `stacks` holds a limit, a size or a retention."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import RetentionDays

from spillway.keys import Bucket

__all__ = ["STAGES", "Stage", "UnknownStageError", "stage_named"]

Projection = Literal["ALL", "INCLUDE", "KEYS_ONLY"]


class UnknownStageError(ValueError):
    """The stage that was asked for does not exist."""

    def __init__(self, name: object) -> None:
        """Name the stages there are, so that the sentence helps."""
        super().__init__(f"unknown stage {name!r}: choose one of {', '.join(STAGES)} (-c stage=…)")
        self.name = name


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One environment. All tables are on demand; a name is part of every stack's name."""

    name: str

    # Storage
    removal_policy: RemovalPolicy
    deletion_protection: bool  # of the tables, and of the stacks against deletion
    point_in_time_recovery: bool = True
    projection: Projection = "ALL"  # what the index carries besides its keys
    projected: tuple[str, ...] = ()  # attributes, where the projection is INCLUDE

    # Events
    bucket: Bucket = Bucket.HOUR  # length of a time bucket in the index's partition key
    mode: Literal["calculated", "random"] = "calculated"
    initial_shards: int = 1  # of a new series; a power of two where the mode is calculated
    initial_index_shards: int = 1
    event_retention_days: int = 0  # 0 keeps events
    late_limit_seconds: int = 0  # 0 takes events of any age

    # Functions
    python: str = "3.13"
    architecture: Literal["arm64", "x86_64"] = "arm64"
    bundle_for_this_machine: bool = False  # else for AWS Lambda
    memory_mb: int  # CPU comes with memory: 1,769 MB is one vCPU
    timeout_seconds: int = 29  # API Gateway gives up at 30; ingest answers within 25
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_retention: RetentionDays
    dynamodb_endpoint: str | None = None  # where it is not AWS's own

    # API
    authorizer: bool = True  # AWS_IAM on every route
    requests_per_second: int  # steady rate over which API Gateway answers 429
    burst_requests: int

    def __post_init__(self) -> None:
        """Refuse settings that only a deployment or the first write would find wrong."""
        if (self.projection == "INCLUDE") != bool(self.projected):
            raise ValueError(f"{self.name}: `projected` goes with projection INCLUDE, and only so")
        if not 0 < self.timeout_seconds < 30:
            raise ValueError(f"{self.name}: API Gateway gives up at 30 s: timeout 1 to 29")
        counts = (self.initial_shards, self.initial_index_shards)
        if min(counts) < 1 or (self.mode == "calculated" and any(n & (n - 1) for n in counts)):
            raise ValueError(f"{self.name}: calculated shard counts are powers of two: {counts}")


_ALL: Final = (
    Stage(
        name="local",
        removal_policy=RemovalPolicy.DESTROY,
        deletion_protection=False,
        # The local cloud runs functions in its own process, whatever runtime they declare.
        architecture="x86_64",
        bundle_for_this_machine=True,
        memory_mb=512,
        log_retention=RetentionDays.ONE_DAY,
        dynamodb_endpoint="http://127.0.0.1:4566",
        authorizer=False,
        requests_per_second=10_000,
        burst_requests=5_000,
    ),
    Stage(
        name="dev",
        removal_policy=RemovalPolicy.DESTROY,
        deletion_protection=False,
        memory_mb=1_024,
        log_retention=RetentionDays.ONE_WEEK,
        requests_per_second=500,
        burst_requests=500,
    ),
    Stage(
        name="prod",
        removal_policy=RemovalPolicy.RETAIN,
        deletion_protection=True,
        memory_mb=1_769,
        log_retention=RetentionDays.THREE_MONTHS,
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
