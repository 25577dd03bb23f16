"""Puts a scaler together from ports and settings."""

from dataclasses import dataclass, field
from datetime import timedelta

from spillway.layouts.listing import ShardedSeries
from spillway.layouts.source import LayoutSource
from spillway.runtime import Runtime
from spillway.scaler.insights import Insights
from spillway.scaler.raiser import Bounds, Raiser
from spillway.scaler.relief import Relief
from spillway.scaler.rounds import Rounds
from spillway.scaler.scaler import Scaler
from spillway.scaler.suspects import Suspects
from spillway.scaler.watching import Watching
from spillway.scaling.enactor import Enactor
from spillway.scaling.recorded import RecordedUsage
from spillway.scaling.report import Observer
from spillway.scaling.shrink import Shrink
from spillway.settings import Settings
from spillway.storage.port import Call

__all__ = ["ScalerOptions", "Tables", "open_scaler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
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
    bounds: Bounds = field(default_factory=Bounds)


def open_scaler(  # noqa: PLR0913  all parts meet here
    call: Call,
    watching: Watching,
    tables: Tables,
    *,
    settings: Settings,
    options: ScalerOptions,
    observe: Observer,
    runtime: Runtime | None = None,
) -> Scaler:
    """Return the scaler: once a process. `settings` are those of the writers, growth included."""
    runtime = runtime or Runtime()
    layouts = LayoutSource(call, tables.layouts, settings, runtime)
    listing = ShardedSeries(call, tables.layouts, runtime)
    usage = RecordedUsage(call, tables.usage)
    enactor = Enactor(layouts, observe, runtime.now, options.dry_run)
    raiser = Raiser(call, tables.events, options.bounds, observe, runtime.now, options.dry_run)
    shrink = _shrink(options, settings)
    return Scaler(
        events=tables.events,
        layouts_table=tables.layouts,
        watching=watching,
        insights=Insights(call, watching, tables.events, runtime.monotonic),
        layouts=layouts,
        usage=usage,
        suspects=Suspects(listing, usage, runtime.parallel),
        relief=Relief(layouts, enactor, raiser, settings.growth, runtime.now),
        raiser=raiser,
        rounds=None
        if shrink is None
        else Rounds(
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


def _shrink(options: ScalerOptions, settings: Settings) -> Shrink | None:
    if options.shrink_window is None:
        return None
    window = options.shrink_window.total_seconds()
    return Shrink(
        window=window,
        remembered=max(window, Shrink().remembered),
        least_shards=settings.shards,
        least_index_shards=settings.index_shards,
    )
