"""What is stored as text comes back as it was: payloads, cursors, layouts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway import InvalidInputError
from spillway.layouts.codec import decode_layout, encode_layout
from spillway.layouts.model import OPEN, START, Epoch
from spillway.scanning.cursor import decode_cursor, encode_cursor
from spillway.scanning.pages import to_event
from spillway.scanning.streams import StoredEvent
from spillway.sharding import ShardingMode, routing_hash, shard_of
from spillway.writing.preparation import canonical, encode_payload
from tests.support.layouts import layout_of
from tests.support.strategies import (
    buckets,
    event_ids,
    json_objects,
    power_of_two_shards,
    series_names,
    sharding_keys,
    stored_times,
    texts,
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_objects)
def test_payloads_come_back_exactly(payload: dict[str, Any]) -> None:
    text = encode_payload(payload).decode()
    assert json.loads(text) == payload
    record = StoredEvent("2026-06-01T12:00:00.000000Z#1", "ORD#0", text, None)
    assert to_event("ORD", record).payload == payload


@given(st.dictionaries(st.text(max_size=3), anything, max_size=3) | anything)
def test_whatever_is_given_as_a_payload_is_stored_as_json_or_refused(payload: Any) -> None:
    try:
        text = encode_payload(payload).decode()
    except InvalidInputError:
        return
    assert json.loads(text, parse_constant=pytest.fail) == payload


@given(json_objects, json_objects)
def test_canonical_bytes_tell_payloads_apart(one: dict[str, Any], other: dict[str, Any]) -> None:
    shuffled = dict(reversed(one.items()))
    texts_ = [encode_payload(each).decode() for each in (one, shuffled, other)]
    assert canonical(texts_[0]) == canonical(texts_[1])
    if one != other:
        assert canonical(texts_[0]) != canonical(texts_[2])


@given(texts(600), st.text(), st.text())
def test_a_cursor_gives_back_its_sort_key_to_its_own_query_only(
    sort_key: str, binding: str, other: str
) -> None:
    binding, other = repr(binding), repr(other)
    cursor = encode_cursor(sort_key, binding)
    assert decode_cursor(cursor, binding) == sort_key
    if binding != other:
        with pytest.raises(InvalidInputError):
            decode_cursor(cursor, other)


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_no_text_that_was_not_made_here_is_a_cursor(text: str) -> None:
    with pytest.raises(InvalidInputError):
        decode_cursor(text, "binding")


epochs = st.builds(
    Epoch,
    id=st.integers(1, 10**6),
    shards=st.integers(1, 256),
    index_shards=power_of_two_shards,
    mode=st.sampled_from(ShardingMode),
    bucket=buckets,
    low=st.just(START) | stored_times,
    horizon=st.floats(1, 1e9),
    close=st.just(OPEN) | stored_times,
    earlier_shards=st.lists(st.integers(1, 256), max_size=3).map(tuple),
)


@given(st.lists(epochs, min_size=1, max_size=4), series_names)
def test_layouts_come_back_from_their_item(epochs: list[Epoch], series: str) -> None:
    layout = layout_of(*epochs, series=series)
    assert decode_layout(encode_layout(layout)) == layout


@given(series_names, sharding_keys, event_ids, power_of_two_shards)
def test_doubling_moves_an_event_only_to_one_new_shard(
    series: str, sharding_key: str | None, event_id: str, shards: int
) -> None:
    routing = routing_hash(series, sharding_key or event_id)
    before, after = shard_of(routing, shards), shard_of(routing, 2 * shards)
    assert 0 <= before < shards
    assert after in {before, before + shards}
