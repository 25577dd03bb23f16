"""Metric math: what CloudWatch documents, arithmetic's laws, and refusals."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.cloudwatch.alarms import Query, Stat
from local.cloudwatch.computing import compute
from local.cloudwatch.expressions import Array, ExpressionError, Series, Value, parse
from local.cloudwatch.functions import Scope
from local.cloudwatch.queries import computed
from local.cloudwatch.samples import Samples
from local.cloudwatch.store import Metric, MetricStore, PeriodGrid

VALUES: dict[str, Value] = {
    "m1": [1.0, None, 3.0, 4.0],
    "m2": [10.0, 20.0, None, 0.0],
    "errors": [0.0, 2.0, None, None],
}


def value_of(text: str) -> Value:
    scope = Scope(VALUES, ("m1", "m2", "errors"), PeriodGrid(0, 60, 4))
    return compute(parse(text), scope)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("m1 + m2", [11, None, None, 4]),
        ("m1 / m2", [0.1, None, None, None]),
        ("100 * m2 / m1", [1000, None, None, 0]),
        ("-m1 ^ 2", [-1, None, -9, -16]),
        ("2 ^ 3 ^ 2", 512),
        ("m1 >= 3", [0, None, 1, 1]),
        ("m1 > 1 AND m2 < 5", [0, None, None, 1]),
        ("m1 > 1 || m2 > 5", [1, None, None, 1]),
        ("m1 == 3 && m1 != 4", [0, None, 1, 0]),
        ("SUM(METRICS())", [11, 22, 3, 4]),
        ("SUM(METRICS('m'))", [11, 20, 3, 4]),
        ("SUM([m1, m2])", [11, 20, 3, 4]),
        ("AVG([m1, m2])", [5.5, 20, 3, 2]),
        ("MAX([m1, m2])", [10, 20, 3, 4]),
        ("MIN(METRICS())", [0, 2, 3, 0]),
        ("METRIC_COUNT(METRICS())", 3),
        ("MAX(m1)", 4),
        ("SUM(m1)", 8),
        ("m1 - AVG(m1)", [1 - 8 / 3, None, 3 - 8 / 3, 4 - 8 / 3]),
        ("FILL(m1, 0)", [1, 0, 3, 4]),
        ("FILL(m1, m2)", [1, 20, 3, 4]),
        ("FILL(errors, REPEAT)", [0, 2, 2, 2]),
        ("FILL(m1, LINEAR)", [1, 2, 3, 4]),
        ("FILL(m1, 0) + FILL(m2, 0)", [11, 20, 3, 4]),
        ("SUM(FILL(METRICS(), 0))", [11, 22, 3, 4]),
        ("IF(m1 > 2, m1, 0)", [0, None, 3, 4]),
        ("IF(m2, 1, 2)", [1, 1, None, 2]),
        ("IF(m2 > 0, errors / m2, 0)", [0, 0.1, None, 0]),
        ("IF(1, m1)", [1, None, 3, 4]),
        ("ABS(-m1)", [1, None, 3, 4]),
        ("CEIL(m1 / 2)", [1, None, 2, 2]),
        ("FLOOR(m1 / 2)", [0, None, 1, 2]),
        ("LOG10(m2)", [1, math.log10(20), None, None]),
        ("DIFF(m2)", [None, 10, None, -20]),
        ("RATE(m2)", [None, 10 / 60, None, -20 / 120]),
        ("RUNNING_SUM(m1)", [1, None, 4, 8]),
        ("DATAPOINT_COUNT(m1)", 3),
        ("m1 / PERIOD(m1) * 60", [1, None, 3, 4]),
        ("TIME_SERIES(7)", [7, 7, 7, 7]),
        ("FIRST([m1, m2])", [1, None, 3, 4]),
        ("LAST([m1, m2])", [10, 20, None, 0]),
        ("1e2 + .5", 100.5),
    ],
)  # fmt: skip
def test_expressions_give_what_cloudwatch_documents(text: str, wanted: Any) -> None:
    found = value_of(text)
    assert found == (
        [None if each is None else pytest.approx(each) for each in wanted]
        if isinstance(wanted, list)
        else pytest.approx(wanted)
    )


def test_an_array_is_worked_on_member_by_member() -> None:
    assert value_of("[m1, m2] * 2") == Array(([2, None, 6, 8], [20, 40, None, 0]))
    assert value_of("1 - METRICS('m1')") == Array(([0, None, -2, -3],))


@pytest.mark.parametrize(
    "text",
    [
        "", "m1 +", "(m1", "m1)", "[m1", "m1 m2", "m9", "NOPE(m1)", "SEARCH('x', 'Sum', 300)",
        "__import__('os')", "m1.x", "m1; m2", "FILL(m1)", "SUM()", "'text' + 1", "REPEAT + 1",
        "[m1] + [m2]", "1 / 0", "m1 = 2", "(" * 60 + "1" + ")" * 60, "1+" * 2000 + "1", "1+" * 900 + "1", "-" * 90 + "1", "SUM(" * 60 + "m1" + ")" * 60, "FILL(m1, LAST)",
        "SUM(m1, m2, 3)", "IF(m1 > METRICS(), 1, 0)", "[1, 2]", "m1[0]", "[[m1]", "lambda: 1",
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused_in_words(text: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        value_of(text)
    assert str(refused.value)


@given(
    st.text("0123456789.+-*/^()[], m12eSUMFILIFMETRC'\"<>=&|", max_size=40) | st.text(max_size=20)
)
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        found = value_of(text)
    except ExpressionError:
        return
    assert isinstance(found, float | int | list | Array | str)


NUMBERS = st.integers(1, 99).map(str)
FORMULAS = st.recursive(
    NUMBERS,
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from(["+", "-", "*", "/", " < ", " >= "]), part).map("".join),
        part.map(lambda inner: f"({inner})"),
        part.map(lambda inner: f"(-{inner})"),
    ),
    max_leaves=12,
)


@given(FORMULAS.filter(lambda text: text.count("<") + text.count(">") <= 1))
def test_operators_bind_as_in_any_language(text: str) -> None:
    try:
        wanted = float(eval(text))  # noqa: S307  # digits and operators
    except ZeroDivisionError:
        return
    assert value_of(text) == pytest.approx(wanted)


SERIES = st.lists(st.none() | st.floats(-100, 100), min_size=4, max_size=4)


@given(SERIES, SERIES)
def test_a_point_is_there_where_both_sides_are(left: Series, right: Series) -> None:
    found = compute(parse("a + b"), Scope({"a": left, "b": right}, (), PeriodGrid(0, 60, 4)))
    assert isinstance(found, list)
    for one, other, total in zip(left, right, found, strict=True):
        assert total == (None if one is None or other is None else one + other)


def metric(name: str) -> Query:
    return Query(name, Stat(Metric("N", name), "Sum", 60))


def test_expressions_may_refer_to_each_other_in_any_order() -> None:
    store = MetricStore()
    store.put(Metric("N", "a"), 0, Samples.of(3))
    queries = [
        Query("e2", expression="e1 * 2"),
        Query("e1", expression="a + 1"),
        Query("all", expression="SUM(METRICS())"),
        metric("a"),
    ]
    found = computed(queries, store, PeriodGrid(0, 60, 1))
    assert found == {"a": [3], "e1": [4], "e2": [8], "all": [3]}


@pytest.mark.parametrize("expression", ["e1 + 1", "e2", "b"])
def test_expressions_in_a_circle_or_of_unknown_ids_are_refused(expression: str) -> None:
    queries = [metric("a"), Query("e1", expression=expression), Query("e2", expression="e1")]
    with pytest.raises(ExpressionError, match=r"each other|unknown id"):
        computed(queries, MetricStore(), PeriodGrid(0, 60, 1))
