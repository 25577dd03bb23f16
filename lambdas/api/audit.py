"""The audit line of a change by hand: who sent it, its target and its outcome. Never payloads."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from lambdas.api.body import read_body
from lambdas.api.errors import RequestError
from lambdas.api.parameters import IDENTITY_PARAMETERS
from lambdas.api.types import LayoutRequest

__all__ = ["audit_entry"]

_IDENTITY: Final = frozenset(parameter.name for parameter in IDENTITY_PARAMETERS)
_OUTCOME: Final = ("deleted", "version", "number_of_shards", "index_shards")

_layout_request = msgspec.json.Decoder(LayoutRequest)


def audit_entry(event: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the line for an event of the HTTP API and its answer.

    `caller` is the ARN that signed the request, "-" where the stage asks for no signature.
    """
    context = event["requestContext"]
    http = context["http"]
    return {
        "action": f"{http['method']} {http['path']}",
        "caller": context.get("authorizer", {}).get("iam", {}).get("userArn", "-"),
        "ip": http["sourceIp"],
        "request": context["requestId"],
        "target": _identity(event) | _counts(event),
        "status": answer["statusCode"],
        "outcome": _outcome(json.loads(answer["body"])),
    }


def _identity(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the query names, also where it is not valid; other parameters are left out."""
    query = str(event.get("rawQueryString") or "").encode(errors="replace").decode()
    return {name: text for name, text in parse_qsl(query) if name in _IDENTITY}


def _counts(event: Mapping[str, Any]) -> dict[str, Any]:
    try:
        wanted = _layout_request.decode(read_body(event))
    except (RequestError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    counts = msgspec.structs.asdict(wanted)
    return {name: count for name, count in counts.items() if count is not None}


def _outcome(body: Mapping[str, Any]) -> dict[str, Any]:
    if "error" in body:
        return {"error": body["error"]["code"]}
    return {name: body[name] for name in _OUTCOME if name in body}
