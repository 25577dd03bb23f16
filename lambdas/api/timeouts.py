"""How long a read may take."""

from typing import Final

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver

__all__ = ["read_timeout_seconds"]

_READ_SECONDS: Final = 10.0
_MARGIN_SECONDS: Final = 1.0  # for an answer, before the function is stopped


def read_timeout_seconds(app: APIGatewayHttpResolver) -> float:
    """Return the seconds for a read: ten, or what the function has left, less a margin."""
    left = app.lambda_context.get_remaining_time_in_millis() / 1_000
    return min(_READ_SECONDS, left - _MARGIN_SECONDS)
