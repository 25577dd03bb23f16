from hypothesis import given
from hypothesis import strategies as st

from dynamoheat.aggregated.bisection import greatest_share

PIECES = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1_000)), min_size=1, max_size=20
)  # (from where on, how steep)


def risen(pieces: list[tuple[float, float]], share: float) -> float:
    return sum(steep * max(share - begin, 0.0) for begin, steep in pieces)


@given(PIECES, st.floats(0, 2_000))
def test_the_share_found_is_allowed_and_no_greater_one_is(
    pieces: list[tuple[float, float]], limit: float
) -> None:
    def excess(share: float) -> float:
        return risen(pieces, share) - limit

    found = greatest_share(excess, limit + 1)
    close = 1e-6 * (limit + 1)
    assert 0 <= found <= 1
    assert excess(found) <= close
    assert found == 1 or excess(found) >= -close


@given(PIECES, st.floats(0, 100))
def test_nothing_is_allowed_where_even_none_is_too_much(
    pieces: list[tuple[float, float]], above: float
) -> None:
    assert greatest_share(lambda share: risen(pieces, share) + 1 + above, 1.0) == 0


def test_kinks_cost_a_handful_of_calls() -> None:
    calls = []

    def excess(share: float) -> float:
        calls.append(share)
        return sum(min(share * 100, cap) for cap in range(100)) - 3_000

    greatest_share(excess, 3_000)
    assert len(calls) <= 20
