"""The model in front of a DynamoDB engine: an endpoint that throttles as DynamoDB does.

    call ─▶ faults ─▶ throttling ─▶ engine      faults      breaks calls on purpose
                      │  ▲                      throttling  asks the model, divides batches,
                      ▼  │ now                              settles, answers as DynamoDB does
                 tables, Heat, clock            tables      tells the model of every table

An engine is anything that speaks DynamoDB's JSON protocol, such as DynamoDB Local. `python -m
dynamoheat serve` runs the endpoint on an address of its own; other servers build it in from the
names below. `Throttling` holds the model. All of it runs on one event loop, so code on the same
loop may read the model's counters without a lock.
"""

from dynamoheat.serve.engine import EngineClient, EngineConnectionPool
from dynamoheat.serve.factory import make_faults, make_throttling, relax_collector, steady_clock
from dynamoheat.serve.faults import Fault, Faults, parse_fault
from dynamoheat.serve.http_server import (
    HOP_BY_HOP,
    LOOPBACK,
    bind_loopback,
    forwarded_headers,
    leave_unanswered,
    permit_body,
    relay,
    serve_requests,
    to_response,
)
from dynamoheat.serve.options import HeatOptions, OptionError, ServeOptions, add_arguments
from dynamoheat.serve.server import HeatServer, ServeError, answer_page, is_page, serve, serving
from dynamoheat.serve.tables import Describe, Description, ModelTables, drop_unsupported
from dynamoheat.serve.throttling import EngineComparison, Throttling
from dynamoheat.serve.wire import (
    DATA_PLANE,
    JSON_TYPE,
    TARGET_PREFIX,
    EndpointCall,
    Forward,
    Reply,
    UnansweredError,
    normalize_error,
    refusal,
    table_names,
)

__all__ = [
    "DATA_PLANE",
    "HOP_BY_HOP",
    "JSON_TYPE",
    "LOOPBACK",
    "TARGET_PREFIX",
    "Describe",
    "Description",
    "EndpointCall",
    "EngineClient",
    "EngineComparison",
    "EngineConnectionPool",
    "Fault",
    "Faults",
    "Forward",
    "HeatOptions",
    "HeatServer",
    "ModelTables",
    "OptionError",
    "Reply",
    "ServeError",
    "ServeOptions",
    "Throttling",
    "UnansweredError",
    "add_arguments",
    "answer_page",
    "bind_loopback",
    "drop_unsupported",
    "forwarded_headers",
    "is_page",
    "leave_unanswered",
    "make_faults",
    "make_throttling",
    "normalize_error",
    "parse_fault",
    "permit_body",
    "refusal",
    "relax_collector",
    "relay",
    "serve",
    "serve_requests",
    "serving",
    "steady_clock",
    "table_names",
    "to_response",
]
