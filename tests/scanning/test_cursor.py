import base64
from datetime import timedelta

import pytest

from spillway import InvalidInputError
from spillway.scanning.cursor import decode_cursor, decode_position, encode_cursor, encode_position
from spillway.scanning.query import ReadQuery
from tests.support.fakes import NOON
from tests.support.stores import HOUR

MINUTE = timedelta(minutes=1)
SORT_KEY = "2026-06-01T12:00:00.000000Z#é#1"


def _query(**change: object) -> ReadQuery:
    fields = {
        "series": "ORD",
        "start": NOON - HOUR,
        "end": NOON,
        "order": "asc",
        "sharding_key": None,
        "source": "table",
        "consistent": False,
    }
    return ReadQuery.checked(**{**fields, **change})  # type: ignore[arg-type]


def _binding(**change: object) -> str:
    return _query(**change).binding


def test_a_cursor_is_opaque_and_safe_in_a_url() -> None:
    cursor = encode_cursor(SORT_KEY, _binding())
    assert cursor.replace("-", "").replace("_", "").isalnum()
    assert decode_cursor(cursor, _binding()) == SORT_KEY


@pytest.mark.parametrize(
    "change",
    [
        {"series": "LGA"},
        {"start": NOON - 2 * HOUR},
        {"end": NOON + HOUR},
        {"order": "desc"},
        {"sharding_key": "LGA"},
    ],
)
def test_a_cursor_belongs_to_its_query(change: dict[str, object]) -> None:
    cursor = encode_cursor(SORT_KEY, _binding())
    with pytest.raises(InvalidInputError, match="another query") as caught:
        decode_cursor(cursor, _binding(**change))
    assert (caught.value.code, caught.value.where) == ("invalid_cursor", "cursor")


@pytest.mark.parametrize("change", [{"source": "index"}, {"consistent": True}, {"source": "auto"}])
def test_a_cursor_moves_between_table_and_index(change: dict[str, object]) -> None:
    assert decode_cursor(encode_cursor(SORT_KEY, _binding()), _binding(**change)) == SORT_KEY


def test_no_two_queries_share_a_binding_whatever_their_names_hold() -> None:
    start, end = "2026-06-01T11:00:00.000000Z", "2026-06-01T12:00:00.000000Z"
    one = _binding(series=f"a\0{start}\0{end}\0asc\0b", sharding_key="c")
    other = _binding(series="a", sharding_key=f"b\0{start}\0{end}\0asc\0c")
    assert one != other


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "=",
        "A",
        "AAAA",
        "not base64!",
        "é",
        "\0",
        "AAAAAAAAAAA",
        "A" * 10_000,
        base64.urlsafe_b64encode(b"\xff" * 40).decode(),
    ],
)
def test_garbage_is_refused_as_a_cursor(garbage: str) -> None:
    with pytest.raises(InvalidInputError, match="damaged"):
        decode_cursor(garbage, _binding())


def test_every_changed_character_is_noticed() -> None:
    cursor = encode_cursor(SORT_KEY, _binding())
    for at, character in enumerate(cursor[:-1]):  # the last may hold unused bits
        changed = cursor[:at] + ("A" if character != "A" else "B") + cursor[at + 1 :]
        with pytest.raises(InvalidInputError):
            decode_cursor(changed, _binding())


@pytest.mark.parametrize(
    ("order", "position", "begin"),
    [
        ("asc", "2026-06-01T11:00:00.000000Z", "2026-06-01T11:07:00.000000Z"),
        ("desc", "2026-06-01T12:59:59.999999Z\U0010ffff", "2026-06-01T12:07:00.000000Z"),
    ],
)
def test_a_read_stopped_before_its_range_goes_on_at_its_begin(
    order: str, position: str, begin: str
) -> None:
    """Buckets of the index may begin before the range."""
    span = {"start": NOON - 53 * MINUTE, "end": NOON + 7 * MINUTE}
    query = _query(order=order, **span)
    assert decode_position(encode_position(position, query), query) == begin
