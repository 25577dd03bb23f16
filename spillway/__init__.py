"""Spillway: write-heavy, time-ordered data on Amazon DynamoDB.

One logical key is spread over shards, whose number may change while traffic runs; reads stay ordered and complete.
"""

from spillway.aggregates.page import AggregatePage, AggregateRow
from spillway.errors import InvalidInputError, SpillwayError
from spillway.event import Event
from spillway.exporting.export import Export, ExportChunk
from spillway.exporting.failure import ExportError
from spillway.keys import Bucket
from spillway.layouts.clock import ClockSkewError
from spillway.reading.page import Page
from spillway.runtime import Runtime
from spillway.settings import Settings
from spillway.sharding import Mode, recommended_shards, shards_for
from spillway.storage.dax import DaxCall
from spillway.storage.port import (
    OutcomeUnknownError,
    RefusedError,
    StorageError,
    ThrottledError,
    UnreachableError,
)
from spillway.store import EventStore
from spillway.writing.result import Rejected, WriteResult

__all__ = [
    "AggregatePage",
    "AggregateRow",
    "Bucket",
    "ClockSkewError",
    "DaxCall",
    "Event",
    "EventStore",
    "Export",
    "ExportChunk",
    "ExportError",
    "InvalidInputError",
    "Mode",
    "OutcomeUnknownError",
    "Page",
    "RefusedError",
    "Rejected",
    "Runtime",
    "Settings",
    "SpillwayError",
    "StorageError",
    "ThrottledError",
    "UnreachableError",
    "WriteResult",
    "recommended_shards",
    "shards_for",
]
