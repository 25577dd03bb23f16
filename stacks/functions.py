"""A Lambda function of Spillway with its role and its logs."""

from collections.abc import Iterable, Mapping

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.network import ISOLATED, PrivateNetwork, interface_rights
from stacks.settings import FunctionSettings

__all__ = ["ServiceFunction"]

_ARCHITECTURES = {"arm64": lambda_.Architecture.ARM_64, "x86_64": lambda_.Architecture.X86_64}


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
        network: PrivateNetwork | None = None,
    ) -> None:
        """Build the function, in a network if any.

        `concurrency` is reserved for it, and as many run at once at most.
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
            vpc_subnets=None if network is None else ISOLATED,
            security_groups=None if network is None else [network.function_group],
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
        """Let Lambda keep the function's network interfaces; the function itself cannot reach EC2."""
        policy = iam.Policy(self, "Interfaces", roles=[self.role], statements=[*interface_rights()])
        self.function.node.add_dependency(policy)  # Lambda asks for them when it creates it
        interfaces = "arn:<AWS::Partition>:ec2:<AWS::Region>:<AWS::AccountId>:*/*"
        Validations.of(policy).acknowledge(
            *(
                Acknowledgment(
                    id=f"AwsSolutions::AwsSolutions-IAM5[Resource::{resource}]",
                    reason="Nobody knows the ids of interfaces before Lambda makes them",
                )
                for resource in ("*", interfaces)
            )
        )

    def allow(self, statements: Iterable[iam.PolicyStatement]) -> None:
        """Add these rights to the function's role."""
        for statement in statements:
            self.role.add_to_policy(statement)
