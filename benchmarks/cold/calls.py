"""The first call of each function, as AWS sends it."""

import json
from datetime import datetime, timedelta
from typing import Any, Final

from benchmarks.cold.tables import EVENTS, LAYOUTS, SERIES, USAGE

__all__ = ["ENVIRONMENT", "first_calls"]

ENVIRONMENT: Final = {
    "SPILLWAY_TABLE": EVENTS,
    "SPILLWAY_LAYOUTS": LAYOUTS,
    "SPILLWAY_USAGE": USAGE,
    "SPILLWAY_TIME_BUCKET": "hour",
    "SPILLWAY_MODE": "calculated",
    "SPILLWAY_SHARDS": "1",
    "SPILLWAY_INDEX_SHARDS": "1",
    "SPILLWAY_RETENTION_DAYS": "0",
    "SPILLWAY_LATE_LIMIT_SECONDS": "0",
    "SPILLWAY_ALARM_PREFIX": "cold-",
    "SPILLWAY_DRY_RUN": "false",
    "SPILLWAY_SHRINK_WINDOW_HOURS": "36",
    "SPILLWAY_MAX_WARM_WRITE_UNITS": "0",
    "SPILLWAY_MAX_PROVISIONED_WRITE_UNITS": "0",
    "POWERTOOLS_METRICS_NAMESPACE": "Spillway",
    "POWERTOOLS_SERVICE_NAME": "cold",
    "POWERTOOLS_LOG_LEVEL": "INFO",
    # As Lambda sets them.
    "AWS_LAMBDA_FUNCTION_NAME": "cold",
    "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
    "AWS_EXECUTION_ENVIRONMENT": "AWS_Lambda_python3.13",
}


def first_calls(now: datetime) -> dict[str, dict[str, Any]]:
    """Return an event for each function: one event written, one page read, a layout set, the schedule's turn."""
    time = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    start, end = (
        (now + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ") for hours in (-1, 1)
    )
    event = {"series": SERIES, "time": time, "id": "1", "payload": {"n": 1}}
    return {
        "ingest": _request("POST", "/v1/events", body={"events": [event]}),
        "query": _request("GET", "/v1/events", f"series={SERIES}&start={start}&end={end}"),
        "admin": _request("PUT", "/v1/layout", f"series={SERIES}", {"shards": 1}),
        "scaler": {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}},
    }


def _request(method: str, path: str, query: str = "", body: object = None) -> dict[str, Any]:
    return {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {"content-type": "application/json"},
        "requestContext": {
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
            },
            "requestId": "cold",
            "stage": "$default",
        },
        "isBase64Encoded": False,
        **({} if body is None else {"body": json.dumps(body)}),
    }
