"""When a layout must rest: between two changes, and after growth was found not to help. Pure."""

from spillway.layouts.model import Layout

__all__ = ["cooldown_left", "is_stopped"]


def cooldown_left(layout: Layout, cooldown: float, now: float) -> float:
    """Return seconds until the layout may change again; a layout that never changed may at once."""
    if layout.version == 1:
        return 0.0
    # Clocks differ: whoever changed it may be ahead.
    return min(max(0.0, cooldown - (now - layout.last_updated)), cooldown)


def is_stopped(layout: Layout, stop_for: float, now: float) -> bool:
    """Tell whether growth was found not to help this layout in the last `stop_for` seconds."""
    if layout.stop is None or layout.stop.at < layout.last_updated:
        return False
    return now - layout.stop.at < stop_for
