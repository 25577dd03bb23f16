from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from spillway import Event, InvalidInputError, Settings
from spillway.event import MAX_ITEM_BYTES
from spillway.timestamps import format_time
from spillway.writing.batches import build_item
from spillway.writing.preparation import EventValidator, PreparedEvent
from tests.support.fakes import NOON
from tests.support.layouts import epoch
from tests.support.memory_table import item_bytes
from tests.support.stores import DAY, HOUR, event_at


def _prepare(event: Event, settings: Settings | None = None) -> PreparedEvent:
    validator = EventValidator(settings or Settings(), NOON.timestamp())
    return validator.prepare(event, "1" if event.id is None else event.id)


def _refusal(event: Event, settings: Settings | None = None) -> tuple[str, str]:
    with pytest.raises(InvalidInputError) as caught:
        _prepare(event, settings)
    return caught.value.code, caught.value.where


def _unchecked(**fields: Any) -> Event:
    """Return an event with fields of any type, as a caller without a type checker may make it."""
    valid: dict[str, Any] = {"series": "ORD", "time": NOON, "payload": {}, "id": "1"}
    return Event(**{**valid, **fields})


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"series": ""}, "series"),
        ({"series": None}, "series"),
        ({"series": 7}, "series"),
        ({"series": "x" * 1_025}, "series"),
        ({"series": "é" * 513}, "series"),
        ({"series": "😀" * 257}, "series"),
        ({"time": "2001-01-01T00:00:00Z"}, "time"),
        ({"time": None}, "time"),
        ({"time": date(2001, 1, 1)}, "time"),
        ({"time": datetime(2001, 1, 1)}, "time"),  # noqa: DTZ001
        ({"time": datetime.min.replace(tzinfo=timezone(HOUR))}, "time"),
        ({"id": ""}, "id"),
        ({"id": 7}, "id"),
        ({"id": "a#b"}, "id"),
        ({"id": "#"}, "id"),
        ({"id": "x" * 129}, "id"),
        ({"id": "é" * 65}, "id"),
        ({"sharding_key": ""}, "sharding_key"),
        ({"sharding_key": 7}, "sharding_key"),
        ({"sharding_key": "x" * 513}, "sharding_key"),
        ({"sharding_key": "日" * 171}, "sharding_key"),
        ({"payload": None}, "payload"),
        ({"payload": [1]}, "payload"),
        ({"payload": {"a": float("nan")}}, "payload"),
        ({"payload": {"a": "\ud800"}}, "payload"),
    ],
)
def test_each_field_out_of_bounds_is_named(fields: dict[str, Any], where: str) -> None:
    assert _refusal(_unchecked(**fields)) == ("invalid_event", where)


@pytest.mark.parametrize("field", ["series", "id", "sharding_key"])
def test_lone_surrogates_are_refused_wherever_they_are(field: str) -> None:
    code, _ = _refusal(_unchecked(**{"sharding_key": "k", field: "a\ud800b"}))
    assert code == "invalid_event"


@pytest.mark.parametrize(
    "fields",
    [
        {"series": "x" * 1_024},
        {"series": "é" * 512},
        {"series": "😀" * 256},
        {"series": "#"},
        {"series": "\0"},
        {"id": "x" * 128},
        {"id": "日" * 42},
        {"sharding_key": "x" * 512},
        {"sharding_key": "#"},
        {"time": datetime(1, 1, 1, tzinfo=UTC)},
        {"payload": {}},
    ],
)
def test_fields_at_their_bounds_are_taken(fields: dict[str, Any]) -> None:
    prepared = _prepare(_unchecked(**fields))
    assert prepared.time == format_time(fields.get("time", NOON))


def test_events_may_lie_as_far_ahead_as_clocks_may_differ() -> None:
    skew = timedelta(seconds=Settings().future_skew)
    assert _prepare(event_at(NOON + skew)).time == format_time(NOON + skew)
    assert _refusal(event_at(NOON + skew + timedelta(microseconds=1))) == ("in_future", "time")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (Settings(late_limit=HOUR), "late limit"),
        (Settings(retention=HOUR), "retention"),
        (Settings(retention=DAY, late_limit=HOUR), "late limit"),
        (Settings(retention=HOUR, late_limit=DAY), "retention"),
    ],
)
def test_events_older_than_the_tighter_limit_are_too_late(settings: Settings, reason: str) -> None:
    assert _prepare(event_at(NOON - HOUR), settings).time == format_time(NOON - HOUR)
    late = event_at(NOON - HOUR - timedelta(microseconds=1))
    assert _refusal(late, settings) == ("too_late", "time")
    with pytest.raises(InvalidInputError, match=reason):
        _prepare(late, settings)


def test_without_limits_events_of_any_age_are_taken() -> None:
    assert _prepare(event_at(datetime(1, 1, 1, tzinfo=UTC))).time.startswith("0001-01-01")


def test_events_expire_after_the_retention_counted_from_their_own_time() -> None:
    time = NOON - HOUR + timedelta(microseconds=1)
    expires = _prepare(event_at(time), Settings(retention=DAY)).expires
    assert expires is not None
    assert expires >= (time + DAY).timestamp()
    assert expires < (time + DAY).timestamp() + 2
    assert _prepare(event_at(time)).expires is None


@pytest.mark.parametrize(
    ("sharding_key", "sort_key"),
    [(None, "2026-06-01T12:00:00.000000Z#1"), ("LGA", "2026-06-01T12:00:00.000000Z#LGA#1")],
)
def test_the_sort_key_holds_the_identity(sharding_key: str | None, sort_key: str) -> None:
    assert _prepare(event_at(sharding_key=sharding_key)).sort_key == sort_key


def test_events_with_one_sharding_key_share_a_shard_whatever_their_ids_and_times() -> None:
    events = [event_at(NOON - n * HOUR, str(n), sharding_key="LGA") for n in range(20)]
    assert len({_prepare(event).routing for event in events}) == 1
    without = [event_at(NOON - n * HOUR, str(n)) for n in range(20)]
    assert len({_prepare(event).routing for event in without}) == 20


def _with_payload_of(size: int, **fields: Any) -> Event:
    return _unchecked(payload={"a": "x" * (size - len('{"a":""}'))}, **fields)


@pytest.mark.parametrize("series", ["ORD", "é" * 512])
def test_items_may_be_as_large_as_dynamodb_takes_and_no_larger(series: str) -> None:
    settings = Settings(retention=DAY)
    low, high = 300_000, MAX_ITEM_BYTES
    while high - low > 1:  # the largest payload that is taken
        middle = (low + high) // 2
        try:
            _prepare(_with_payload_of(middle, series=series), settings)
            low = middle
        except InvalidInputError:
            high = middle
    largest = _prepare(_with_payload_of(low, series=series), settings)
    item = build_item(largest, epoch(shards=256, index_shards=256, bucket="minute"), 255)
    assert MAX_ITEM_BYTES - 8 <= item_bytes(item) <= MAX_ITEM_BYTES
    too_large = _with_payload_of(low + 1, series=series)
    assert _refusal(too_large, settings) == ("item_too_large", "payload")
