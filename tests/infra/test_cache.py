"""The cache stack: what it encrypts, whom it lets in and out, what it may read, how long it keeps copies."""

import json
from dataclasses import replace
from typing import Any

import pytest
from aws_cdk.assertions import Template

from spillway import keys
from stacks.config import STAGES
from tests.infra.synthesis import (
    Resource,
    Synthesis,
    allowed,
    data_resource,
    functions,
    of_type,
    synthesise,
)

# Read by the function and by DAX for it, by what is asked of what.
READ = {
    ("dynamodb:DescribeTable", "events"),
    ("dynamodb:GetItem", "events"),
    ("dynamodb:Query", "events"),
    ("dynamodb:Query", f"events/index/{keys.INDEX_NAME}"),
    ("dynamodb:DescribeTable", "layouts"),
    ("dynamodb:GetItem", "layouts"),
}
NODES = {"dev": 1, "prod": 3}
ZONES = {"dev": 2, "prod": 3}


@pytest.fixture
def cache(cached: Synthesis) -> Template:
    assert cached.cache is not None
    return cached.cache


def _only(template: Template, kind: str) -> Any:
    (resource,) = of_type(template, kind)
    return resource["Properties"]


def _cluster(template: Template) -> Any:
    return _only(template, "AWS::DAX::Cluster")


def _actions(statements: list[Any]) -> list[tuple[str, Any]]:
    return [
        (action, statement["Resource"])
        for statement in statements
        for action in (
            [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
        )
    ]


def test_one_setting_gives_a_stage_its_cache(synthesis: Synthesis) -> None:
    assert (synthesis.cache is None) is (synthesis.stage.cache is None)
    assert {name for name, stage in STAGES.items() if stage.cache is None} == {"local"}


def test_a_stage_without_a_cache_has_no_network_either(tmp_path_factory: Any) -> None:
    stage = replace(STAGES["prod"], cache=None)
    synthesis = synthesise("prod", tmp_path_factory.mktemp("uncached"), stage=stage)
    templates = "".join(path.read_text() for path in synthesis.template_files)
    assert "AWS::DAX" not in templates
    assert "AWS::EC2" not in templates
    assert "VpcConfig" not in templates
    assert "DAX_ENDPOINT" not in templates


def test_the_cluster_has_the_nodes_of_its_stage(cached: Synthesis, cache: Template) -> None:
    cluster = _cluster(cache)
    assert cluster["ReplicationFactor"] == NODES[cached.stage.name]
    assert cluster["NodeType"] == "dax.t3.small"


def test_the_cluster_is_encrypted_at_rest_and_in_transit(cache: Template) -> None:
    cluster = _cluster(cache)
    assert cluster["SSESpecification"] == {"SSEEnabled": True}
    assert cluster["ClusterEndpointEncryptionType"] == "TLS"


def test_copies_are_kept_for_seconds_as_configured(cached: Synthesis, cache: Template) -> None:
    setting = cached.stage.cache
    assert setting is not None
    (name,) = cache.find_resources("AWS::DAX::ParameterGroup")
    assert _cluster(cache)["ParameterGroupName"] == {"Ref": name}
    assert _only(cache, "AWS::DAX::ParameterGroup")["ParameterNameValues"] == {
        "record-ttl-millis": str(setting.item_ttl_seconds * 1000),
        "query-ttl-millis": str(setting.query_ttl_seconds * 1000),
    }
    assert 0 < setting.item_ttl_seconds <= setting.query_ttl_seconds <= 60


def test_other_ttls_are_another_parameter_group(tmp_path_factory: Any, cache: Template) -> None:
    setting = STAGES["dev"].cache
    assert setting is not None
    stage = replace(STAGES["dev"], cache=replace(setting, query_ttl_seconds=7))
    changed = synthesise("dev", tmp_path_factory.mktemp("ttl"), stage=stage).cache
    assert changed is not None
    groups = {*changed.find_resources("AWS::DAX::ParameterGroup")}
    assert groups.isdisjoint(cache.find_resources("AWS::DAX::ParameterGroup"))


def test_the_cluster_stands_in_every_subnet(cached: Synthesis, cache: Template) -> None:
    subnets = cache.find_resources("AWS::EC2::Subnet")
    assert len(subnets) == ZONES[cached.stage.name]
    (group,) = cache.find_resources("AWS::DAX::SubnetGroup")
    assert _cluster(cache)["SubnetGroupName"] == {"Ref": group}
    listed = _only(cache, "AWS::DAX::SubnetGroup")["SubnetIds"]
    assert {each["Ref"] for each in listed} == set(subnets)


def test_each_subnet_is_in_a_zone_of_its_own_whatever_the_region(cache: Template) -> None:
    zones = [
        subnet["Properties"]["AvailabilityZone"] for subnet in of_type(cache, "AWS::EC2::Subnet")
    ]
    assert zones == [{"Fn::Select": [n, {"Fn::GetAZs": ""}]} for n in range(len(zones))]


@pytest.mark.parametrize(
    "way_out",
    [
        "AWS::EC2::InternetGateway",
        "AWS::EC2::EgressOnlyInternetGateway",
        "AWS::EC2::NatGateway",
        "AWS::EC2::VPCGatewayAttachment",
        "AWS::EC2::VPCPeeringConnection",
        "AWS::EC2::Route",
        "AWS::EC2::EIP",
    ],
)
def test_the_network_has_no_way_out(cache: Template, way_out: str) -> None:
    assert of_type(cache, way_out) == []
    for subnet in of_type(cache, "AWS::EC2::Subnet"):
        assert subnet["Properties"]["MapPublicIpOnLaunch"] is False


def test_the_one_endpoint_is_the_free_gateway_to_dynamodb_from_every_subnet(
    cache: Template,
) -> None:
    endpoint = _only(cache, "AWS::EC2::VPCEndpoint")
    assert endpoint["VpcEndpointType"] == "Gateway"
    assert endpoint["ServiceName"]["Fn::Join"][1][-1] == ".dynamodb"
    tables = {route["Ref"] for route in endpoint["RouteTableIds"]}
    assert tables == set(cache.find_resources("AWS::EC2::RouteTable"))
    associations = of_type(cache, "AWS::EC2::SubnetRouteTableAssociation")
    assert {each["Properties"]["SubnetId"]["Ref"] for each in associations} == set(
        cache.find_resources("AWS::EC2::Subnet")
    )


def test_the_endpoint_lets_reads_of_these_tables_through_only(
    cached: Synthesis, cache: Template
) -> None:
    statements = _only(cache, "AWS::EC2::VPCEndpoint")["PolicyDocument"]["Statement"]
    assert {statement["Effect"] for statement in statements} == {"Allow"}
    found = {(action, data_resource(cached, arn)) for action, arn in _actions(statements)}
    assert found == READ


def test_dax_may_read_what_functions_read_through_it(cached: Synthesis, cache: Template) -> None:
    role = _cluster(cache)["IAMRoleARN"]["Fn::GetAtt"][0]
    trusted = cache.find_resources("AWS::IAM::Role")[role]["Properties"]
    (trust,) = trusted["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "dax.amazonaws.com"}
    assert "ManagedPolicyArns" not in trusted
    (policy,) = (
        policy["Properties"]
        for policy in of_type(cache, "AWS::IAM::Policy")
        if {"Ref": role} in policy["Properties"]["Roles"]
    )
    rights = _actions(policy["PolicyDocument"]["Statement"])
    assert {(action, data_resource(cached, arn)) for action, arn in rights} == READ


def _rules(cache: Template, kind: str, group: str) -> list[Any]:
    rules = [rule["Properties"] for rule in of_type(cache, f"AWS::EC2::SecurityGroup{kind}")]
    attached = [rule for rule in rules if rule["GroupId"]["Fn::GetAtt"][0] == group]
    inline = cache.find_resources("AWS::EC2::SecurityGroup")[group]["Properties"]
    found: list[Any] = inline.get(f"SecurityGroup{kind}", [])
    return attached + found


def _groups(cache: Template) -> tuple[str, str]:
    """Return the security groups of the cluster and of functions."""
    cluster = _cluster(cache)["SecurityGroupIds"][0]["Fn::GetAtt"][0]
    (functions_group,) = set(cache.find_resources("AWS::EC2::SecurityGroup")) - {cluster}
    return cluster, functions_group


def _ports(rule: Any) -> tuple[str, int, int]:
    return rule["IpProtocol"], rule["FromPort"], rule["ToPort"]


def test_functions_alone_reach_the_cluster_by_its_tls_port(cache: Template) -> None:
    cluster, group = _groups(cache)
    (rule,) = _rules(cache, "Ingress", cluster)
    assert rule["SourceSecurityGroupId"] == {"Fn::GetAtt": [group, "GroupId"]}
    assert _ports(rule) == ("tcp", 9111, 9111)
    assert _rules(cache, "Ingress", group) == []


def test_what_is_inside_reaches_dynamodb_and_the_cluster_and_nothing_else(cache: Template) -> None:
    cluster, group = _groups(cache)
    to_cluster = [r for r in _rules(cache, "Egress", group) if "DestinationSecurityGroupId" in r]
    assert [_ports(rule) for rule in to_cluster] == [("tcp", 9111, 9111)]
    assert to_cluster[0]["DestinationSecurityGroupId"] == {"Fn::GetAtt": [cluster, "GroupId"]}
    others = [r for r in _rules(cache, "Egress", group) if r not in to_cluster]
    for rule in (*others, *_rules(cache, "Egress", cluster)):
        assert _ports(rule) == ("tcp", 443, 443)
        assert rule["DestinationPrefixListId"]["Fn::GetAtt"][1] == "PrefixLists.0.PrefixListId"
    assert len(others) == 1


def test_no_rule_names_an_address(cache: Template) -> None:
    assert "Cidr" not in json.dumps(
        [of_type(cache, f"AWS::EC2::SecurityGroup{kind}") for kind in ("", "Ingress", "Egress")]
    )


def test_refused_traffic_is_logged_for_the_days_of_the_stage(cache: Template) -> None:
    flow_log = _only(cache, "AWS::EC2::FlowLog")
    (vpc,) = cache.find_resources("AWS::EC2::VPC")
    assert (flow_log["ResourceId"], flow_log["TrafficType"]) == ({"Ref": vpc}, "REJECT")
    group = cache.find_resources("AWS::Logs::LogGroup")[flow_log["LogGroupName"]["Ref"]]
    assert group["Properties"]["RetentionInDays"] > 0


def test_the_query_function_alone_joins_the_network(cached: Synthesis, cache: Template) -> None:
    joined = {name for name, each in functions(cached).items() if "VpcConfig" in each}
    assert joined == {"query"}
    config = functions(cached)["query"]["VpcConfig"]
    assert len(config["SubnetIds"]) == len(of_type(cache, "AWS::EC2::Subnet"))
    (group,) = config["SecurityGroupIds"]
    assert _groups(cache)[1] in group["Fn::ImportValue"]


def _exported(cache: Template, value: Any) -> Any:
    (found,) = (
        output["Value"]
        for output in cache.find_outputs("*").values()
        if output.get("Export", {}).get("Name") == value["Fn::ImportValue"]
    )
    return found


def test_the_function_is_told_the_clusters_address_and_may_read_through_it(
    cached: Synthesis, cache: Template
) -> None:
    (cluster,) = cache.find_resources("AWS::DAX::Cluster")
    told = functions(cached)["query"]["Environment"]["Variables"]["DAX_ENDPOINT"]
    assert _exported(cache, told) == {"Fn::GetAtt": [cluster, "ClusterDiscoveryEndpointURL"]}
    rights = {
        (action, json.dumps(_exported(cache, arn)))
        for action, arn in allowed(cached, "query")
        if action.startswith("dax:")
    }
    arn = json.dumps({"Fn::GetAtt": [cluster, "Arn"]})
    assert rights == {("dax:GetItem", arn), ("dax:Query", arn)}


def test_lambda_may_keep_the_functions_interfaces_in_this_account_only(
    cached: Synthesis,
) -> None:
    rights = [pair for pair in allowed(cached, "query") if pair[0].startswith("ec2:")]
    lists = {action for action, resource in rights if resource == "*"}
    assert lists == {"ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"}
    for action, resource in rights:
        if action not in lists:
            parts = resource["Fn::Join"][1]
            assert {"Ref": "AWS::AccountId"} in parts
            assert {"Ref": "AWS::Region"} in parts


def test_the_lookup_of_addresses_may_do_nothing_else(cache: Template) -> None:
    (function,) = of_type(cache, "AWS::Lambda::Function")
    role: Resource = {"Ref": function["Properties"]["Role"]["Fn::GetAtt"][0]}
    rights = {
        action
        for policy in of_type(cache, "AWS::IAM::Policy")
        if role in policy["Properties"]["Roles"]
        for action, _ in _actions(policy["Properties"]["PolicyDocument"]["Statement"])
    }
    assert rights == {
        "ec2:DescribeManagedPrefixLists",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
    }
    assert "VpcConfig" not in function["Properties"]


@pytest.mark.parametrize(
    "setting", [{"nodes": 0}, {"nodes": 12}, {"zones": 0}, {"item_ttl_seconds": 0}]
)
def test_caches_that_could_not_work_are_refused(setting: dict[str, Any]) -> None:
    cache = STAGES["dev"].cache
    assert cache is not None
    with pytest.raises(ValueError, match=r"cache|cluster"):
        replace(cache, **setting)
