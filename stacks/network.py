"""The network that DAX needs: subnets without a way out, and the one door to DynamoDB."""

from collections.abc import Iterable, Iterator
from typing import Final

from aws_cdk import Acknowledgment, Aws, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk.custom_resources import (
    AwsCustomResource,
    AwsCustomResourcePolicy,
    AwsSdkCall,
    PhysicalResourceId,
)
from constructs import Construct

from stacks.cache_settings import CacheSettings
from stacks.config import Stage

__all__ = ["ISOLATED", "DynamoDbPrefixList", "PrivateNetwork", "interface_rights"]

ISOLATED: Final = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
_HTTPS = ec2.Port.tcp(443)


class PrivateNetwork(Construct):
    """Isolated subnets: no internet gateway, no NAT, and DynamoDB by a gateway endpoint, which costs nothing.

    No interface endpoints, which cost by the hour: Lambda itself writes a function's logs, and with them its
    metrics, and hands it its role's credentials. A function in here reaches DynamoDB, DAX and nothing else.

    Attributes:
        vpc: the network.
        function_group: security group of functions: out to DynamoDB, and to what allows it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        cache: CacheSettings,
        allowed: Iterable[iam.PolicyStatement],
    ) -> None:
        """Build the network; `allowed` is what may be asked of DynamoDB from inside it."""
        super().__init__(scope, construct_id)
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(cache.cidr),
            max_azs=cache.zones,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="cache",
                    subnet_type=ec2.SubnetType.PRIVATE_ISOLATED,
                    cidr_mask=cache.subnet_bits,
                )
            ],
            # Nothing is in the default group; closing it would take a function with rights of its own.
            restrict_default_security_group=False,
        )
        self._log_refused(stage)
        dynamodb = self.vpc.add_gateway_endpoint(
            "DynamoDb", service=ec2.GatewayVpcEndpointAwsService.DYNAMODB
        )
        for statement in allowed:
            statement.add_any_principal()  # whoever it is: IAM decides that
            dynamodb.add_to_policy(statement)
        self.function_group = ec2.SecurityGroup(
            self,
            "Functions",
            vpc=self.vpc,
            description="Spillway functions that read through DAX",
            allow_all_outbound=False,
        )
        self._dynamodb = DynamoDbPrefixList(self, "DynamoDbPrefixList", stage=stage).peer
        self.let_out_to_dynamodb(self.function_group)

    def let_out_to_dynamodb(self, group: ec2.SecurityGroup) -> None:
        """Let what is in the group reach DynamoDB."""
        group.add_egress_rule(self._dynamodb, _HTTPS, "DynamoDB")

    def _log_refused(self, stage: Stage) -> None:
        # What is refused is what nobody expects; logging all traffic would cost more than it tells.
        refused = logs.LogGroup(
            self,
            "Refused",
            retention=stage.functions.log_retention,
            removal_policy=stage.functions.removal_policy,
        )
        self.vpc.add_flow_log(
            "Refused",
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(refused),
            traffic_type=ec2.FlowLogTrafficType.REJECT,
        )


class DynamoDbPrefixList(Construct):
    """DynamoDB's addresses in the region, for rules of security groups.

    CloudFormation cannot name them, and the list's id differs by region: a small function asks once, at
    deployment, outside the network.
    """

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage) -> None:
        """Look the list up; `peer` stands for it."""
        super().__init__(scope, construct_id)
        log_group = logs.LogGroup(
            self,
            "Logs",
            retention=stage.functions.log_retention,
            removal_policy=stage.functions.removal_policy,
        )
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(role)
        call = AwsSdkCall(
            service="EC2",
            action="describeManagedPrefixLists",
            parameters={
                "Filters": [
                    {"Name": "prefix-list-name", "Values": [f"com.amazonaws.{Aws.REGION}.dynamodb"]}
                ]
            },
            output_paths=["PrefixLists.0.PrefixListId"],
            physical_resource_id=PhysicalResourceId.of("dynamodb-prefix-list"),
        )
        found = AwsCustomResource(
            self,
            "Lookup",
            on_update=call,  # and on creation
            install_latest_aws_sdk=False,
            log_group=log_group,
            role=role,
            policy=AwsCustomResourcePolicy.from_statements(
                [iam.PolicyStatement(actions=["ec2:DescribeManagedPrefixLists"], resources=["*"])]
            ),
        )
        self.peer = ec2.Peer.prefix_list(found.get_response_field("PrefixLists.0.PrefixListId"))
        Validations.of(found).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-IAM5[Resource::*]",
                reason="EC2 takes no resources for ec2:DescribeManagedPrefixLists: it is a list",
            )
        )


def interface_rights() -> Iterator[iam.PolicyStatement]:
    """Yield what Lambda needs to keep a function's interfaces: its guide's list, without logs of all the account."""
    yield iam.PolicyStatement(
        actions=["ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"], resources=["*"]
    )
    yield iam.PolicyStatement(
        actions=[
            "ec2:AssignPrivateIpAddresses",
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:UnassignPrivateIpAddresses",
        ],
        resources=[f"arn:{Aws.PARTITION}:ec2:{Aws.REGION}:{Aws.ACCOUNT_ID}:*/*"],
    )
