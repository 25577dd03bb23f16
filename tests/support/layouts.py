"""Layouts of any history, without the protocol that makes them."""

from collections.abc import Iterable
from datetime import datetime

from spillway.keys import TimeBucket
from spillway.layouts.codec import encode_layout
from spillway.layouts.model import OPEN, START, Epoch, Layout
from spillway.sharding import ShardingMode
from spillway.timestamps import format_time
from tests.support.memory_table import LAYOUTS, MemoryTable

__all__ = ["epoch", "layout_of", "store_layout"]


def epoch(
    number: int = 1,
    *,
    shards: int = 1,
    index_shards: int = 1,
    mode: str = "calculated",
    bucket: str = "hour",
    low: datetime | None = None,
    close: datetime | None = None,
    horizon: float = 600,
) -> Epoch:
    """Return an epoch; it covers everything where `low` and `close` are left out."""
    return Epoch(
        id=number,
        shards=shards,
        index_shards=index_shards,
        mode=ShardingMode(mode),
        bucket=TimeBucket(bucket),
        low=START if low is None else format_time(low),
        horizon=horizon,
        close=OPEN if close is None else format_time(close),
    )


def layout_of(*epochs: Epoch, series: str = "ORD") -> Layout:
    """Return a layout with these epochs, oldest first."""
    return Layout(series=series, version=len(epochs), last_updated=1_000.5, epochs=epochs)


def store_layout(table: MemoryTable, epochs: Iterable[Epoch], series: str = "ORD") -> Layout:
    """Put a layout into the layout table, in place of any that is there."""
    layout = layout_of(*epochs, series=series)
    item = encode_layout(layout)
    table.items[LAYOUTS][table.key_of(LAYOUTS, item)] = item
    return layout
