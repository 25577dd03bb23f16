"""Answers of the API; stored payloads are copied as JSON text, never parsed."""

import json
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

import msgspec
import orjson
from aws_lambda_powertools.event_handler import Response
from msgspec import UNSET

from lambdas.api.errors import answer_json, to_message
from lambdas.api.types import (
    CostOutput,
    DecisionOutput,
    EpochOutput,
    ErrorBody,
    EventOutput,
    ExplanationOutput,
    GrowthStopOutput,
    IngestAnswer,
    LayoutAnswer,
    LayoutCounts,
    MissingOutput,
    RejectedEvent,
)
from spillway import (
    MAX_ID_BYTES,
    AggregatePage,
    AggregateRow,
    Epoch,
    Event,
    Explanation,
    GrowthStop,
    Layout,
    LayoutDecision,
    Missing,
    Page,
    Rejected,
    StoredEvent,
    WriteResult,
    format_epoch,
    format_time,
)

__all__ = [
    "EventRenderer",
    "answer_aggregates",
    "answer_event",
    "answer_layout",
    "answer_page",
    "answer_write",
    "event_text",
]


def answer_write(result: WriteResult, *, ids_made: bool) -> Response[Any]:
    """Answer an ingest.

    200: all accepted. 207: some, or a mix. None accepted: 400 where no retry helps, 429 where
    DynamoDB throttles, else 503.
    """
    status = _status(result)
    answer = IngestAnswer(
        accepted=result.accepted,
        rejected=[_rejected(each) for each in result.rejected],
        ids=[_answered_id(each) for each in result.ids] if ids_made else UNSET,
        error=_refusal(status, result) if status >= HTTPStatus.BAD_REQUEST else UNSET,
    )
    return answer_json(status, answer)


def _status(result: WriteResult) -> HTTPStatus:
    if not result.rejected:
        return HTTPStatus.OK
    retryable = sum(each.retryable for each in result.rejected)
    if result.accepted or 0 < retryable < len(result.rejected):
        return HTTPStatus.MULTI_STATUS
    if not retryable:
        return HTTPStatus.BAD_REQUEST
    if _refusal_code(result) == "throttled":
        return HTTPStatus.TOO_MANY_REQUESTS
    return HTTPStatus.SERVICE_UNAVAILABLE


def _refusal_code(result: WriteResult) -> str:
    """Return why no event was accepted: `throttled`, `deadline` or `storage_unavailable`.

    `deadline` alone means that time ran out. Beside another code, that failure took the time.
    """
    codes = {each.code for each in result.rejected}
    if codes == {"deadline"}:
        return "deadline"
    return "throttled" if codes <= {"throttled", "deadline"} else "storage_unavailable"


def _refusal(status: HTTPStatus, result: WriteResult) -> ErrorBody:
    first = result.rejected[0]
    code = first.code if status is HTTPStatus.BAD_REQUEST else _refusal_code(result)
    return ErrorBody(code=code, message=f"no event was accepted; {_message(first)}")


def _answered_id(event_id: str | None) -> str | None:
    """Return an event's id, None for one that is too long to be an id."""
    return event_id if event_id is None or len(event_id) <= MAX_ID_BYTES else None


def _rejected(each: Rejected) -> RejectedEvent:
    return RejectedEvent(
        index=each.index, code=each.code, message=_message(each), retryable=each.retryable
    )


def _message(each: Rejected) -> str:
    field = f".{each.where}" if each.where else ""
    return to_message(f"events[{each.index}]{field}: {each.message}")


def _json(text: str) -> str:
    return orjson.dumps(text).decode()


def event_text(series: str, record: StoredEvent) -> str:
    """Return a stored event as JSON text; its payload is stored as JSON and copied as it is."""
    time, sharding_key, event_id = record.identity
    key = "" if sharding_key is None else f'"sharding_key":{_json(sharding_key)},'
    return (
        f'{{"series":{_json(series)},"time":"{time}","id":{_json(event_id)},'
        f'{key}"payload":{record.payload}}}'
    )


class EventRenderer:
    """Renders the events of one answer, each once: `measure` keeps the text that it measures."""

    def __init__(self, series: str, *, terminator: str = "") -> None:
        self._series = series
        self._terminator = terminator
        self._texts: list[str] = []

    def measure(self, record: StoredEvent) -> int:
        """Render the next event and return the bytes that it adds to an answer as Lambda sends it.

        Lambda sends the body as text inside another JSON. Runtimes before Python 3.12 escape every
        character beyond ASCII there, so each counts as escaped.
        """
        text = event_text(self._series, record) + self._terminator
        self._texts.append(text)
        return len(json.dumps(text))

    def texts(self, count: int) -> list[str]:
        """Return the texts of the first `count` events: the last one measured may not have fit."""
        return self._texts[:count]


def answer_page(page: Page, renderer: EventRenderer, *, explained: bool = False) -> Response[Any]:
    """Answer a page whose events `renderer` measured, with its plan and cost if `explained`."""
    events = ",".join(renderer.texts(len(page.records)))
    cursor = "null" if page.cursor is None else _json(page.cursor)
    return answer_json(
        HTTPStatus.OK,
        f'{{"events":[{events}],"cursor":{cursor},{_page_end(page, explained=explained)}}}',
    )


def _page_end(page: Page, *, explained: bool) -> str:
    parts: dict[str, Any] = {"complete": page.complete}
    if not page.complete:
        missing = [_missing(each) for each in page.missing]
        parts |= {"reason": page.reason, "missing": missing, "missing_count": page.missing_count}
    if explained:
        parts["explain"] = _explanation(page.explanation)
    return msgspec.json.encode(parts).decode()[1:-1]


def _missing(each: Missing) -> MissingOutput:
    return MissingOutput(partition=each.partition, reached=each.reached_time, error=each.error)


def _explanation(explanation: Explanation) -> ExplanationOutput:
    facts = asdict(explanation)
    facts["estimates"] = {
        source: CostOutput(requests=requests, read_units=units)
        for source, (requests, units) in explanation.estimates.items()
    }
    return ExplanationOutput(**facts)


def answer_aggregates(page: AggregatePage) -> Response[Any]:
    """Answer rows of intervals."""
    answer: dict[str, Any] = {
        "rows": [_row(row) for row in page.rows],
        "cursor": page.cursor,
        "complete": page.complete,
    }
    if not page.complete:
        missing = [msgspec.to_builtins(_missing(each)) for each in page.missing]
        answer |= {
            "reason": page.reason,
            "missing": missing,
            "missing_count": page.missing_count,
        }
    if page.percentiles is not None:
        answer |= {"percentiles": page.percentiles, "percentile_error": page.percentile_error}
    # The standard library's encoder, since numbers may have more than 64 bits.
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return answer_json(HTTPStatus.OK, text)


def _row(row: AggregateRow) -> dict[str, Any]:
    sketched = {"approximate": True} if row.approximate else {}
    return {"start": format_time(row.start), **row.values, "skipped": row.skipped, **sketched}


def answer_event(event: Event) -> Response[Any]:
    """Answer one event."""
    answer = EventOutput(
        series=event.series,
        time=format_time(event.time),
        id=event.id or "",
        payload=event.payload,
        sharding_key=UNSET if event.sharding_key is None else event.sharding_key,
    )
    return answer_json(HTTPStatus.OK, answer)


def answer_layout(layout: Layout) -> Response[Any]:
    """Answer a layout with its epochs."""
    answer = LayoutAnswer(
        series=layout.series,
        version=layout.version,
        shards=layout.current.shards,
        index_shards=layout.current.index_shards,
        last_updated=format_epoch(layout.last_updated),
        epochs=[_epoch(epoch) for epoch in layout.epochs],
        shard_history=list(layout.history),
        growth_stopped=None if layout.stop is None else _stop(layout.stop),
        decisions=[_decision(each) for each in layout.decisions],
    )
    return answer_json(HTTPStatus.OK, answer)


def _stop(stop: GrowthStop) -> GrowthStopOutput:
    return GrowthStopOutput(
        reason=stop.reason,
        at=format_epoch(stop.at),
        hot_sharding_keys=list(stop.hot_sharding_keys),
    )


def _decision(decision: LayoutDecision) -> DecisionOutput:
    return DecisionOutput(
        at=format_epoch(decision.at),
        before=_counts(*decision.before),
        after=_counts(*decision.after),
        why=decision.why,
        evidence=decision.evidence,
    )


def _counts(shards: int, index_shards: int) -> LayoutCounts:
    return LayoutCounts(shards=shards, index_shards=index_shards)


def _epoch(epoch: Epoch) -> EpochOutput:
    return EpochOutput(
        id=epoch.id,
        shards=epoch.fan_out,
        index_shards=epoch.index_shards,
        mode=epoch.mode,
        bucket=epoch.bucket,
        low=epoch.min_time,
        close=epoch.max_time,
        horizon=epoch.horizon,
    )
