"""Decisions: when a layout changed, from which counts to which, why, and on what evidence.

The last few are kept on the layout item, written by the very UpdateItem that changes it, so none is missing there and
none is told that did not take effect. They are for people: nothing is decided by them.
"""

from dataclasses import dataclass, replace
from typing import Final

from spillway.layouts.model import Layout, LayoutDecision

__all__ = ["BY_HAND", "Reason", "noted", "remarked"]

_MOST: Final = 20  # about 2.5 KB: the item of a series with few epochs stays within one read unit


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a layout changes, for people, and on what evidence: figures as text."""

    why: str
    evidence: str = ""


BY_HAND: Final = Reason("set by hand")


def noted(before: Layout, after: Layout, reason: Reason) -> Layout:
    """Return `after` with the decision noted that led to it; the very `before` where nothing changed."""
    if after is before:
        return before
    return _with(after, before, after.last_updated, reason)


def remarked(layout: Layout, now: float, reason: Reason) -> Layout:
    """Return the layout with a decision noted that leaves the counts alone."""
    return _with(layout, layout, round(now, 3), reason)


def _with(layout: Layout, before: Layout, at: float, reason: Reason) -> Layout:
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
