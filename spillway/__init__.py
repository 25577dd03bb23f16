"""Spillway: write-heavy, time-ordered data on Amazon DynamoDB.

One logical key is spread over shards, whose number may change while traffic runs; reads stay
ordered and complete.
"""

from spillway.aggregating.aggregate import AggregatePage, AggregateRow
from spillway.aggregating.fields import MAX_FIELD_BYTES
from spillway.aggregating.functions import AggregateFunction, Fill, Number
from spillway.dynamodb.dax import DaxCall
from spillway.dynamodb.port import (
    Call,
    OutcomeUnknownError,
    RefusedError,
    StorageError,
    ThrottledError,
    ThrottlingReason,
    UnreachableError,
)
from spillway.errors import InvalidInputError, SpillwayError, shorten
from spillway.event import MAX_ID_BYTES, MAX_SERIES_BYTES, MAX_SHARDING_KEY_BYTES, Event
from spillway.keys import SortKey, TimeBucket
from spillway.layouts.clock import ClockSkewError
from spillway.layouts.model import Epoch, GrowthStop, Layout, LayoutDecision
from spillway.runtime import Parallel, Runtime
from spillway.scaling.evidence import CapacityMetrics, CapacityUse
from spillway.scaling.policy import ThrottleTarget
from spillway.scaling.updates import Observer, ScalingEvent, ScalingKind
from spillway.scanning.costs import ReadCost
from spillway.scanning.export_position import MAX_POOL, ExportMode
from spillway.scanning.export_scan import ExportError
from spillway.scanning.exports import Export, ExportChunk
from spillway.scanning.pages import MAX_MISSING, Explanation, Measure, Missing, Page
from spillway.scanning.query import Order, Source
from spillway.scanning.streams import StoredEvent
from spillway.settings import Growth, GrowthPolicy, Settings
from spillway.sharding import (
    MAX_SHARDS,
    PARTITION_WCU,
    ShardingMode,
    recommended_shards,
    shards_for,
)
from spillway.store import EventStore
from spillway.timestamps import format_epoch, format_time, parse_time
from spillway.writing.results import Rejected, WriteResult

__all__ = [
    "MAX_FIELD_BYTES",
    "MAX_ID_BYTES",
    "MAX_MISSING",
    "MAX_POOL",
    "MAX_SERIES_BYTES",
    "MAX_SHARDING_KEY_BYTES",
    "MAX_SHARDS",
    "PARTITION_WCU",
    "AggregateFunction",
    "AggregatePage",
    "AggregateRow",
    "Call",
    "CapacityMetrics",
    "CapacityUse",
    "ClockSkewError",
    "DaxCall",
    "Epoch",
    "Event",
    "EventStore",
    "Explanation",
    "Export",
    "ExportChunk",
    "ExportError",
    "ExportMode",
    "Fill",
    "Growth",
    "GrowthPolicy",
    "GrowthStop",
    "InvalidInputError",
    "Layout",
    "LayoutDecision",
    "Measure",
    "Missing",
    "Number",
    "Observer",
    "Order",
    "OutcomeUnknownError",
    "Page",
    "Parallel",
    "ReadCost",
    "RefusedError",
    "Rejected",
    "Runtime",
    "ScalingEvent",
    "ScalingKind",
    "Settings",
    "ShardingMode",
    "SortKey",
    "Source",
    "SpillwayError",
    "StorageError",
    "StoredEvent",
    "ThrottleTarget",
    "ThrottledError",
    "ThrottlingReason",
    "TimeBucket",
    "UnreachableError",
    "WriteResult",
    "format_epoch",
    "format_time",
    "parse_time",
    "recommended_shards",
    "shards_for",
    "shorten",
]
