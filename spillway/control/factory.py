"""Puts a scaler together from ports and settings."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from spillway.control.capacity import CapacityBounds, CapacityManager
from spillway.control.index_candidates import IndexCandidates
from spillway.control.insights import ThrottleInsights
from spillway.control.monitoring import MonitoringPort
from spillway.control.resharding import Resharder
from spillway.control.scaler import Scaler
from spillway.control.shrinking import ShrinkSettings, ShrinkSweep
from spillway.dynamodb.boto import call_through
from spillway.dynamodb.port import Call
from spillway.layouts.repository import ShardedSeries
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.scaling.updates import LayoutUpdater, Observer
from spillway.scaling.usage import UsageReader
from spillway.settings import Settings

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["ScalerOptions", "TableNames", "open_scaler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableNames:
    """Names of the tables."""

    events: str
    layouts: str
    usage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalerOptions:
    """What a deployment decides about the scaler.

    Attributes:
        dry_run: it decides and reports, and changes nothing.
        shrink_window: how long usage must have been low before a layout shrinks; None never shrinks.
        bounds: up to where throughput is raised.
    """

    dry_run: bool = False
    shrink_window: timedelta | None = timedelta(hours=36)
    bounds: CapacityBounds = field(default_factory=CapacityBounds)


def open_scaler(  # noqa: PLR0913  all parts meet here
    client: "DynamoDBClient | Call",
    watching: MonitoringPort,
    tables: TableNames,
    *,
    settings: Settings,
    options: ScalerOptions,
    observe: Observer,
    runtime: Runtime | None = None,
) -> Scaler:
    """Return the scaler: once a process. `settings` are those of the writers, growth included.

    `client` is a boto3 DynamoDB client, or an implementation of the port.
    """
    call: Call = client if callable(client) else call_through(client)
    runtime = runtime or Runtime()
    layouts = LayoutSource(call, tables.layouts, settings, runtime)
    listing = ShardedSeries(call, tables.layouts, runtime)
    usage = UsageReader(call, tables.usage)
    enactor = LayoutUpdater(layouts, observe, runtime.now, options.dry_run)
    raiser = CapacityManager(
        call, tables.events, options.bounds, observe, runtime.now, options.dry_run
    )
    shrink = _shrink(options, settings)
    return Scaler(
        events=tables.events,
        layouts_table=tables.layouts,
        watching=watching,
        insights=ThrottleInsights(call, watching, tables.events, runtime.monotonic),
        layouts=layouts,
        usage=usage,
        suspects=IndexCandidates(listing, usage, runtime.parallel),
        relief=Resharder(layouts, enactor, raiser, settings.growth, runtime.now),
        raiser=raiser,
        rounds=None
        if shrink is None
        else ShrinkSweep(
            listing,
            layouts,
            usage,
            enactor,
            shrink,
            settings.growth,
            runtime.now,
            runtime.monotonic,
        ),
        observe=observe,
        now=runtime.now,
    )


def _shrink(options: ScalerOptions, settings: Settings) -> ShrinkSettings | None:
    if options.shrink_window is None:
        return None
    window = options.shrink_window.total_seconds()
    return ShrinkSettings(
        window=window,
        remembered=max(window, ShrinkSettings().remembered),
        min_shards=settings.shards,
        min_index_shards=settings.index_shards,
    )
