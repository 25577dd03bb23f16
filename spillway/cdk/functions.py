"""A Lambda function of Spillway with its role and its logs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from aws_cdk import Acknowledgment, Aws, Duration, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from spillway.cdk.settings import FunctionSettings

__all__ = ["FunctionNetwork", "ServiceFunction"]

_ARCHITECTURES = {"arm64": lambda_.Architecture.ARM_64, "x86_64": lambda_.Architecture.X86_64}


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionNetwork:
    """Where in a VPC a function stands."""

    vpc: ec2.IVpc
    subnets: ec2.SubnetSelection
    security_group: ec2.ISecurityGroup


class ServiceFunction(Construct):
    """One function: `lambdas.{name}.handler`, a role of its own, a log group of its own.

    The role starts with the right to write to that log group; `allow` adds the rest. AWS's managed
    policy for this would allow writing to every log group of the account.
    """

    def __init__(  # noqa: PLR0913  what differs between functions
        self,
        scope: Construct,
        name: str,
        *,
        settings: FunctionSettings,
        code: lambda_.Code,
        environment: Mapping[str, str],
        concurrency: int | None = None,
        network: FunctionNetwork | None = None,
    ) -> None:
        """Build the function, in `network` if one is given.

        `concurrency` is both reserved for the function and its maximum.
        """
        super().__init__(scope, name)
        log_group = logs.LogGroup(
            self, "Logs", retention=settings.log_retention, removal_policy=settings.removal_policy
        )
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(self.role)
        self.function = lambda_.Function(
            self,
            "Function",
            runtime=lambda_.Runtime(f"python{settings.python}", lambda_.RuntimeFamily.PYTHON),
            architecture=_ARCHITECTURES[settings.architecture],
            handler=f"lambdas.{name}.handler",
            code=code,
            role=self.role,
            memory_size=settings.memory_mb,
            timeout=Duration.seconds(settings.timeout_seconds),
            reserved_concurrent_executions=concurrency,
            log_group=log_group,
            environment={**environment, "POWERTOOLS_SERVICE_NAME": name},
            vpc=None if network is None else network.vpc,
            vpc_subnets=None if network is None else network.subnets,
            security_groups=None if network is None else [network.security_group],
        )
        if network is not None:
            self._allow_interfaces()
        Validations.of(self.function).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-L1",
                reason="The bundle holds wheels and bytecode of exactly this Python version",
            )
        )

    def _allow_interfaces(self) -> None:
        """Let Lambda manage the function's network interfaces. The function can't reach EC2."""
        policy = iam.Policy(
            self, "Interfaces", roles=[self.role], statements=[*_interface_rights()]
        )
        self.function.node.add_dependency(policy)  # Lambda uses them when it creates the function
        interfaces = "arn:<AWS::Partition>:ec2:<AWS::Region>:<AWS::AccountId>:*/*"
        Validations.of(policy).acknowledge(
            *(
                Acknowledgment(
                    id=f"AwsSolutions::AwsSolutions-IAM5[Resource::{resource}]",
                    reason="The ids of interfaces are unknown before Lambda creates them",
                )
                for resource in ("*", interfaces)
            )
        )

    def allow(self, statements: Iterable[iam.PolicyStatement]) -> None:
        """Add these rights to the function's role."""
        for statement in statements:
            self.role.add_to_policy(statement)


def _interface_rights() -> Iterator[iam.PolicyStatement]:
    """Yield the rights that Lambda's guide lists for network interfaces, but those on all logs."""
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
