"""Everything about DynamoDB that the model must assume, each a named field with its default and source.

Sources: **[D]** documented by AWS, **[M]** measured and published by a named party, **[I]** inferred
from those, **[U]** unknown, so a stated guess. `DG` is the DynamoDB developer guide; "blog" is the AWS
Database Blog series "Scaling DynamoDB: how partitions, hot keys, and split for heat impact
performance" (2023); "ATC22" is the USENIX ATC 2022 paper "Amazon DynamoDB: a scalable, predictably
performant, and fully managed NoSQL database service".
"""

from dataclasses import dataclass, replace

__all__ = ["ModelParameters"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParameters:
    """Limits, durations (seconds) and bounds of the model. Scale `partition_wcu` and `time_scale` at will."""

    partition_wcu: float = 1000.0
    """Write units a second that one partition serves. [D] DG, burst and adaptive capacity."""
    partition_rcu: float = 3000.0
    """Strongly consistent read units a second that one partition serves. [D] as above."""
    eventual_boost: float = 1.5
    """Eventually consistent reads reach this multiple of `partition_rcu`: each of three replicas serves
    as many reads as the leader. [M] blog part 2: 9,000 reads, 4,500 units a second."""
    partition_bytes: float = 10e9
    """Data at which a partition is split. [D] about 10 GB, DG."""
    partition_bucket_seconds: float = 1.0
    """Depth of a partition's own buckets. [U] About one second."""

    on_demand_partitions: int = 4
    """Partitions of a new on-demand table or index; with the limits above 4,000 W and 12,000 R. [D] DG."""
    quota_wcu: float = 40_000.0
    """Write units a second that one on-demand table or index may take in an account. [D] DG, quotas."""
    quota_rcu: float = 40_000.0
    """The same for read units. [D] DG, quotas."""
    peak_multiple: float = 2.0
    """An on-demand table takes this multiple of its previous peak at once. [D] DG, on-demand."""
    growth_seconds: float = 900.0
    """Time until a new peak counts as previous. [D] Beyond the double "within 30 minutes" may throttle;
    the moment itself is [U]: half of the documented bound."""
    rate_bucket_seconds: float = 1.0
    """Depth of the on-demand rate buckets (growth, maximum, quota). [U] About one second."""

    burst_seconds: float = 300.0
    """Unused provisioned capacity that is kept. [D] DG, burst capacity."""
    initial_burst_seconds: float = 0.0
    """Burst that a new provisioned table starts with. [U] None: it has left nothing unused yet."""

    index_buffer_seconds: float = 1.0
    """Index updates that may wait, in seconds of one partition's write rate, for a whole index. [U]
    That the buffer is finite and then rejects writes to the table is [D] DG, gsi-throttling."""

    split_threshold: float = 0.6
    """Share of a partition's limit whose sustained consumption makes it split for heat. [U]"""
    split_detection_seconds: float = 300.0
    """How long a partition must be hot without a break for its split to begin. [U]"""
    split_minimum_seconds: float = 300.0
    """Least time that a split for heat takes once it has begun; it ends even if the traffic stops. [U]"""
    split_maximum_seconds: float = 480.0
    """Greatest such time; chosen evenly between the two. [U]"""
    splits_at_once: int = 1_000_000
    """Splits for heat that a table or an index may have under way at once. [U] No bound."""
    split_min_share: float = 0.1
    """A cut must leave each side this share of the latest traffic, or there is no split for heat. It is
    what excludes one hot item and an ever-increasing sort key. [I] from blog parts 2 and 3."""
    heat_window_seconds: float = 60.0
    """How often consumption is compared with the limits; splits are done at its ends. [U] Never scaled
    below a second, over which a partition's bucket evens its traffic out."""

    metric_period_seconds: float = 60.0
    """Length of a metric's and an insight's time slot. [D] One minute, DG, metrics."""

    remembered_items: int = 20_000
    """Items a table remembers at least, so that a later write knows what it replaces. Ours: a bound on
    memory (about 1 KB an item more than its JSON), no property of DynamoDB."""
    contributors: int = 10_000
    """Keys counted a metric period and table before only known ones are counted further. Ours: a bound."""

    time_scale: float = 1.0
    """Divides every duration above but the depths of buckets (rates stay per real second): 60 makes the
    minutes of splits, bursts, peaks and metrics seconds. Ours."""

    def __post_init__(self) -> None:
        if min(self.partition_wcu, self.partition_rcu, self.time_scale) <= 0:
            raise ValueError("partition_wcu, partition_rcu and time_scale must be above zero")
        if self.split_maximum_seconds < self.split_minimum_seconds:
            raise ValueError("split_maximum_seconds is less than split_minimum_seconds")

    def in_real_time(self) -> "ModelParameters":
        """Return the same with `time_scale` applied to the durations, and itself 1."""
        scale = self.time_scale
        return replace(
            self,
            growth_seconds=self.growth_seconds / scale,
            burst_seconds=self.burst_seconds / scale,
            initial_burst_seconds=self.initial_burst_seconds / scale,
            split_detection_seconds=self.split_detection_seconds / scale,
            split_minimum_seconds=self.split_minimum_seconds / scale,
            split_maximum_seconds=self.split_maximum_seconds / scale,
            heat_window_seconds=max(
                self.heat_window_seconds / scale, min(1.0, self.heat_window_seconds)
            ),
            metric_period_seconds=self.metric_period_seconds / scale,
            time_scale=1.0,
        )
