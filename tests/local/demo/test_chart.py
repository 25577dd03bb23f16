from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from local.demo.display import chart
from local.demo.load import LoadSample, ShardCounts

SERIES = ("ORD", "DFW", "ATL")


def sample(
    at: float,
    written: float,
    throttled: int,
    counts: Sequence[ShardCounts] = (ShardCounts(1, 1),) * 3,
) -> LoadSample:
    return LoadSample(at, written, throttled, dict(zip(SERIES, counts, strict=True)))


def test_rates_are_what_came_between_two_looks_on_one_scale() -> None:
    grown = (ShardCounts(0, 0), ShardCounts(8, 2), ShardCounts(256, 128))
    lines = chart([sample(0, 100, 7), sample(2, 300, 7), sample(4, 350, 407, grown)])
    assert [line.split() for line in lines[-2:]] == [
        ["2", "100", "#" * 10, "0", "1", "(1)", "1", "(1)", "1", "(1)"],
        ["4", "25", "#" * 3, "200", "x" * 20, "-", "8", "(2)", "256", "(128)"],
    ]


def test_columns_stand_under_their_names() -> None:
    head, line = chart([sample(0, 0, 0), sample(1, 50, 60)])[-2:]
    assert head.index("accepted/s") <= line.index("#") < head.index("throttled/s")
    assert head.index("throttled/s") <= line.index("x")
    assert len(line) == len(head.rstrip()) == head.index("ATL") + 3


def test_a_rate_above_zero_is_seen_beside_any_other() -> None:
    line = chart([sample(0, 0, 0), sample(1, 100_000, 1)])[-1]
    assert line.count("x") == 1


def test_nothing_to_compare_makes_no_chart() -> None:
    assert chart([]) == chart([sample(0, 0, 0)]) == []


steps = st.tuples(st.floats(0.5, 30), st.integers(0, 20_000), st.integers(0, 20_000))


@given(st.lists(steps, min_size=1, max_size=300))
def test_any_load_fits_a_screen_of_100_columns(given_steps: list[tuple[float, int, int]]) -> None:
    samples = [sample(0, 0, 0)]
    for seconds, written, throttled in given_steps:
        last = samples[-1]
        samples.append(
            sample(last.at + seconds, last.written + written, last.throttled + throttled,
                   (ShardCounts(256, 256),) * 3)
        )  # fmt: skip
    lines = chart(samples)
    assert 3 <= len(lines) <= 42
    assert max(map(len, lines)) <= 100
    assert all(line.isascii() for line in lines)
    assert lines[-1].split()[0] == f"{samples[-1].at:.0f}"


@given(st.integers(1, 300))
def test_averages_over_several_looks_add_up_to_the_whole_load(looks: int) -> None:
    samples = [sample(at, at * at, 0) for at in range(looks + 1)]
    rows = [line.split() for line in chart(samples)[2:]]
    ends = [0.0, *(float(row[0]) for row in rows)]
    total = sum(
        float(row[1].replace(",", "")) * (end - begin)
        for row, begin, end in zip(rows, ends, ends[1:], strict=False)
    )
    assert abs(total - looks * looks) <= 0.5 * looks  # rates are shown without a fraction
