"""The network that DAX needs: subnets without internet access, and an endpoint for DynamoDB."""

from collections.abc import Iterable
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

from spillway.cdk.functions import FunctionNetwork
from stacks.config import CacheSettings, Stage

__all__ = ["DynamoDbPrefixList", "PrivateNetwork"]

_ISOLATED: Final = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
_HTTPS = ec2.Port.tcp(443)


class PrivateNetwork(Construct):
    """Isolated subnets without internet gateway or NAT, and a free gateway endpoint for DynamoDB.

    A function in here reaches DynamoDB, DAX and nothing else. It needs no interface endpoints,
    which cost by the hour: Lambda itself writes a function's logs, and with them its metrics, and
    hands it the credentials of its role.

    Attributes:
        vpc: the network.
        function_group: security group of functions: out to DynamoDB, and to what allows it.
        functions: where functions stand.
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
        """Build the network; `allowed` lists the calls to DynamoDB that it lets pass."""
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
            # Nothing is in the default group. Closing it takes a function with rights of its own.
            restrict_default_security_group=False,
        )
        self._log_refused(stage)
        dynamodb = self.vpc.add_gateway_endpoint(
            "DynamoDb", service=ec2.GatewayVpcEndpointAwsService.DYNAMODB
        )
        for statement in allowed:
            statement.add_any_principal()  # IAM decides who may
            dynamodb.add_to_policy(statement)
        self.function_group = ec2.SecurityGroup(
            self,
            "Functions",
            vpc=self.vpc,
            description="Spillway functions that read through DAX",
            allow_all_outbound=False,
        )
        self.functions = FunctionNetwork(
            vpc=self.vpc, subnets=_ISOLATED, security_group=self.function_group
        )
        self._dynamodb = DynamoDbPrefixList(self, "DynamoDbPrefixList", stage=stage).peer
        self.let_out_to_dynamodb(self.function_group)

    def let_out_to_dynamodb(self, group: ec2.SecurityGroup) -> None:
        """Let members of the group reach DynamoDB."""
        group.add_egress_rule(self._dynamodb, _HTTPS, "DynamoDB")

    def _log_refused(self, stage: Stage) -> None:
        # Only what is refused: logs of all traffic would cost more than they help.
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

    CloudFormation cannot name them, and the list's id differs by region. So a small function looks
    it up once, at deployment, outside the network.
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
