"""Layouts of any history with events and copies wherever these may lie, and exports over them page by page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st

from spillway import EventStore, Settings, ShardingMode, keys
from spillway.dynamodb.port import Call
from spillway.layouts.codec import encode_layout
from spillway.layouts.model import Layout
from spillway.layouts.transitions import (
    begin_epoch,
    close_retired,
    compact,
    extend_low,
    first_layout,
)
from spillway.sharding import routing_hash, shard_of
from spillway.timestamps import format_epoch, format_time
from tests.support.fakes import NOON
from tests.support.memory_table import EVENTS, LAYOUTS, MemoryTable
from tests.support.stores import HOUR, MemoryStore
from tests.support.strategies import ranges

__all__ = ["END", "SERIES", "START", "Change", "World", "changes", "modes", "small_pages", "worlds"]

SERIES: Final = "s"
START: Final = NOON - 6 * HOUR
END: Final = NOON + HOUR
_MINUTES: Final = 7 * 60  # from START to END

modes = st.sampled_from(["shards", "blocks", "round_robin"])
Change = Callable[[Layout], Layout]


@dataclass
class World:
    """A table with a layout, and the copies of every event of a range: shards by sort key."""

    layout: Layout
    settings: Settings
    page: int
    span: tuple[datetime, datetime] = (START, END)
    memory: MemoryStore = field(init=False)
    copies: dict[str, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.memory = MemoryStore(self.settings, wrap=lambda call: small_pages(call, self.page))
        self.change(lambda layout: layout)

    @property
    def table(self) -> MemoryTable:
        return self.memory.table

    def change(self, change: Change) -> None:
        """Change the stored layout."""
        self.layout = change(self.layout)
        item = encode_layout(self.layout)
        self.table.items[LAYOUTS][self.table.key_of(LAYOUTS, item)] = item

    def shards_for(self, sort_key: str) -> list[int]:
        """Return the shards that the event may lie in, the newest epoch's first."""
        time, sharding_key, _ = keys.parse_sort_key(sort_key)
        routing = routing_hash(SERIES, sharding_key or sort_key)
        return self.layout.candidates(time, routing)

    def put(self, sort_key: str, shard: int, expires: int | None = None) -> None:
        """Store a copy as the newest epoch with this shard for it would; its payload names it."""
        key = keys.partition_key(SERIES, shard)
        item = {
            keys.PARTITION_KEY: {"S": key},
            keys.SORT_KEY: {"S": sort_key},
            keys.INDEX_PARTITION_KEY: {"S": self._index_key(sort_key, shard)},
            keys.PAYLOAD: {"S": f'{{"shard":{shard}}}'},
        }
        if expires is not None:
            item[keys.EXPIRES] = {"N": str(expires)}
        self.table.items[EVENTS][key, sort_key] = item
        start, end = map(format_time, self.span)
        if start <= sort_key < end:
            self.copies.setdefault(sort_key, set()).add(shard)

    def _index_key(self, sort_key: str, shard: int) -> str:
        time, sharding_key, _ = keys.parse_sort_key(sort_key)
        routing = routing_hash(SERIES, sharding_key or sort_key)
        holding = (each for each in self.layout.covering(time) if shard in each.shards_of(routing))
        epoch = next(holding, self.layout.current)
        label = keys.bucket_label(time, epoch.bucket)
        return keys.index_key(SERIES, label, shard_of(routing, epoch.index_shards))

    def store(self) -> EventStore:
        """Return the store of another process."""
        return self.memory.another()

    def newest(self) -> dict[str, int]:
        """Return the shard of each event's copy that ordered reads prefer, by sort key."""
        return {
            sort_key: next(shard for shard in self.shards_for(sort_key) if shard in shards)
            for sort_key, shards in sorted(self.copies.items())
        }

    def export(self, mode: str, cursor: str | None = None, **options: Any) -> Any:
        """Open an export of the whole range in another process."""
        return self.store().export(SERIES, *self.span, mode=mode, cursor=cursor, **options)


def small_pages(call: Call, most: int) -> Call:
    """Return a port whose Query ends after a few items, as DynamoDB's does at 1 MB."""

    def cut(operation: str, request: Mapping[str, Any], /) -> dict[str, Any]:
        if operation == "Query":
            request = {**request, "Limit": min(most, request["Limit"])}
        return call(operation, request)

    return cut


def _time(minutes: int) -> float:
    return (START + timedelta(minutes=minutes)).timestamp()


def _successor(settings: Settings, minutes: int, shards: int) -> Change:
    return lambda layout: begin_epoch(layout, settings, _time(minutes), shards=shards)


def _settling(minutes: int) -> Change:
    # Nothing is written ahead of the clock here, so whatever is stored lies before every close.
    return lambda layout: close_retired(layout, max(_time(minutes), END.timestamp()))


def _lowering(minutes: int) -> Change:
    def lower(layout: Layout) -> Layout:
        return extend_low(layout, layout.current.id, format_epoch(_time(minutes)), _time(minutes))

    return lower


@st.composite
def changes(draw: st.DrawFn, settings: Settings) -> Change:
    """Draw a change of a layout: growth or shrinking, a close, a lower mark, or folding."""
    minutes = draw(st.integers(0, _MINUTES))
    counts = st.sampled_from([1, 2, 4, 8])
    if settings.mode is ShardingMode.RANDOM:
        counts = st.integers(1, 8)
    kind = draw(st.sampled_from(["succeed", "succeed", "settle", "lower", "fold"]))
    if kind == "succeed":
        return _successor(settings, minutes, draw(counts))
    if kind == "settle":
        return _settling(minutes)
    if kind == "lower":
        return _lowering(minutes)
    return lambda layout: compact(layout, 2)


def _narrowed(draw: st.DrawFn, layout: Layout) -> Layout:
    """Close some retired epochs at other times, so that not every one covers the whole end of the range."""
    epochs = [
        replace(each, close=format_epoch(_time(draw(st.integers(0, _MINUTES)))))
        if draw(st.booleans())
        else each
        for each in layout.epochs[:-1]
    ]
    return replace(layout, epochs=(*epochs, layout.current))


_identities = st.tuples(
    st.integers(0, _MINUTES - 1),
    st.sampled_from(["", "", "k#", "k#1#", "é#"]),
    st.integers(0, 3),
)


@st.composite
def worlds(
    draw: st.DrawFn,
    max_events: int = 30,
    expiries: st.SearchStrategy[int | None] = st.none(),  # noqa: B008  strategies are values
) -> World:
    """Draw a history of layouts, with events in any of the shards that the epochs covering them give them."""
    mode = draw(
        st.sampled_from([ShardingMode.CALCULATED, ShardingMode.CALCULATED, ShardingMode.RANDOM])
    )
    shards = draw(st.sampled_from([1, 2, 4, 8]))
    settings = Settings(mode=mode, shards=shards)
    layout = first_layout(SERIES, settings, _time(0) - 3_600)
    for change in draw(st.lists(changes(settings), max_size=4)):
        layout = change(layout)
    span = draw(st.just((START, END)) | ranges(START, END))
    world = World(_narrowed(draw, layout), settings, draw(st.integers(1, 9)), span)
    for minutes, key, number in draw(st.sets(_identities, max_size=max_events)):
        sort_key = f"{format_epoch(_time(minutes))}#{key}{number}"
        places = world.shards_for(sort_key)
        for shard in draw(st.sets(st.sampled_from(places), min_size=1)) if places else ():
            world.put(sort_key, shard, draw(expiries))
    return world
