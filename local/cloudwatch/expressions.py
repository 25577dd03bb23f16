"""Metric math: expressions over time series, read into trees and computed. Nothing else is ever run.

A value is a scalar (`float`), a time series (a list with a value or None for each period), an array of
time series (`Array`) or a word (`REPEAT` and the like). As CloudWatch documents it: what an operator finds
missing on either side, or divided by zero, is missing in the result; an array's members are worked on
one by one; only lower-case names refer to metrics and other expressions.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = [
    "Array",
    "ExpressionError",
    "ExpressionNode",
    "Series",
    "Value",
    "each",
    "parse",
    "plain",
    "pointwise",
]

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<text>\"[^\"]*\"|'[^']*')|(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/^<>()\[\],]))"
)
_LONGEST: Final = 2048  # characters, CloudWatch's own bound
_DEEPEST: Final = 50
_MAX_OPERATORS: Final = 200  # a chain of them is a tree as deep
_BINDING: Final = {
    "OR": 1, "||": 1, "AND": 2, "&&": 2, "==": 3, "!=": 3, "<": 3, ">": 3, "<=": 3, ">=": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "^": 7,
}  # fmt: skip
_UNARY: Final = 6  # binds tighter than a product, less than a power


class ExpressionError(Exception):
    """An expression that CloudWatch would refuse; the message says what is wrong."""


Series = list[float | None]


@dataclass(frozen=True, slots=True)
class Array:
    """Several time series."""

    members: tuple[Series, ...]


Value = float | Series | Array | str


@dataclass(frozen=True, slots=True)
class ExpressionNode:
    """A part of an expression. `kind`: number, text, name, word, array, call or an operator's sign."""

    kind: str
    value: str = ""
    parts: tuple["ExpressionNode", ...] = ()


def parse(text: str) -> ExpressionNode:
    """Return an expression's tree.

    Raises:
        ExpressionError: It is not one.
    """
    if len(text) > _LONGEST:
        raise ExpressionError(f"The expression is longer than {_LONGEST} characters")
    reader = _Reader(_tokens(text))
    tree = reader.expression(0, 0)
    if reader.token is not None:
        raise ExpressionError(f"Unexpected {reader.token[1]!r} in expression {text!r}")
    return tree


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise ExpressionError(f"Unexpected {text[at:].strip()[:10]!r} in expression {text!r}")
        tokens.append((found.lastgroup, found[found.lastgroup]))
        at = found.end()
    return tokens


class _Reader:
    """Reads tokens by the binding power of operators."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._operators = 0

    @property
    def token(self) -> tuple[str, str] | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def expression(self, binding: int, depth: int) -> ExpressionNode:
        if depth > _DEEPEST:
            raise ExpressionError("The expression is nested too deeply")
        left = self._operand(depth + 1)
        while (sign := self._sign()) in _BINDING and _BINDING[sign] > binding:
            self._at += 1
            self._operators += 1
            if self._operators > _MAX_OPERATORS:
                raise ExpressionError(f"The expression has more than {_MAX_OPERATORS} operators")
            # Powers group to the right: 2^3^2 is 2^9.
            power = _BINDING[sign] - (sign == "^")
            left = ExpressionNode(sign, parts=(left, self.expression(power, depth + 1)))
        return left

    def _sign(self) -> str:
        return self.token[1] if self.token is not None and self.token[0] != "text" else ""

    def _operand(self, depth: int) -> ExpressionNode:
        kind, value = self._take()
        if kind == "number":
            return ExpressionNode("number", value)
        if kind == "text":
            return ExpressionNode("text", value[1:-1])
        if kind == "name":
            return self._named(value, depth)
        if value == "(":
            inner = self.expression(0, depth)
            self._expect(")")
            return inner
        if value == "[":
            return ExpressionNode("array", parts=self._list("]", depth))
        if value in "+-":
            return ExpressionNode(f"unary{value}", parts=(self.expression(_UNARY, depth),))
        raise ExpressionError(f"Unexpected {value!r} in the expression")

    def _named(self, name: str, depth: int) -> ExpressionNode:
        if self._sign() == "(":
            self._at += 1
            return ExpressionNode("call", name.upper(), self._list(")", depth))
        return ExpressionNode("name" if name[0].islower() else "word", name)

    def _list(self, closing: str, depth: int) -> tuple[ExpressionNode, ...]:
        parts: list[ExpressionNode] = []
        while self._sign() != closing:
            if parts:
                self._expect(",")
            parts.append(self.expression(0, depth))
        self._at += 1
        return tuple(parts)

    def _take(self) -> tuple[str, str]:
        if self.token is None:
            raise ExpressionError("The expression ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, sign: str) -> None:
        if self._take()[1] != sign:
            raise ExpressionError(f"{sign!r} is missing in the expression")


def each(value: Value, action: Callable[[float | Series], float | Series]) -> Value:
    """Apply an action to a scalar, a series, or every series of an array."""
    if isinstance(value, Array):
        return Array(tuple(_series(action(member)) for member in value.members))
    if isinstance(value, str):
        raise ExpressionError(f"{value!r} is neither a number nor a time series")
    return action(value)


def plain(value: Value) -> float | Series:
    """Return a scalar or a series; ExpressionError for anything else."""
    if isinstance(value, Array | str):
        raise ExpressionError("A number or a single time series was expected")
    return value


def _series(value: float | Series) -> Series:
    if not isinstance(value, list):
        raise ExpressionError("A time series was expected")
    return value


def pointwise(
    values: tuple[float | Series, ...], action: Callable[..., float | None]
) -> float | Series:
    """Apply an action point by point; where a point is missing, or the action finds none, so is the result."""
    length = next((len(value) for value in values if isinstance(value, list)), None)
    if length is None:
        return _number(action(*values))
    columns = [value if isinstance(value, list) else [value] * length for value in values]
    return [
        None if any(point is None for point in row) else action(*row)
        for row in zip(*columns, strict=True)
    ]


def _number(value: float | None) -> float:
    if value is None:
        raise ExpressionError("The expression divides by zero")
    return value
