"""Every assumption about DynamoDB, each a field with its default and its source.

Sources: **[D]** documented by AWS, **[M]** measured and published by a named party, **[I]**
inferred from those, **[U]** unknown: a stated guess. `DG` is the DynamoDB developer guide; "blog"
is the AWS Database Blog series "Scaling DynamoDB: how partitions, hot keys, and split for heat
impact performance" (2023); "ATC22" is the USENIX ATC 2022 paper "Amazon DynamoDB: a scalable,
predictably performant, and fully managed NoSQL database service".
"""

from dataclasses import dataclass, replace

__all__ = ["ModelParameters"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParameters:
    """Limits, durations in seconds, and bounds of the model. Rates are units a second."""

    partition_wcu: float = 1000.0
    """Write units a second that one partition serves. [D] DG, burst and adaptive capacity."""
    partition_rcu: float = 3000.0
    """Strongly consistent read units a second that one partition serves. [D] As above."""
    eventual_boost: float = 1.5
    """Eventually consistent reads reach this multiple of `partition_rcu`: each of three replicas
    serves as many reads as the leader. [M] Blog part 2: 9,000 reads, 4,500 units a second."""
    partition_bytes: float = 10e9
    """Size at which a partition is split. [D] About 10 GB, DG."""
    partition_bucket_seconds: float = 1.0
    """Depth of a partition's token buckets, in seconds of its limit. [U] About one second."""

    on_demand_partitions: int = 4
    """Partitions of a new on-demand table or index, which take 4,000 write units and 12,000 read
    units with the limits above. [D] DG."""
    quota_wcu: float = 40_000.0
    """Write units a second that one on-demand table or index may take in an account. [D] DG,
    quotas."""
    quota_rcu: float = 40_000.0
    """The same for read units. [D] DG, quotas."""
    peak_multiple: float = 2.0
    """An on-demand table serves this multiple of its previous peak at once. [D] DG, on-demand."""
    growth_seconds: float = 900.0
    """Time until a new peak counts as previous. [D] More than double "within 30 minutes" may
    throttle. The moment itself is [U]: half of the documented bound."""
    rate_bucket_seconds: float = 1.0
    """Depth of the on-demand token buckets (growth, maximum, quota). [U] About one second."""

    burst_seconds: float = 300.0
    """Seconds of unused provisioned capacity that are kept. [D] DG, burst capacity."""
    initial_burst_seconds: float = 0.0
    """Burst that a new provisioned table starts with. [U] None: nothing was left unused yet."""

    index_buffer_seconds: float = 1.0
    """Index updates that may be pending for a whole index, in seconds of one partition's write
    rate. [U] That the buffer is finite and then rejects writes to the table is [D] DG,
    gsi-throttling."""

    split_threshold: float = 0.6
    """Sustained consumption of this share of a partition's limit makes it split for heat. [U]"""
    split_detection_seconds: float = 300.0
    """How long a partition must be hot without a break before its split begins. [U]"""
    min_split_seconds: float = 300.0
    """Minimum time that a split for heat takes once begun, even if the traffic stops. [U]"""
    max_split_seconds: float = 480.0
    """Maximum such time; each split draws evenly between the two. [U]"""
    max_concurrent_splits: int = 1_000_000
    """Splits for heat that a table or an index may have in progress. [U] No bound."""
    min_split_share: float = 0.1
    """A cut must leave each side this share of the latest traffic, or there is no split for heat.
    It excludes one hot item and an ever-increasing sort key. [I] From blog parts 2 and 3."""
    heat_window_seconds: float = 60.0
    """How often consumption is compared with the limits; splits are done at a window's end. [U]
    Never scaled below a second, over which a partition's bucket evens out its traffic."""

    metric_period_seconds: float = 60.0
    """Length of a metric's and an insight's time slot. [D] One minute, DG, metrics."""

    image_cache_items: int = 20_000
    """Minimum number of item images cached a table, so that a later write knows what it replaces.
    Ours: a bound on memory (about 1 KB an item more than its JSON), no property of DynamoDB."""
    max_contributors: int = 10_000
    """Keys counted a metric period and table; after that only known keys are counted. Ours: a
    bound."""

    time_scale: float = 1.0
    """Divides every duration above except the depths of token buckets (rates stay per real second):
    60 makes minutes of splits, bursts, peaks and metrics seconds. Ours."""

    def __post_init__(self) -> None:
        if min(self.partition_wcu, self.partition_rcu, self.time_scale) <= 0:
            raise ValueError("partition_wcu, partition_rcu and time_scale must be above zero")
        if self.max_split_seconds < self.min_split_seconds:
            raise ValueError("max_split_seconds is less than min_split_seconds")

    def in_real_time(self) -> "ModelParameters":
        """Return the parameters with `time_scale` applied to the durations, and itself 1."""
        scale = self.time_scale
        return replace(
            self,
            growth_seconds=self.growth_seconds / scale,
            burst_seconds=self.burst_seconds / scale,
            initial_burst_seconds=self.initial_burst_seconds / scale,
            split_detection_seconds=self.split_detection_seconds / scale,
            min_split_seconds=self.min_split_seconds / scale,
            max_split_seconds=self.max_split_seconds / scale,
            heat_window_seconds=max(
                self.heat_window_seconds / scale, min(1.0, self.heat_window_seconds)
            ),
            metric_period_seconds=self.metric_period_seconds / scale,
            time_scale=1.0,
        )
