"""Cursors that no answer held: damaged, cut, spliced, and forged with the checksum that fits."""

import base64
from collections.abc import Sequence
from typing import Final

import xxhash
from hypothesis import strategies as st

from spillway.timestamps import format_time
from tests.support.fakes import NOON
from tests.support.stores import HOUR

__all__ = ["bad_cursors", "forge"]


def forge(stored: bytes, binding: str) -> str:
    """Return a cursor that has the right checksum for what it holds."""
    check = xxhash.xxh64_digest(stored + b"\0" + binding.encode())
    return base64.urlsafe_b64encode(check + stored).rstrip(b"=").decode()


_TIMES: Final = [
    *(format_time(NOON + hours * HOUR) for hours in (-100, -7, -6, -5, -1, 0, 1, 2, 100)),
    format_time(NOON - HOUR - HOUR / 3_600_000_000),
    "0000-01-01T00:00:00.000000Z",
    "0001-01-01T00:00:00.000000Z",
    "9999-12-31T23:59:59.999999Z",
    "2026-06-01T11:00:00.00000000",
    "2026-06-01T11:00:00.0000000",
    "2026-06-01T11:00:00.0+01:00",
    "2026-02-30T11:00:00.000000Z",
    "2026-06-01T24:00:00.000000Z",
    "2026-06-01",
    "\uff12026-06-01T11:00:00.000000Z",  # a wide digit
]
_ENDS: Final = [
    *("", "#", "##", "#1", "#k#1", "~", "\0", " ", "Z", "\U0010ffff", "#\U0010ffff", "#é"),
    "#" + "x" * 641,
    "#" + "x" * 642,
    "#" + "é" * 600,
    "#" + "x" * 100_000,
]
_positions = st.builds("{}{}".format, st.sampled_from(_TIMES), st.just("") | st.sampled_from(_ENDS))
_numbers = st.sampled_from(["0", "1", "-1", "7", "256", "257", "9" * 400, "9" * 9_999, "1.5", "1e9", "nan", "inf", "-inf", "٣", "+1", " 1", "1_0", ""])  # fmt: skip
_exports = st.one_of(
    st.builds("{}:{}:{}:{}".format, _numbers, _numbers, _numbers, _positions),
    st.builds("{}:{}:{}".format, _numbers, _numbers, _positions),
)
_likely = st.builds("{}{}".format, st.sampled_from(["", "0:1:0:", "0:256:0:"]), _positions)
_documents = st.sampled_from(
    [
        '{"row": 494493}',
        '{"row": -1, "before": null, "after": null, "tally": null}',
        '{"row": 494493, "tally": {"count": -5, "sum": {"whole": 1e400, "parts": [NaN]}}}',
        '{"row": 494493, "tally": {"count": 1, "sum": {"whole": 0, "parts": [1e308, 1e308]}}}',
        '{"row": 494493, "before": [0, [null]]}',
        "[" * 100_000,
        '{"a":' * 50_000,
        "null",
        "1e400",
    ]
)
_forged = st.one_of(
    _positions.map(str.encode),
    _exports.map(str.encode),
    _numbers.map(str.encode),
    _documents.map(str.encode),
    st.text(max_size=50).map(lambda text: text.encode(errors="surrogatepass")),
    st.binary(max_size=50),
    st.sampled_from([b"2026-06-01T11:00:00.000000Z#\xed\xa0\x80", b"\xff\xfe", b""]),
)


@st.composite
def _damaged(draw: st.DrawFn, cursors: Sequence[str]) -> str:
    """Draw a cursor with a byte or a character changed, cut short, or made of two."""
    cursor, other = draw(st.sampled_from(cursors)), draw(st.sampled_from(cursors))
    at = draw(st.integers(0, len(cursor) - 1))
    kind = draw(st.sampled_from(["byte", "character", "cut", "splice", "longer", "doubled"]))
    if kind == "byte":
        raw = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        raw[at % len(raw)] ^= draw(st.integers(1, 255))
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    return {
        "character": cursor[:at]
        + draw(st.sampled_from("A_-=.+/é😀\0 \n\ud800"))
        + cursor[at + 1 :],
        "cut": cursor[:at],
        "splice": cursor[:at] + other[at:],
        "longer": cursor + draw(st.text(max_size=3)),
        "doubled": cursor * 2,
    }[kind]


def bad_cursors(cursors: Sequence[str], bindings: Sequence[str]) -> st.SearchStrategy[str]:
    """Return cursors made of those of answers, of other queries among them, and for some bindings."""
    return st.one_of(
        _damaged(cursors),
        st.sampled_from(cursors),
        st.builds(forge, _forged, st.sampled_from(bindings)),
        st.builds(forge, _likely.map(str.encode), st.just(bindings[0])),
        st.text(max_size=60),
    )
