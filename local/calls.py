"""DynamoDB's calls and answers as they travel; the types are the throttling endpoint's own."""

import json
from collections.abc import Awaitable, Callable

from dynamoheat.serve import wire
from dynamoheat.serve.wire import DATA_PLANE, EndpointCall, Forward, Reply, refusal

__all__ = [
    "DATA_PLANE",
    "Admit",
    "EndpointCall",
    "Forward",
    "Reply",
    "admit_all",
    "missing_table",
    "refusal",
    "tables_named",
]

Admit = Callable[[EndpointCall, Forward], Awaitable[Reply]]
"""Decides about a data-plane call: forwards it, changed or not, or answers it without forwarding."""


async def admit_all(call: EndpointCall, forward: Forward) -> Reply:
    """Forward every call as it is."""
    return await forward(call)


def missing_table(reply: Reply) -> bool:
    """Say whether a call failed because a table is not there."""
    return reply.status == 400 and b"#ResourceNotFoundException" in reply.body


def tables_named(body: bytes) -> set[str]:
    """Return the names of the tables in a request of any operation but PartiQL's; none if malformed."""
    try:
        return set(wire.tables_named(json.loads(body)))
    except ValueError:
        return set()
