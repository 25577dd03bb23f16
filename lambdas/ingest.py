"""POST /v1/events: writes events and answers for each of them."""

from random import Random
from typing import Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from lambdas.api.answers import answer_write
from lambdas.api.batch import decode_batch
from lambdas.api.body import decode_body, read_body
from lambdas.api.errors import handle_errors
from lambdas.api.sampling import sampled_series
from lambdas.api.scaling import ScalingLog
from lambdas.environment import open_store, read_environment

__all__ = ["handler"]

_WRITE_SECONDS: Final = 20.0  # an attempt under way then still ends within the 25 s of an answer
_MARGIN_SECONDS: Final = 5.0

logger = Logger()
metrics = Metrics()
random = Random().random  # noqa: S311  which series a log line names
app = APIGatewayHttpResolver()
handle_errors(app, logger)
store = open_store(read_environment(), ScalingLog(logger, metrics).note)


@app.post("/v1/events")
def write_events() -> Response[Any]:
    """Write the events of the body; those that can't be decoded don't sink the others."""
    request = app.current_event
    encoded = decode_body(read_body(request.raw_event), request.headers.get("content-type", ""))
    batch = decode_batch(encoded, request.headers.get("idempotency-key"))
    result = batch.complete(store.write(batch.events, timeout=_patience()))
    metrics.add_metric("EventsAccepted", MetricUnit.Count, result.accepted)
    metrics.add_metric("EventsRejected", MetricUnit.Count, len(result.rejected))
    codes = sorted({each.code for each in result.rejected})
    about = sampled_series(batch.events, random)
    wrote = {"accepted": result.accepted, "rejected_codes": codes, "series": about}
    logger.info("wrote events", extra=wrote)
    return answer_write(result, ids_made=batch.ids_made)


def _patience() -> float:
    left = app.lambda_context.get_remaining_time_in_millis() / 1_000
    return min(_WRITE_SECONDS, left - _MARGIN_SECONDS)


@metrics.log_metrics
@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer a request of the HTTP API."""
    metrics.add_metric("Requests", MetricUnit.Count, 1)
    return app.resolve(event, context)
