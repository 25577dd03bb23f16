"""What a read asks for, checked and in stored form."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar

from spillway.errors import InvalidInputError
from spillway.event import check_id, check_series, check_sharding_key
from spillway.keys import TIME_WIDTH, SortKey
from spillway.timestamps import format_time, to_datetime

__all__ = ["MAX_LIMIT", "Order", "ReadQuery", "Source", "check_identity"]

MAX_LIMIT: Final = 10_000


class Order(StrEnum):
    """Order of a read: by sort key, so by time, then sharding key and id."""

    ASCENDING = "asc"
    DESCENDING = "desc"


class Source(StrEnum):
    """Where a read looks."""

    AUTO = "auto"
    TABLE = "table"
    INDEX = "index"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadQuery:
    """A checked read of [start, end) of a series; times are stored texts."""

    series: str
    start: str
    end: str
    order: Order
    sharding_key: str | None
    source: Source
    consistent: bool

    @property
    def descending(self) -> bool:
        """Whether the latest event comes first."""
        return self.order is Order.DESCENDING

    @property
    def binding(self) -> str:
        """What a cursor belongs to: everything that decides which events come in which order."""
        parts = (self.series, self.start, self.end, self.order.value, self.sharding_key)
        return repr(parts)  # quoted: names may hold any separator

    def narrowed(self, after: str | None) -> "ReadQuery":
        """Return the query without the times before a position, which has a time of the range."""
        if after is None:
            return self
        time = after[:TIME_WIDTH]
        if not self.descending:
            return replace(self, start=max(self.start, time))
        if time >= self.end:
            return self
        return replace(self, end=format_time(to_datetime(time) + timedelta(microseconds=1)))

    @classmethod
    def checked(  # noqa: PLR0913  the read's own parameters
        cls,
        series: str,
        start: datetime,
        end: datetime,
        *,
        order: str,
        sharding_key: str | None,
        source: str,
        consistent: bool,
    ) -> "ReadQuery":
        """Check the parameters of a read; InvalidInputError names the first that is wrong."""
        check_series(series, "invalid_query")
        check_sharding_key(sharding_key, "invalid_query")
        first, last = _time("start", start), _time("end", end)
        if first >= last:
            raise InvalidInputError("invalid_query", "start", "must be before `end`")
        query = cls(
            series=series,
            start=first,
            end=last,
            order=_choice(Order, "order", order),
            sharding_key=sharding_key,
            source=_choice(Source, "source", source),
            consistent=consistent,
        )
        if query.source is Source.INDEX and consistent:
            reason = "an index has no consistent reads: use source=table, or consistent=false"
            raise InvalidInputError("invalid_query", "source", reason)
        return query


def check_identity(series: str, time: datetime, event_id: str, sharding_key: str | None) -> SortKey:
    """Check the identity of one event and return what its sort key holds; InvalidInputError."""
    check_series(series, "invalid_query")
    check_sharding_key(sharding_key, "invalid_query")
    check_id(event_id, "invalid_query")
    return SortKey(_time("time", time), sharding_key, event_id)


def _time(field: str, value: object) -> str:
    if not isinstance(value, datetime):
        raise InvalidInputError("invalid_query", field, "must be a datetime")
    try:
        return format_time(value)
    except ValueError as error:
        raise InvalidInputError("invalid_query", field, str(error)) from error


C = TypeVar("C", bound=StrEnum)


def _choice(kind: type[C], field: str, value: str) -> C:
    try:
        return kind(value)
    except ValueError as error:
        known = ", ".join(kind)
        raise InvalidInputError("invalid_query", field, f"must be one of {known}") from error
