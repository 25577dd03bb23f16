"""Layout transitions: pure functions from one layout to the next, and the record of why."""

import math
from dataclasses import dataclass, replace
from typing import Final

from spillway.layouts.codec import history_entry
from spillway.layouts.model import OPEN, START, Epoch, Layout, LayoutDecision
from spillway.settings import Settings, check_counts
from spillway.timestamps import format_epoch, to_epoch

__all__ = [
    "BY_HAND",
    "ChangeReason",
    "begin_epoch",
    "close_retired",
    "compact",
    "extend_low",
    "first_layout",
    "record_decision",
    "record_remark",
]


_HISTORY: Final = 50  # changes kept for people


def first_layout(series: str, settings: Settings, now: float) -> Layout:
    """Return the layout of a new series: one epoch that covers all times until it is retired."""
    epoch = Epoch(
        id=1,
        shards=settings.shards,
        index_shards=settings.index_shards,
        mode=settings.mode,
        bucket=settings.bucket,
        low=START,
        horizon=settings.horizon,
    )
    return Layout(
        series=series,
        version=1,
        last_updated=round(now, 3),
        epochs=(epoch,),
        history=(history_entry(now, epoch.shards),),
    )


def begin_epoch(
    layout: Layout,
    settings: Settings,
    now: float,
    *,
    shards: int | None = None,
    index_shards: int | None = None,
) -> Layout:
    """Return the layout with the epoch in force retired and a new one begun.

    A count that is None stays as it is.

    The retired epoch stays open until `close_retired` closes it. The new one reaches
    `Settings.slack` back, for events that are on their way, takes bucket size and horizon from the
    settings, and keeps the mode of the series. `now` is in epoch seconds. ValueError where a count
    does not fit.
    """
    current = layout.current
    wanted = replace(
        current,
        shards=current.shards if shards is None else shards,
        index_shards=current.index_shards if index_shards is None else index_shards,
        bucket=settings.bucket,
    )
    if wanted == current:
        return layout
    check_counts(wanted.mode, wanted.shards, wanted.index_shards)
    at = _stamp(layout, now)
    begun = replace(
        wanted,
        id=current.id + 1,
        low=format_epoch(at - settings.slack),
        horizon=settings.horizon,
    )
    history = layout.history
    if begun.shards != current.shards:
        history = (*history, history_entry(at, begun.shards))[-_HISTORY:]
    changed = replace(
        layout,
        last_updated=at,
        epochs=(*layout.epochs, begun),
        history=history,
    )
    return compact(changed, settings.max_epochs)


def close_retired(layout: Layout, now: float) -> Layout:
    """Return the layout with every retired epoch closed: its own `horizon` after `now`.

    `now` is a clock that is right, read after the layout had been: writers load before that, or
    load the successor. An epoch never closes before its `horizon` after the last change: the epoch
    in force begins before that, so no time is left between the two, whatever the clock of the
    change's author said. Counts stay, so `last_updated` does.
    """
    if layout.has_closed_retired:
        return layout
    since = max(now, layout.last_updated)
    closed = (
        replace(epoch, close=format_epoch(since + epoch.horizon)) if epoch.close == OPEN else epoch
        for epoch in layout.epochs[:-1]
    )
    return replace(layout, epochs=(*closed, layout.current))


def extend_low(layout: Layout, epoch_id: int, time: str, now: float) -> Layout:
    """Return the layout whose epoch in force also covers events from `time` on.

    Returns the layout itself where another epoch than the one named is in force.
    """
    current = layout.current
    if current.id != epoch_id or current.low <= time:
        return layout
    return replace(
        layout,
        last_updated=_stamp(layout, now),
        epochs=(*layout.epochs[:-1], replace(current, low=time)),
    )


def compact(layout: Layout, max_epochs: int) -> Layout:
    """Return the layout with at most `max_epochs` epochs, or as few as can be.

    Folds adjacent closed epochs into one that covers what either did, the pair first whose union
    adds the least shards x time to what reads open. Epochs of different mode or bucket size are
    never folded.
    """
    epochs = list(layout.epochs)
    while len(epochs) > max_epochs:
        pairs = [at for at in range(len(epochs) - 2) if _may_fold(epochs[at], epochs[at + 1])]
        if not pairs:
            break
        at = min(pairs, key=lambda at: _added_cost(epochs[at], epochs[at + 1]))
        epochs[at : at + 2] = [_union(epochs[at], epochs[at + 1])]
    return layout if len(epochs) == len(layout.epochs) else replace(layout, epochs=tuple(epochs))


def _may_fold(older: Epoch, newer: Epoch) -> bool:
    closed = OPEN not in {older.close, newer.close}
    return closed and older.mode is newer.mode and older.bucket is newer.bucket


def _union(older: Epoch, newer: Epoch) -> Epoch:
    counts = dict.fromkeys((*older.earlier_shards, older.shards, *newer.earlier_shards))
    counts.pop(newer.shards, None)
    return replace(
        newer,
        low=min(older.low, newer.low),
        close=max(older.close, newer.close),
        earlier_shards=tuple(counts),
        index_shards=max(older.index_shards, newer.index_shards),
    )


def _added_cost(older: Epoch, newer: Epoch) -> float:
    union = _union(older, newer)
    return _cost(union) - _cost(older) - _cost(newer)


def _cost(epoch: Epoch) -> float:
    low = 0.0 if epoch.low == START else to_epoch(epoch.low)
    return (epoch.fan_out + epoch.index_shards) * (to_epoch(epoch.close) - low)


def _stamp(layout: Layout, now: float) -> float:
    """Return the time of a change: later than the one before, whatever the clocks say."""
    return math.ceil(max(now, layout.last_updated + 0.001) * 1_000 - 1e-6) / 1_000


_MOST: Final = 20  # about 2.5 KB: the item of a series with few epochs stays within one read unit


@dataclass(frozen=True, slots=True)
class ChangeReason:
    """Why a layout changes, for people, and on what evidence: figures as text."""

    why: str
    evidence: str = ""


BY_HAND: Final = ChangeReason("set by hand")


def record_decision(before: Layout, after: Layout, reason: ChangeReason) -> Layout:
    """Return `after` with the decision noted that led to it.

    The very `before` where nothing changed.
    """
    if after is before:
        return before
    return _with(after, before, after.last_updated, reason)


def record_remark(layout: Layout, now: float, reason: ChangeReason) -> Layout:
    """Return the layout with a decision noted that leaves the counts alone."""
    return _with(layout, layout, round(now, 3), reason)


def _with(layout: Layout, before: Layout, at: float, reason: ChangeReason) -> Layout:
    decision = LayoutDecision(
        at=at,
        before=_counts(before),
        after=_counts(layout),
        why=reason.why,
        evidence=reason.evidence,
    )
    return replace(layout, decisions=(*layout.decisions, decision)[-_MOST:])


def _counts(layout: Layout) -> tuple[int, int]:
    return layout.current.shards, layout.current.index_shards
