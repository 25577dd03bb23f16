"""What is watched on functions, on the API and on the queue of failed events."""

from collections.abc import Iterator
from typing import Final

from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from stacks.alarms import AlarmSpec, Audience
from stacks.settings import AlarmSettings

__all__ = ["api_alarms", "failed_event_alarms", "function_alarms"]

_PEOPLE: Final = frozenset({Audience.PEOPLE})


def function_alarms(
    name: str, function: lambda_.IFunction, rules: AlarmSettings, *, throttles: bool = True
) -> Iterator[AlarmSpec]:
    """Yield a function's alarms; a function that may wait its turn has none of throttles."""
    dimensions = {"FunctionName": function.function_name}
    yield AlarmSpec(
        name=f"{name}-Errors",
        namespace="AWS/Lambda",
        metric="Errors",
        dimensions=dimensions,
        statistic="Sum",
        rule=rules.errors,
        told=_PEOPLE,
        description=f"The function {name.lower()} failed or ran out of time. Its log says why, by request.",
    )
    if throttles:
        yield AlarmSpec(
            name=f"{name}-Throttles",
            namespace="AWS/Lambda",
            metric="Throttles",
            dimensions=dimensions,
            statistic="Sum",
            rule=rules.throttles,
            told=_PEOPLE,
            description=f"The account has no concurrency left for the function {name.lower()}. Ask AWS for a higher quota, or "
            "slow the API by its stage's settings.",
        )


def failed_event_alarms(queue: sqs.IQueue, rules: AlarmSettings) -> Iterator[AlarmSpec]:
    """Yield the alarm on events that failed for good."""
    yield AlarmSpec(
        name="Scaler-FailedEvents",
        namespace="AWS/SQS",
        metric="ApproximateNumberOfMessagesVisible",
        dimensions={"QueueName": queue.queue_name},
        statistic="Maximum",
        rule=rules.errors,
        told=_PEOPLE,
        description="The scaler failed on an event again and again. The event waits in the queue; the schedule looks again anyway. "
        "Read the scaler's log, then empty the queue.",
    )


def api_alarms(api: apigateway.IHttpApi, rules: AlarmSettings) -> Iterator[AlarmSpec]:
    """Yield the alarms on what callers of the API see."""
    dimensions = {"ApiId": api.api_id}
    yield AlarmSpec(
        name="Api-ServerErrors",
        namespace="AWS/ApiGateway",
        metric="5xx",
        dimensions=dimensions,
        statistic="Sum",
        rule=rules.server_errors,
        told=_PEOPLE,
        description="Callers get 5xx. 503 is storage out of reach: see the throttling alarms and the ingest function's log; others are "
        "errors of functions.",
    )
    yield AlarmSpec(
        name="Api-SlowRequests",
        namespace="AWS/ApiGateway",
        metric="Latency",
        dimensions=dimensions,
        statistic="p99",
        rule=rules.latency,
        told=_PEOPLE,
        description="One request in a hundred takes longer than it should, in milliseconds. See which function, and whether writes "
        "wait for throttled keys.",
    )
