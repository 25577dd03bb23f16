"""What the routes of administration do: set the counts of a layout, delete an event."""

from http import HTTPStatus
from typing import Any

import msgspec
from aws_lambda_powertools.event_handler import Response

from lambdas.api.answers import answer_layout
from lambdas.api.body import described
from lambdas.api.errors import RequestError, answer_json
from lambdas.api.parameters import IDENTITY_PARAMETERS, LAYOUT_PARAMETERS, QueryParameters
from lambdas.api.types import Deleted, LayoutRequest
from spillway import EventStore

__all__ = ["delete_event", "set_layout"]

_layout_request = msgspec.json.Decoder(LayoutRequest)


def set_layout(store: EventStore, raw_query: str, body: bytes) -> Response[Any]:
    """Set the counts of a series, and answer its layout."""
    given = QueryParameters(raw_query, LAYOUT_PARAMETERS)
    try:
        wanted = _layout_request.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(HTTPStatus.BAD_REQUEST, "invalid_request", described(error)) from error
    layout = store.set_layout(
        given.text("series"), shards=wanted.number_of_shards, index_shards=wanted.index_shards
    )
    return answer_layout(layout)


def delete_event(store: EventStore, raw_query: str) -> Response[Any]:
    """Remove one event from every shard that may hold it; deleting what is not there is no error."""
    given = QueryParameters(raw_query, IDENTITY_PARAMETERS)
    deleted = store.delete(
        given.text("series"),
        given.time("time"),
        given.text("id"),
        sharding_key=given.optional("sharding_key"),
    )
    return answer_json(HTTPStatus.OK, Deleted(deleted=deleted))
