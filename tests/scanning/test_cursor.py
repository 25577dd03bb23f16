import base64

import pytest

from spillway import InvalidInputError
from spillway.scanning.cursor import decode_cursor, encode_cursor
from spillway.scanning.query import ReadQuery
from tests.support.fakes import NOON
from tests.support.stores import HOUR

SORT_KEY = "2026-06-01T12:00:00.000000Z#é#1"


def _binding(**change: object) -> str:
    fields = {
        "series": "ORD",
        "start": NOON - HOUR,
        "end": NOON,
        "order": "asc",
        "sharding_key": None,
        "source": "table",
        "consistent": False,
    }
    return ReadQuery.checked(**{**fields, **change}).binding  # type: ignore[arg-type]


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
