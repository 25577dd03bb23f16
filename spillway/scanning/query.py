"""What a read asks for, checked and in stored form."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar

from spillway.errors import InvalidInputError
from spillway.event import MAX_ID_BYTES, MAX_SERIES_BYTES, MAX_SHARDING_KEY_BYTES
from spillway.keys import TIME_WIDTH, SortKey
from spillway.timestamps import format_time, to_datetime

__all__ = ["MAX_LIMIT", "Order", "ReadQuery", "Source", "check_identity", "check_series"]

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
        """Return the query without the times that come before a cursor's sort key; InvalidInputError where it is none."""
        if after is None:
            return self
        time = after[:TIME_WIDTH]
        try:
            last = to_datetime(time)
            if format_time(last) != time:
                raise ValueError(time)
        except ValueError as error:
            raise InvalidInputError("invalid_cursor", "cursor", "is damaged") from error
        if not self.descending:
            return replace(self, start=max(self.start, time))
        following = format_time(last + timedelta(microseconds=1)) if time < self.end else self.end
        return replace(self, end=min(self.end, following))

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
        check_series(series)
        _check_sharding_key(sharding_key)
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


def check_series(series: str) -> None:
    """Check a series name; InvalidInputError."""
    _check_text("series", series, MAX_SERIES_BYTES)


def _check_sharding_key(sharding_key: str | None) -> None:
    """Check a sharding key where there is one; InvalidInputError."""
    if sharding_key is not None:
        _check_text("sharding_key", sharding_key, MAX_SHARDING_KEY_BYTES)


def check_identity(series: str, time: datetime, event_id: str, sharding_key: str | None) -> SortKey:
    """Check the identity of one event and return what its sort key holds; InvalidInputError."""
    check_series(series)
    _check_sharding_key(sharding_key)
    _check_text("id", event_id, MAX_ID_BYTES)
    if "#" in event_id:
        raise InvalidInputError("invalid_query", "id", "must not contain #")
    return SortKey(_time("time", time), sharding_key, event_id)


def _check_text(field: str, value: object, most: int) -> None:
    if not isinstance(value, str):
        raise InvalidInputError("invalid_query", field, "must be text")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidInputError("invalid_query", field, "must be valid Unicode") from error
    if not 1 <= size <= most:
        raise InvalidInputError("invalid_query", field, f"must be 1 to {most:,} bytes of UTF-8")


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
