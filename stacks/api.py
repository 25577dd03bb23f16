"""The HTTP API: its routes, who may call them, and what its access log says."""

import json
from collections.abc import Iterable
from typing import Final

import jsii
from aws_cdk import Acknowledgment, Validations
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.aws_apigateway import AccessLogFormat
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from stacks.config import Stage

__all__ = ["ADMIN_ROUTES", "INGEST_ROUTES", "QUERY_ROUTES", "ServiceApi"]

INGEST_ROUTES: Final = ("POST /v1/events",)
ADMIN_ROUTES: Final = ("PUT /v1/layout", "DELETE /v1/events/one")
QUERY_ROUTES: Final = (
    "GET /v1/events",
    "GET /v1/events/one",
    "GET /v1/export",
    "GET /v1/aggregates",
    "GET /v1/layout",
    "GET /v1/healthz",
    "GET /v1/openapi.json",
    "$default",  # every other path, so that its 404 has the shape of our errors
)

# Query strings hold series names and cursors, bodies hold payloads: none of them is logged.
_ACCESS_LOG: Final = {
    "requestId": "$context.requestId",
    "requestTime": "$context.requestTime",
    "ip": "$context.identity.sourceIp",
    # Who signed the request; "-" where the stage asks for no signature.
    "userArn": "$context.identity.userArn",
    "caller": "$context.identity.caller",
    "accountId": "$context.identity.accountId",
    "routeKey": "$context.routeKey",
    "status": "$context.status",
    "responseLength": "$context.responseLength",
    "responseLatency": "$context.responseLatency",
    "integrationLatency": "$context.integrationLatency",
    "integrationError": "$context.integrationErrorMessage",
    "error": "$context.error.message",
}


@jsii.implements(apigateway.IAccessLogSettings)
class _AccessLog:
    """Where the access log goes, and its fields."""

    def __init__(self, log_group: logs.ILogGroup) -> None:
        self._destination = apigateway.LogGroupLogDestination(log_group)

    @property
    def destination(self) -> apigateway.IAccessLogDestination:
        return self._destination

    @property
    def format(self) -> AccessLogFormat:
        return AccessLogFormat.custom(json.dumps(_ACCESS_LOG))


def _route_key(route: str) -> apigateway.HttpRouteKey:
    if route == "$default":
        return apigateway.HttpRouteKey.DEFAULT
    method, path = route.split(" ")
    return apigateway.HttpRouteKey.with_(path, apigateway.HttpMethod[method])


class ServiceApi(Construct):
    """One HTTP API in front of the functions, throttled, with an access log of its own."""

    def __init__(  # noqa: PLR0913  one function each
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        ingest: lambda_.IFunction,
        query: lambda_.IFunction,
        admin: lambda_.IFunction,
    ) -> None:
        """Build the API and its `$default` stage, routes included."""
        super().__init__(scope, construct_id)
        self.http_api = apigateway.HttpApi(
            self,
            "HttpApi",
            api_name=f"spillway-{stage.name}",
            create_default_stage=False,  # ours logs and throttles
        )
        self._authorizer = HttpIamAuthorizer() if stage.authorizer else None
        self._add_routes(INGEST_ROUTES, "Ingest", ingest)
        self._add_routes(QUERY_ROUTES, "Query", query)
        self._add_routes(ADMIN_ROUTES, "Admin", admin)
        self._add_stage(stage)
        if not stage.authorizer:
            Validations.of(self).acknowledge(
                Acknowledgment(
                    id="AwsSolutions::AwsSolutions-APIG4",
                    reason="This stage answers on the loopback interface of one machine only",
                )
            )

    def _add_routes(self, routes: Iterable[str], name: str, function: lambda_.IFunction) -> None:
        # One permission for the API, not one a route: a function's policy is limited to 20 KB.
        integration = HttpLambdaIntegration(name, function, scope_permission_to_route=False)
        for route in routes:
            apigateway.HttpRoute(
                self,
                route,
                http_api=self.http_api,
                route_key=_route_key(route),
                integration=integration,
                authorizer=self._authorizer,
            )

    def _add_stage(self, stage: Stage) -> None:
        access_log = logs.LogGroup(
            self,
            "AccessLog",
            retention=stage.functions.log_retention,
            removal_policy=stage.functions.removal_policy,
        )
        apigateway.HttpStage(
            self,
            "DefaultStage",
            http_api=self.http_api,
            auto_deploy=True,
            access_log_settings=_AccessLog(access_log),
            throttle=apigateway.ThrottleSettings(
                rate_limit=stage.requests_per_second, burst_limit=stage.burst_requests
            ),
        )
