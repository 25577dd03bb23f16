"""The types of an aggregate's answer, from which it is described."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from lambdas.api.types import Missing, MissingCount, Time

__all__ = ["AggregateRowOutput", "AggregatesAnswer"]

Value = Annotated[
    int | float | UnsetType | None,
    Meta(description="Present where it was asked for; null: no number to make it of"),
]


class AggregateRowOutput(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the events of one interval come to."""

    start: Annotated[
        Time, Meta(description="Where the interval begins, maybe before the range does")
    ]
    count: Annotated[
        int | UnsetType, Meta(description="Numbers at the field; without one, events")
    ] = UNSET
    sum: Value = UNSET
    min: Value = UNSET
    max: Value = UNSET
    avg: Value = UNSET
    first: Value = UNSET
    last: Value = UNSET
    p50: Value = UNSET
    p90: Value = UNSET
    p99: Value = UNSET
    skipped: Annotated[int, Meta(description="Events without a number at the field")]
    approximate: Annotated[
        bool | UnsetType, Meta(description="true: percentiles of too many numbers to be exact")
    ] = UNSET


class AggregatesAnswer(Struct, frozen=True, kw_only=True):
    """Rows in order of time, and where to go on."""

    rows: list[AggregateRowOutput]
    cursor: Annotated[
        str | None, Meta(description="Send it with the same query for the next rows; null: no more")
    ]
    complete: Annotated[
        bool,
        Meta(description="false: ended after the last row that could be finished; go on by cursor"),
    ]
    reason: Annotated[
        str | UnsetType,
        Meta(description="Of an incomplete answer: `deadline`, `read_units` or an error's code"),
    ] = UNSET
    missing: Missing = UNSET
    missing_count: MissingCount = UNSET
    percentiles: Annotated[
        str | UnsetType,
        Meta(description="Where any was asked for: `exact`, or `ddsketch` where any row is not"),
    ] = UNSET
    percentile_error: Annotated[
        float | UnsetType,
        Meta(description="An approximate percentile is within this part of the number at its rank"),
    ] = UNSET
