"""Where reads find layouts and events, by how old what they see may be."""

from dataclasses import dataclass
from enum import Enum, auto

from spillway.layouts.model import Layout
from spillway.layouts.source import LayoutSource
from spillway.reading.experience import Experience
from spillway.runtime import Runtime
from spillway.storage.port import Call
from spillway.timestamps import format_epoch

__all__ = ["Age", "Sources"]


class Age(Enum):
    """How old what a read sees may be."""

    NONE = auto()  # every write acknowledged before is seen
    SECONDS = auto()  # the process cache's time to live, and DynamoDB's lag
    MINUTES = auto()  # that, and the time to live of a cache before DynamoDB


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where reads find layouts and events.

    Attributes:
        call: DynamoDB.
        cached: DynamoDB by way of a cache, for reads that may lag; `call` where there is none.
        experience: what reads have shown of their series.
        index_has_payload: whether reads from the index return whole events.
        open_for: seconds after which nothing is expected to be added to a range that has ended.
    """

    call: Call
    cached: Call
    experience: Experience
    index_has_payload: bool
    open_for: float
    table: str
    layouts: LayoutSource
    runtime: Runtime

    def age(self, end: str, *, consistent: bool) -> Age:
        """Return how old what is read of times before `end` may be: only closed ranges come from a cache.

        An open one would lack its latest events, after a growth of its layout most of them.
        """
        if consistent:
            return Age.NONE
        closed = end <= format_epoch(self.runtime.now() - self.open_for)
        return Age.MINUTES if closed and self.cached is not self.call else Age.SECONDS

    def layout(self, series: str, age: Age) -> Layout | None:
        """Return the layout, None where the series has none."""
        match age:
            case Age.NONE:
                return self.layouts.read(series)
            case Age.SECONDS:
                return self.layouts.read_eventually(series)
            case Age.MINUTES:
                return self.layouts.read_cached(series)

    def events(self, age: Age) -> Call:
        """Return the way to the events."""
        return self.cached if age is Age.MINUTES else self.call
