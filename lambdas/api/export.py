"""What the export route does: NDJSON, an event a line, and headers that say whether that was all."""

from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from aws_lambda_powertools.event_handler import Response

from lambdas.api.answers import EventRenderer
from lambdas.api.parameters import EXPORT_PARAMETERS, QueryParameters
from spillway import EventStore, Export, ExportError
from spillway.scanning.export_scan import MAX_POOL

__all__ = ["NDJSON", "export_events"]

NDJSON: Final = "application/x-ndjson"
_POOL: Final = 4
_MAX_BYTES: Final = 4_000_000


def export_events(
    store: EventStore, raw_query: str, seconds: float, max_bytes: int = _MAX_BYTES
) -> Response[Any]:
    """Answer the next 4 MB of an export, or as much as could be read within so many seconds.

    Raises StorageError where nothing could be read.
    """
    given = QueryParameters(raw_query, EXPORT_PARAMETERS)
    export = store.export(
        given.text("series"),
        given.time("from"),
        given.time("to"),
        mode=given.text("mode", "shards"),
        cursor=given.optional("cursor"),
        consistent=given.flag("consistent", default=False),
        pool=given.number("pool", _POOL, MAX_POOL),
        max_rcu=given.decimal("max_rcu"),
        max_seconds=seconds,
        timeout=seconds,
    )
    renderer = EventRenderer(export.series, terminator="\n")
    try:
        chunk = export.chunk(max_bytes, renderer.measure)
    except ExportError as error:
        raise error.cause from error
    body = "".join(renderer.texts(len(chunk.records)))
    headers: dict[str, str | list[str]] = {**_headers(export, given)}
    return Response(status_code=HTTPStatus.OK, content_type=NDJSON, body=body, headers=headers)


def _headers(export: Export, given: QueryParameters) -> dict[str, str]:
    """Return headers that say whether the export is complete, and if not, why and where it goes on."""
    spent = {
        "Spillway-Requests": str(export.spent.requests),
        "Spillway-Read-Units": str(export.spent.read_units),
    }
    cursor = export.cursor
    if cursor is None:
        return {"Spillway-Complete": "true", **spent}
    query = urlencode({**given.given, "cursor": cursor})
    return {
        "Spillway-Complete": "false",
        "Spillway-Reason": _reason(export),
        "Spillway-Cursor": cursor,
        "Link": f'<?{query}>; rel="next"',
        **spent,
    }


def _reason(export: Export) -> str:
    if isinstance(export.failure, ExportError):
        return export.failure.code
    return export.stopped or "size"
