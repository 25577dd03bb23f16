"""Types of the API's bodies: they decode requests, make answers and generate the description."""

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from spillway import (
    MAX_ID_BYTES,
    MAX_MISSING,
    MAX_SERIES_BYTES,
    MAX_SHARDING_KEY_BYTES,
    MAX_SHARDS,
    ShardingMode,
    TimeBucket,
)

__all__ = [
    "MAX_BODY_BYTES",
    "MAX_EVENTS",
    "AggregateRowOutput",
    "AggregatesAnswer",
    "CostOutput",
    "DecisionOutput",
    "Deleted",
    "EpochOutput",
    "ErrorAnswer",
    "ErrorBody",
    "EventId",
    "EventInput",
    "EventOutput",
    "EventsPage",
    "ExplanationOutput",
    "GatewayAnswer",
    "GrowthStopOutput",
    "Health",
    "IngestAnswer",
    "IngestRequest",
    "LayoutAnswer",
    "LayoutCounts",
    "LayoutRequest",
    "MissingOutput",
    "RawIngestRequest",
    "RejectedEvent",
    "Series",
    "ShardingKey",
    "Time",
]

MAX_BODY_BYTES: Final = 4_000_000
MAX_EVENTS: Final = 1_000

# Bounds of bytes are checked by the library. JSON Schema counts characters, of which each is one
# byte at least: what it refuses is refused, and text beyond ASCII may be refused earlier.
_SERIES_BOUNDS: Final = {"minLength": 1, "maxLength": MAX_SERIES_BYTES}
_ID_BOUNDS: Final = {"minLength": 1, "maxLength": MAX_ID_BYTES, "pattern": "^[^#]+$"}
_SHARDING_KEY_BOUNDS: Final = {"minLength": 1, "maxLength": MAX_SHARDING_KEY_BYTES}
_TIME_FORM: Final = {
    "format": "date-time",
    "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
}

Series = Annotated[
    str,
    Meta(
        description=f"The logical partition key, 1 to {MAX_SERIES_BYTES:,} bytes of UTF-8",
        examples=["SENSOR_READING"],
        extra_json_schema=_SERIES_BOUNDS,
    ),
]
Time = Annotated[
    str,
    Meta(
        description="RFC 3339 with zone, at most microseconds; stored and returned in UTC",
        examples=["2001-01-01T00:01:00.000000Z"],
        extra_json_schema=_TIME_FORM,
    ),
]
EventId = Annotated[
    str,
    Meta(
        description=f"1 to {MAX_ID_BYTES} bytes of UTF-8 without #",
        extra_json_schema=_ID_BOUNDS,
    ),
]
ShardingKey = Annotated[
    str,
    Meta(
        description=f"1 to {MAX_SHARDING_KEY_BYTES} bytes of UTF-8; events that share one share a "
        "shard",
        extra_json_schema=_SHARDING_KEY_BOUNDS,
    ),
]
Payload = Annotated[
    dict[str, Any],
    Meta(
        description="A JSON object; the stored item takes at most 400 KB", examples=[{"delay": 33}]
    ),
]


class EventInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An event to write, identified by series, time, sharding key and id."""

    series: Series
    time: Time
    payload: Payload
    id: EventId | None = None
    sharding_key: ShardingKey | None = None


class EventOutput(Struct, frozen=True, kw_only=True):
    """A stored event."""

    series: Series
    time: Time
    id: EventId
    payload: Payload
    sharding_key: ShardingKey | UnsetType = UNSET


class IngestRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Events to write."""

    events: Annotated[
        list[EventInput], Meta(extra_json_schema={"minItems": 1, "maxItems": MAX_EVENTS})
    ]


class RawIngestRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Events to write, not decoded yet: an invalid one must not spoil the others."""

    events: list[Raw]


class RejectedEvent(Struct, frozen=True, kw_only=True):
    """An event that is not known to be stored."""

    index: Annotated[
        int,
        Meta(
            description="Its position in the request, from 0",
            extra_json_schema={"minimum": 0, "maximum": MAX_EVENTS - 1},
        ),
    ]
    code: Annotated[
        str,
        Meta(
            description="invalid_event, in_future, too_late, item_too_large, duplicate_event "
            "(never stored); throttled, storage_unavailable, storage_refused, deadline (not "
            "stored); unknown_outcome (may be stored)"
        ),
    ]
    message: Annotated[str, Meta(examples=["events[3].time: must name its time zone"])]
    retryable: Annotated[
        bool, Meta(description="Whether the same event, with the same id, may be accepted later")
    ]


class ErrorBody(Struct, frozen=True, kw_only=True):
    """A failure: a word for programs and a sentence for people."""

    code: str
    message: str
    detail: Any | UnsetType = UNSET


class ErrorAnswer(Struct, frozen=True, kw_only=True):
    """The shape of every error."""

    error: ErrorBody


class GatewayAnswer(Struct, frozen=True, kw_only=True):
    """An answer by API Gateway itself: no function was called, or it did not answer."""

    message: Annotated[str, Meta(examples=["Forbidden", "Too Many Requests"])]


class IngestAnswer(Struct, frozen=True, kw_only=True):
    """One outcome for each event: `accepted` are durably stored, `rejected` lists all others."""

    accepted: Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": MAX_EVENTS})]
    rejected: Annotated[list[RejectedEvent], Meta(extra_json_schema={"maxItems": MAX_EVENTS})]
    ids: Annotated[
        list[str | None] | UnsetType,
        Meta(
            extra_json_schema={"maxItems": MAX_EVENTS},
            description="The id of each event in order, present where the service made any; "
            "null for an event that is too wrong to have one",
        ),
    ] = UNSET
    error: Annotated[
        ErrorBody | UnsetType, Meta(description="Present where no event was accepted")
    ] = UNSET


class MissingOutput(Struct, frozen=True, kw_only=True):
    """A partition that was not read to the end of the range."""

    partition: Annotated[str, Meta(description="Its partition key", examples=["ORD#3"])]
    reached: Annotated[Time, Meta(description="The time up to which it was read")]
    error: Annotated[str | None, Meta(description="Code of the error; null: nothing was sent")]


Missing = Annotated[
    list[MissingOutput] | UnsetType,
    Meta(
        description="Of an incomplete answer: partitions that were left off, errors first",
        extra_json_schema={"maxItems": MAX_MISSING},
    ),
]
MissingCount = Annotated[
    int | UnsetType,
    Meta(description="Of an incomplete answer: how many partitions were left off"),
]


class CostOutput(Struct, frozen=True, kw_only=True):
    """Estimated cost of a read."""

    requests: float
    read_units: float


class ExplanationOutput(Struct, frozen=True, kw_only=True):
    """The plan of a page, what it was expected to cost, and what it cost."""

    source: Annotated[str, Meta(description="`table` or `index`")]
    reason: str
    estimates: Annotated[
        dict[str, CostOutput], Meta(description="By source: what the page was expected to cost")
    ]
    requests: int
    read_units: float
    rounds: Annotated[int, Meta(description="Times it waited for requests sent together")]
    items: Annotated[int, Meta(description="Items fetched")]
    returned: int
    seconds: float


class EventsPage(Struct, frozen=True, kw_only=True):
    """Events in order, and the cursor of the next page."""

    events: list[EventOutput]
    cursor: Annotated[
        str | None, Meta(description="Send it with the same query for the next page; null: no more")
    ]
    complete: Annotated[
        bool, Meta(description="false: ended before what was asked for; the cursor completes it")
    ]
    reason: Annotated[
        str | UnsetType,
        Meta(
            description="Of an incomplete page: `deadline`, `read_units` or a storage error's code"
        ),
    ] = UNSET
    missing: Missing = UNSET
    missing_count: MissingCount = UNSET
    explain: ExplanationOutput | UnsetType = UNSET


Value = Annotated[
    int | float | UnsetType | None,
    Meta(description="Present where it was asked for; null: no number to make it of"),
]


class AggregateRowOutput(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Functions of the events of one interval."""

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
    """Rows in order of time, and the cursor of the next ones."""

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


Count = Annotated[
    int,
    Meta(
        description="1 to 256, a power of two (in random mode the table's may be any)",
        extra_json_schema={"minimum": 1, "maximum": MAX_SHARDS},
    ),
]


class LayoutRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shard counts to set; those left out stay as they are."""

    shards: Count | None = None
    index_shards: Count | None = None


class EpochOutput(Struct, frozen=True, kw_only=True):
    """A layout that may still cover stored events of times `low` to `close`."""

    id: int
    shards: int
    index_shards: int
    mode: ShardingMode
    bucket: TimeBucket
    low: Annotated[Time | None, Meta(description="Least event time; null: any")]
    close: Annotated[Time | None, Meta(description="Greatest event time; null: still in force")]
    horizon: Annotated[float, Meta(description="Seconds ahead that writers may write under it")]


class GrowthStopOutput(Struct, frozen=True, kw_only=True):
    """Why writers found that more shards do not help, and which sharding keys no count can help."""

    reason: str
    at: Time
    hot_sharding_keys: list[ShardingKey]


class LayoutCounts(Struct, frozen=True, kw_only=True):
    """Shard counts of table and index."""

    shards: Count
    index_shards: Count


class DecisionOutput(Struct, frozen=True, kw_only=True, rename={"before": "from", "after": "to"}):
    """When and why a layout changed, and on what evidence.

    Equal counts mean that something else was done, such as raising throughput.
    """

    at: Time
    before: LayoutCounts
    after: LayoutCounts
    why: str
    evidence: str


class LayoutAnswer(Struct, frozen=True, kw_only=True):
    """The shard counts in force for a series, and every epoch of its past."""

    series: Series
    version: int
    shards: Count
    index_shards: Count
    last_updated: Time
    epochs: list[EpochOutput]
    shard_history: Annotated[list[str], Meta(examples=[["1561758912.000:1"]])]
    growth_stopped: GrowthStopOutput | None
    decisions: Annotated[
        list[DecisionOutput], Meta(description="The last 20, of writers, scaler and operators")
    ]


class Deleted(Struct, frozen=True, kw_only=True):
    """Whether the event existed."""

    deleted: bool


class Health(Struct, frozen=True, kw_only=True):
    """The function answers."""

    status: str
