"""The service stack: what functions run on, what they may do, who may call them, what is logged."""

import json
from typing import Any

import pytest

from spillway import keys
from spillway.cdk.access import ACCESS, READS_CAPACITY
from tests.infra.synthesis import (
    Resource,
    Synthesis,
    allowed,
    data_resource,
    functions,
    in_network,
    of_type,
)

CAPACITY_FIGURES = [(action, "*") for action in READS_CAPACITY.anything]
BEHIND_THE_API = ("ingest", "query", "admin")
FUNCTIONS = (*BEHIND_THE_API, "scaler")
ROUTES = {
    "POST /v1/events": "ingest",
    "GET /v1/events": "query",
    "GET /v1/events/one": "query",
    "DELETE /v1/events/one": "admin",
    "GET /v1/aggregates": "query",
    "GET /v1/export": "query",
    "GET /v1/layout": "query",
    "PUT /v1/layout": "admin",
    "GET /v1/healthz": "query",
    "GET /v1/openapi.json": "query",
    "$default": "query",
}
ENVIRONMENT = {
    "SPILLWAY_TABLE",
    "SPILLWAY_LAYOUTS",
    "SPILLWAY_USAGE",
    "SPILLWAY_TIME_BUCKET",
    "SPILLWAY_MODE",
    "SPILLWAY_SHARDS",
    "SPILLWAY_INDEX_SHARDS",
    "SPILLWAY_RETENTION_DAYS",
    "SPILLWAY_LATE_LIMIT_SECONDS",
    "POWERTOOLS_SERVICE_NAME",
    "POWERTOOLS_METRICS_NAMESPACE",
    "POWERTOOLS_LOG_LEVEL",
}
ENDPOINTS = {"AWS_ENDPOINT_URL_CLOUDWATCH", "AWS_ENDPOINT_URL_DYNAMODB"}
LOG_DAYS = {"local": 1, "dev": 7, "prod": 90}


TOLD_GROWTH = {
    "SPILLWAY_GROW": "true",
    "SPILLWAY_MAX_SHARDS": "256",
    "SPILLWAY_COOLDOWN_SECONDS": "1",
}


@pytest.fixture(params=BEHIND_THE_API)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def function(synthesis: Synthesis, name: str) -> Resource:
    return functions(synthesis)[name]


def _routes(synthesis: Synthesis) -> list[Any]:
    found = of_type(synthesis.service, "AWS::ApiGatewayV2::Route")
    return [route["Properties"] for route in found]


def _stage(synthesis: Synthesis) -> Any:
    (stage,) = of_type(synthesis.service, "AWS::ApiGatewayV2::Stage")
    return stage["Properties"]


def test_the_service_has_these_functions_only(synthesis: Synthesis) -> None:
    assert set(functions(synthesis)) == set(FUNCTIONS) == set(ACCESS)


def test_functions_start_in_their_own_module(function: Resource, name: str) -> None:
    assert function["Handler"] == f"lambdas.{name}.handler"


def test_functions_run_python_3_13_on_arm_in_aws(synthesis: Synthesis, function: Resource) -> None:
    architecture = "x86_64" if synthesis.stage.name == "local" else "arm64"
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == [architecture]


def test_functions_share_one_bundle(synthesis: Synthesis) -> None:
    bundles = [functions(synthesis)[name]["Code"] for name in FUNCTIONS]
    assert bundles == [bundles[0]] * len(FUNCTIONS)


def test_functions_end_before_api_gateway_gives_up_and_after_ingest_has_answered(
    function: Resource,
) -> None:
    assert 25 < function["Timeout"] < 30


def test_functions_are_told_names_and_settings_and_nothing_else(
    synthesis: Synthesis, function: Resource, name: str
) -> None:
    local = ENDPOINTS if synthesis.stage.name == "local" else set()
    cached = {"DAX_ENDPOINT"} if in_network(synthesis, name) else set()
    growth = set(TOLD_GROWTH) if name == "ingest" else set()
    assert set(function["Environment"]["Variables"]) == ENVIRONMENT | local | cached | growth


def test_functions_are_told_the_settings_of_the_stage(
    synthesis: Synthesis, function: Resource, name: str
) -> None:
    variables = function["Environment"]["Variables"]
    plain = {key: value for key, value in variables.items() if isinstance(value, str)}
    for endpoint in ENDPOINTS:
        plain.pop(endpoint, None)
    assert plain == {
        "SPILLWAY_TIME_BUCKET": "hour",
        "SPILLWAY_MODE": "calculated",
        "SPILLWAY_SHARDS": "1",
        "SPILLWAY_INDEX_SHARDS": "1",
        "SPILLWAY_RETENTION_DAYS": "0",
        "SPILLWAY_LATE_LIMIT_SECONDS": "0",
        "POWERTOOLS_SERVICE_NAME": name,
        "POWERTOOLS_METRICS_NAMESPACE": f"Spillway/{synthesis.stage.name}",
        "POWERTOOLS_LOG_LEVEL": "INFO",
        **(TOLD_GROWTH if name == "ingest" else {}),
    }


def test_functions_are_told_three_different_tables(function: Resource) -> None:
    variables = function["Environment"]["Variables"]
    told = [variables[f"SPILLWAY_{table}"] for table in ("TABLE", "LAYOUTS", "USAGE")]
    assert len({str(value) for value in told}) == 3


def test_functions_may_do_what_is_listed_on_data_and_no_more(
    synthesis: Synthesis, name: str
) -> None:
    listed = ACCESS[name]
    index = f"events/index/{keys.INDEX_NAME}"
    expected = {
        *((action, "events") for action in listed.events),
        *((action, index) for action in listed.events_index),
        *((action, "layouts") for action in listed.layouts),
        *((action, "usage") for action in listed.usage),
    }
    granted = [
        (action, data_resource(synthesis, resource))
        for action, resource in allowed(synthesis, name)
        if action.startswith("dynamodb:")
    ]
    assert len(granted) == len(set(granted))
    assert set(granted) == expected


def test_functions_may_write_to_their_own_log_and_nothing_else_beside_data(
    synthesis: Synthesis, name: str, function: Resource
) -> None:
    own_log = {"Fn::GetAtt": [function["LoggingConfig"]["LogGroup"]["Ref"], "Arn"]}
    elsewhere = ("dynamodb:", "dax:", "ec2:")
    others = [
        pair
        for pair in allowed(synthesis, name)
        if not pair[0].startswith(elsewhere) and pair not in CAPACITY_FIGURES
    ]
    assert sorted(action for action, _ in others) == ["logs:CreateLogStream", "logs:PutLogEvents"]
    assert all(resource == own_log for _, resource in others)


def test_only_the_writers_that_grow_layouts_read_metrics(synthesis: Synthesis, name: str) -> None:
    reads = [pair for pair in allowed(synthesis, name) if pair[0].startswith("cloudwatch:")]
    grows = name == "ingest" and synthesis.stage.growth.writers
    assert reads == (CAPACITY_FIGURES if grows else [])


def test_no_right_has_a_wildcard(synthesis: Synthesis, name: str) -> None:
    # Interfaces in a network have ids that nobody knows before: tests of the cache look at them.
    # Metrics know no resources.
    rights = [
        pair
        for pair in allowed(synthesis, name)
        if not pair[0].startswith("ec2:") and pair not in CAPACITY_FIGURES
    ]
    assert "*" not in json.dumps(rights)


def test_roles_carry_no_managed_policies_and_serve_lambda_only(synthesis: Synthesis) -> None:
    for role in of_type(synthesis.service, "AWS::IAM::Role"):
        assert "ManagedPolicyArns" not in role["Properties"]
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_every_log_ends_after_the_days_of_its_stage(synthesis: Synthesis) -> None:
    groups = of_type(synthesis.service, "AWS::Logs::LogGroup")
    days = [group["Properties"]["RetentionInDays"] for group in groups]
    assert days == [LOG_DAYS[synthesis.stage.name]] * (len(FUNCTIONS) + 1)


def test_each_function_and_the_api_log_to_a_group_of_their_own(synthesis: Synthesis) -> None:
    groups = [functions(synthesis)[n]["LoggingConfig"]["LogGroup"]["Ref"] for n in FUNCTIONS]
    groups.append(_stage(synthesis)["AccessLogSettings"]["DestinationArn"]["Fn::GetAtt"][0])
    assert set(groups) == set(synthesis.service.find_resources("AWS::Logs::LogGroup"))


def test_the_access_log_holds_no_query_body_or_path(synthesis: Synthesis) -> None:
    fields = json.loads(_stage(synthesis)["AccessLogSettings"]["Format"])
    assert fields["requestId"] == "$context.requestId"
    logged = " ".join(fields.values()).lower()
    assert not [word for word in ("query", "body", "path", "header") if word in logged]


def test_the_access_log_names_the_caller(synthesis: Synthesis) -> None:
    fields = json.loads(_stage(synthesis)["AccessLogSettings"]["Format"])
    named = {name: fields.get(name) for name in ("userArn", "caller", "accountId", "ip")}
    assert named == {
        "userArn": "$context.identity.userArn",
        "caller": "$context.identity.caller",
        "accountId": "$context.identity.accountId",
        "ip": "$context.identity.sourceIp",
    }


def test_each_route_leads_to_its_function(synthesis: Synthesis) -> None:
    integrations = synthesis.service.find_resources("AWS::ApiGatewayV2::Integration")
    by_id = synthesis.service.find_resources("AWS::Lambda::Function")
    found = {}
    for route in _routes(synthesis):
        integration = integrations[route["Target"]["Fn::Join"][1][1]["Ref"]]["Properties"]
        assert integration["PayloadFormatVersion"] == "2.0"
        function = by_id[integration["IntegrationUri"]["Fn::GetAtt"][0]]
        found[route["RouteKey"]] = function["Properties"]["Handler"].split(".")[1]
    assert found == ROUTES


def test_every_route_asks_for_iam_but_in_the_local_cloud(synthesis: Synthesis) -> None:
    asked = {route.get("AuthorizationType", "NONE") for route in _routes(synthesis)}
    assert asked == ({"NONE"} if synthesis.stage.name == "local" else {"AWS_IAM"})


def test_only_this_api_may_call_the_functions(synthesis: Synthesis) -> None:
    (api,) = synthesis.service.find_resources("AWS::ApiGatewayV2::Api")
    found = synthesis.service.find_resources("AWS::Lambda::Function")
    permissions = [p["Properties"] for p in of_type(synthesis.service, "AWS::Lambda::Permission")]
    for permission in permissions:
        called = found[permission["FunctionName"]["Fn::GetAtt"][0]]["Properties"]["Handler"]
        if called != "lambdas.scaler.handler":
            assert permission["Principal"] == "apigateway.amazonaws.com"
            assert {"Ref": api} in permission["SourceArn"]["Fn::Join"][1]
    assert len(permissions) == len(BEHIND_THE_API) + 2  # the scaler's: its topic, its schedule


def test_api_gateway_throttles_before_the_account_does(synthesis: Synthesis) -> None:
    settings = _stage(synthesis)["DefaultRouteSettings"]
    assert 0 < settings["ThrottlingRateLimit"] <= 10_000
    assert 0 < settings["ThrottlingBurstLimit"] <= 5_000


def test_the_stack_gives_out_the_url_and_id_of_the_api(synthesis: Synthesis) -> None:
    outputs = synthesis.service.find_outputs("*")
    assert set(outputs) == {"ApiUrl", "ApiId"}
    (api,) = synthesis.service.find_resources("AWS::ApiGatewayV2::Api")
    assert outputs["ApiUrl"]["Value"] == {"Fn::GetAtt": [api, "ApiEndpoint"]}
    assert outputs["ApiId"]["Value"] == {"Ref": api}
