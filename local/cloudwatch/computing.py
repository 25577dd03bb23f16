"""Computes the trees of metric math."""

import operator
from collections.abc import Callable, Mapping
from typing import Final

from local.cloudwatch.expressions import (
    Array,
    ExpressionError,
    ExpressionNode,
    Value,
    each,
    plain,
    pointwise,
)
from local.cloudwatch.functions import Scope, array, call

__all__ = ["compute", "names_in"]


def compute(tree: ExpressionNode, scope: Scope) -> Value:
    """Return an expression's value.

    Raises:
        ExpressionError: A name is unknown, a function is not supported or takes other arguments.
    """
    if tree.kind in _LEAVES:
        return _LEAVES[tree.kind](tree.value, scope)
    parts = [compute(part, scope) for part in tree.parts]
    if tree.kind == "array":
        return array(parts)
    if tree.kind == "call":
        return call(tree.value, parts, scope)
    if tree.kind in _SIGNS:
        return each(parts[0], lambda value: pointwise((value,), _SIGNS[tree.kind]))
    return _binary(_OPERATORS[tree.kind], parts[0], parts[1])


def names_in(tree: ExpressionNode) -> set[str]:
    """Return the names of the values that an expression refers to, METRICS() aside."""
    if tree.kind == "name":
        return {tree.value}
    return {name for part in tree.parts for name in names_in(part)}


def _named(name: str, scope: Scope) -> Value:
    if name not in scope.values:
        raise ExpressionError(f"The expression refers to an unknown id {name!r}")
    return scope.values[name]


def _binary(action: Callable[[float, float], float | None], left: Value, right: Value) -> Value:
    if isinstance(right, Array):
        if isinstance(left, Array):
            raise ExpressionError("An operator cannot take two arrays of time series")
        return each(right, lambda value: pointwise((plain(left), value), action))
    return each(left, lambda value: pointwise((value, plain(right)), action))


def _divide(left: float, right: float) -> float | None:
    return left / right if right else None


def _power(left: float, right: float) -> float | None:
    try:
        result = left**right
    except (OverflowError, ZeroDivisionError):
        return None
    return result if isinstance(result, float) else None  # a root of a negative number


def _truth(test: Callable[[float, float], object]) -> Callable[[float, float], float]:
    return lambda left, right: 1.0 if test(left, right) else 0.0


_SIGNS: Final[Mapping[str, Callable[[float], float]]] = {
    "unary-": operator.neg,
    "unary+": operator.pos,
}
_both = _truth(lambda left, right: left and right)
_either = _truth(lambda left, right: left or right)
_OPERATORS: Final[Mapping[str, Callable[[float, float], float | None]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "^": _power,
    "==": _truth(operator.eq),
    "!=": _truth(operator.ne),
    "<": _truth(operator.lt),
    ">": _truth(operator.gt),
    "<=": _truth(operator.le),
    ">=": _truth(operator.ge),
    "AND": _both,
    "&&": _both,
    "OR": _either,
    "||": _either,
}
_LEAVES: Final[Mapping[str, Callable[[str, Scope], Value]]] = {
    "number": lambda value, _: float(value),
    "text": lambda value, _: value,
    "word": lambda value, _: value,
    "name": _named,
}
