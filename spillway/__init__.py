"""Spillway: write-heavy, time-ordered data on Amazon DynamoDB.

One logical key is spread over shards, whose number may change while traffic runs; reads stay
ordered and complete.
"""

from spillway.aggregating.aggregate import AggregatePage, AggregateRow
from spillway.dynamodb.dax import DaxCall
from spillway.dynamodb.port import (
    OutcomeUnknownError,
    RefusedError,
    StorageError,
    ThrottledError,
    UnreachableError,
)
from spillway.errors import InvalidInputError, SpillwayError
from spillway.event import Event
from spillway.keys import TimeBucket
from spillway.layouts.clock import ClockSkewError
from spillway.runtime import Runtime
from spillway.scanning.export_scan import ExportError
from spillway.scanning.exports import Export, ExportChunk
from spillway.scanning.pages import Page
from spillway.settings import Settings
from spillway.sharding import ShardingMode, recommended_shards, shards_for
from spillway.store import EventStore
from spillway.writing.results import Rejected, WriteResult

__all__ = [
    "AggregatePage",
    "AggregateRow",
    "ClockSkewError",
    "DaxCall",
    "Event",
    "EventStore",
    "Export",
    "ExportChunk",
    "ExportError",
    "InvalidInputError",
    "OutcomeUnknownError",
    "Page",
    "RefusedError",
    "Rejected",
    "Runtime",
    "Settings",
    "ShardingMode",
    "SpillwayError",
    "StorageError",
    "ThrottledError",
    "TimeBucket",
    "UnreachableError",
    "WriteResult",
    "recommended_shards",
    "shards_for",
]
