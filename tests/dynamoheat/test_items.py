from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamoheat.sizes import (
    attributes_bytes,
    item_bytes,
    key_text,
    number_bytes,
    sortable_value,
    value_bytes,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 1), ("-0", 1), ("0.00", 1), ("000", 1), ("1", 2), ("100", 2), ("120", 3),
        ("12345", 4),
        ("0.012", 3), ("-1", 3), ("-123", 4), ("3.14159", 5), ("16785408", 5), ("1E+2", 2),
        ("0012", 2), ("9" * 38, 20), ("-0." + "1" * 38, 21), ("1000000", 2), ("1" + "0" * 37, 2),
    ],
)  # fmt: skip
def test_numbers_take_a_byte_a_pair_of_digits(text: str, size: int) -> None:
    assert number_bytes(text) == size


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=5, min_value=-(10**9), max_value=10**9
    )
)
def test_a_number_has_one_size_however_it_is_written(number: Any) -> None:
    assert (
        number_bytes(f"{number:f}") == number_bytes(f"{number:E}") == number_bytes(f"{number:f}0")
    )


@given(st.integers(1, 10**30))
def test_multiplying_by_a_hundred_moves_pairs_and_changes_no_size(number: int) -> None:
    assert number_bytes(str(number)) == number_bytes(f"{number}00")
    assert number_bytes(f"-{number}") == number_bytes(str(number)) + 1


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "Grüße"}, 7),
        ({"B": "AAECAw=="}, 4),
        ({"BOOL": False}, 1),
        ({"NULL": True}, 1),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"N": "1"}]}, 3 + 3 + 3),
        ({"M": {"k": {"S": "ab"}}}, 3 + 1 + 2 + 1),
        ({"SS": ["a", "bc"]}, 3),
        ({"NS": ["1", "120"]}, 5),
        ({"BS": ["AA==", "AAE="]}, 3),
    ],
)
def test_values_cost_what_the_guide_says(value: dict[str, Any], size: int) -> None:
    assert value_bytes(value) == size


def test_the_guides_example_item_is_23_bytes() -> None:
    assert item_bytes({"shirt-color": {"S": "R"}, "shirt-size": {"S": "M"}}) == 23


@given(
    st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=20).map(lambda t: {"S": t}))
)
def test_an_item_costs_its_names_and_strings_in_utf8(item: dict[str, Any]) -> None:
    expected = sum(len(n.encode()) + len(v["S"].encode()) for n, v in item.items())
    assert item_bytes(item) == expected
    assert attributes_bytes(item, [*item, "absent"]) == expected


def test_equal_numeric_keys_are_one_key_and_order_as_numbers() -> None:
    assert key_text({"N": "1.0"}) == key_text({"N": "1"}) == key_text({"N": "10E-1"})
    assert sortable_value({"N": "9"}) < sortable_value({"N": "10"})
    assert sortable_value({"B": "AQ=="}) == b"\x01"
