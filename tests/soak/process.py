"""One process of the soak: `python -m tests.soak.process ORDERS`, orders as JSON. Its name says what it does."""

import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from time import monotonic
from typing import Final

import boto3
import msgspec
from botocore.config import Config

from local.clients import client_settings
from spillway import Event, StorageError, keys
from spillway.timestamps import format_epoch, format_time
from tests.soak.journal import Acknowledged, Changed, Failed, Identity, Journal, Read, Sent
from tests.soak.world import (
    COUNTS,
    SERIES,
    SETTINGS,
    SHARDING_KEYS,
    Orders,
    Process,
    event,
    identity,
)

__all__ = ["read_range"]

_IMPATIENT: Final = Config(connect_timeout=1, read_timeout=1, max_pool_connections=16, proxies={})
_TICK: Final = timedelta(microseconds=1)
_numbers = count()
_unsure: list[Identity] = []  # events that may or may not be stored


def _write(process: Process) -> None:
    """Write a few events of one or more series, some of them once more, and log what became of each."""
    chosen = {_event(process) for _ in range(process.random.randint(1, 8))}
    wanted = sorted(chosen, key=lambda each: (each[0] == "archive", each))
    archived = [each for each in wanted if each[0] == "archive"]
    for group in (archived, [each for each in wanted if each[0] != "archive"]):
        if group:
            _write_group(process, group)


def _write_group(process: Process, group: list[Identity]) -> None:
    process.journal.add(Sent(monotonic(), group))
    patience = process.random.choice((0.5, 2, 10))
    result = process.store(group[0][0]).write(map(event, group), timeout=patience)
    rejected = {each.index: each for each in result.rejected}
    stored = [each for index, each in enumerate(group) if index not in rejected]
    process.journal.add(Acknowledged(monotonic(), stored))
    for index, each in rejected.items():
        process.journal.add(Failed(monotonic(), "event", each.code, each.retryable))
        _unsure.append(group[index])


def _event(process: Process) -> Identity:
    """Draw an event: mostly a new one, else one that was acknowledged or not known to be stored."""
    latest = format_epoch(process.runtime.now() + SETTINGS.future_skew)
    if _unsure and process.chance(0.1):
        return _unsure.pop(process.random.randrange(len(_unsure)))
    if process.acknowledged.latest and process.chance(0.1):
        again = process.random.choice(process.acknowledged.latest)
        if again[1] < latest:  # another's clock may be ahead
            return again
    time = format_epoch(_moment(process))
    sharding_key = process.random.choice(SHARDING_KEYS)
    event_id = f"{process.orders.name}.{next(_numbers)}"
    return process.random.choice(SERIES), keys.sort_key(time, sharding_key, event_id)


def _moment(process: Process) -> float:
    """Draw a time: around now, at the limit of the future, somewhat late, or very late."""
    now, draw = process.runtime.now(), process.random.random()
    if draw < 0.6:
        return now - process.random.random()
    if draw < 0.8:
        return now + SETTINGS.future_skew - process.random.choice((0.5, 2, 5))
    return now - process.random.random() * process.random.choice((20, 60, 7_000))


def _read(process: Process) -> None:
    kinds = (_read_recent, _read_around, _read_sharding_key, _read_one, _read_much)
    kind = process.random.choices(kinds, (30, 25, 15, 28, 2))[0]
    if not process.acknowledged.latest:
        return
    try:
        kind(process)
    except StorageError as error:
        process.journal.add(Failed(monotonic(), "read", error.code))


def _read_recent(process: Process) -> None:
    """Read a piece of the last or next seconds in small pages, often not to its end."""
    start = process.runtime.now() + process.random.uniform(-40, 10)
    end = start + process.random.uniform(0.5, 20)
    limit = process.random.randint(2, 20)
    series = process.random.choice(SERIES)
    read_range(process, series, _datetime(start), _datetime(end), limit=limit, max_pages=6)


def _read_around(process: Process) -> None:
    """Read around an event that was just acknowledged."""
    wanted = event(process.random.choice(process.acknowledged.latest[-20:]))
    before, after = (timedelta(seconds=process.random.choice((0, 0.01, 1))) for _ in range(2))
    start, end = wanted.time - before, wanted.time + after + _TICK
    read_range(process, wanted.series, start, end, limit=process.random.choice((1, 3, 100)))


def _read_much(process: Process) -> None:
    now = process.runtime.now()
    series = process.random.choice(SERIES)
    read_range(process, series, _datetime(now - 8_000), _datetime(now + 30), limit=500)


def _read_sharding_key(process: Process) -> None:
    now = process.runtime.now()
    start, end = _datetime(now - process.random.choice((5, 40, 8_000))), _datetime(now + 20)
    key = process.random.choice([key for key in SHARDING_KEYS if key])
    series = process.random.choice(SERIES)
    read_range(process, series, start, end, limit=30, max_pages=5, sharding_key=key)


def _read_one(process: Process) -> None:
    latest = process.acknowledged.latest
    series, sort_key = process.random.choice(latest[-20:] if process.chance(0.5) else latest)
    wanted = event((series, sort_key))
    assert wanted.id is not None
    began = monotonic()
    found = process.store(series).read_one(
        series, wanted.time, wanted.id, sharding_key=wanted.sharding_key
    )
    events = [] if found is None else [found]
    _log(process, began, "one", series, sort_key, sort_key + " ", events)


def read_range(
    process: Process,
    series: str,
    start: datetime,
    end: datetime,
    *,
    limit: int,
    max_pages: int = 1_000,
    order: str | None = None,
    sharding_key: str | None = None,
    source: str = "table",
) -> None:
    """Read a range page by page, strongly consistent unless from the index, and log the answer."""
    order = order or process.random.choice(("asc", "desc"))
    began, cursor, found = monotonic(), None, list[Event]()
    for _ in range(max_pages):
        page = process.store(series).read(
            series,
            start,
            end,
            limit=limit,
            order=order,
            cursor=cursor,
            sharding_key=sharding_key,
            consistent=source == "table",
            source=source,
        )
        found += page.events
        cursor = page.cursor
        if cursor is None:
            break
    kind = source if source == "index" else "range" if sharding_key is None else "sharding key"
    _log(
        process, began, kind, series, format_time(start), format_time(end), found,
        descending=order == "desc", sharding_key=sharding_key, complete=cursor is None,
    )  # fmt: skip


def _log(  # noqa: PLR0917  what identifies a read
    process: Process,
    began: float,
    kind: str,
    series: str,
    start: str,
    end: str,
    found: list[Event],
    *,
    descending: bool = False,
    sharding_key: str | None = None,
    complete: bool = True,
) -> None:
    identities = [identity(each) for each in found]
    pairs = zip(identities, found, strict=True)
    entry = Read(
        began=began, ended=monotonic(), kind=kind, series=series, start=start, end=end,
        found=[sort_key for _, sort_key in identities],
        descending=descending, sharding_key=sharding_key, complete=complete,
        damaged=[each[1] for each, answered in pairs if answered != event(each)],
    )  # fmt: skip
    process.journal.add(entry)


def _operate(process: Process) -> None:
    """Grow or shrink a series; what can't be done in time is left."""
    series = process.random.choice(SERIES)
    shards, index_shards = (
        process.random.choice(COUNTS) if process.chance(0.7) else None for _ in range(2)
    )
    with suppress(StorageError):
        layout = process.store(series).set_layout(series, shards=shards, index_shards=index_shards)
        current = layout.current
        changed = Changed(monotonic(), series, layout.version, current.shards, current.index_shards)
        process.journal.add(changed)


def _datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(round(seconds, 6), UTC)


# Pauses in seconds: two cores carry the cloud and seven processes.
_TASKS: Final = {
    "writer": (_write, 0.02, 0.15),
    "reader": (_read, 0.0, 0.1),
    "operator": (_operate, 0.3, 1.2),
}


def main() -> None:
    """Do what the orders say until the time is over."""
    orders = msgspec.json.decode(sys.argv[1], type=Orders)
    client = boto3.client("dynamodb", config=_IMPATIENT, **client_settings(orders.endpoint_url))
    step, least, most = _TASKS[orders.name.partition("-")[0]]
    with Journal(orders.journal(orders.name)) as journal:
        Process(orders, client, journal).go_on(step, least, most)


if __name__ == "__main__":
    main()
