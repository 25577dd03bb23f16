import io
import math

import pytest
from rich.console import Console

from local.demo.display import Display, RequestTimings, percentile


def test_a_percentile_is_the_min_value_that_so_many_do_not_exceed() -> None:
    values = [float(n) for n in range(100, 0, -1)]
    assert [percentile(values, p) for p in (1, 50, 99, 100)] == [1, 50, 99, 100]
    assert percentile([7.0], 50) == 7
    assert math.isnan(percentile([], 50))


def test_timings_are_kept_by_method() -> None:
    timings = RequestTimings()
    for method, seconds in (("GET", 1.0), ("POST", 2.0), ("GET", 3.0)):
        timings.observe(method, seconds)
    assert (timings.of("GET"), timings.of("POST")) == ([1.0, 3.0], [2.0])


@pytest.mark.parametrize("steps", [[10], [1] * 10, [3, 3, 3, 1]])
def test_progress_is_plain_lines_up_to_the_total_where_there_is_no_terminal(
    steps: list[int],
) -> None:
    output = io.StringIO()
    with Display(Console(file=output)).progress("stored", 10) as tell:
        for step in steps:
            tell(step)
    lines = output.getvalue().splitlines()
    assert lines[-1] == "  stored: 10 of 10"
    assert 1 <= len(lines) <= 10


def test_progress_is_a_bar_on_a_terminal() -> None:
    output = io.StringIO()
    with Display(Console(file=output, force_terminal=True)).progress("stored", 10) as tell:
        tell(10)
    assert "10/10" in output.getvalue()
    assert "100%" in output.getvalue()
