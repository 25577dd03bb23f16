"""Events as clients write them in JSON."""

from typing import Any

from spillway.timestamps import format_time
from tests.support.fakes import NOON

__all__ = ["event_json"]


def event_json(event_id: str | None = "1", **change: Any) -> dict[str, Any]:
    """Return a valid event, with fields replaced, or left out where they are given as `...`."""
    valid = {"series": "ORD", "time": format_time(NOON), "id": event_id, "payload": {"delay": 33}}
    return {
        name: value
        for name, value in {**valid, **change}.items()
        if value is not ... and not (name == "id" and value is None)
    }
