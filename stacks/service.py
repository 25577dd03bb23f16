"""The stack of the service: functions, their rights, the HTTP API, the scaler, the dashboard."""

from collections.abc import Mapping

from aws_cdk import Acknowledgment, CfnOutput, Stack, Validations
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from spillway.cdk.access import ACCESS, READS_CAPACITY, dax_statement
from spillway.cdk.alarms import add_alarms, api_alarms, function_alarms
from spillway.cdk.environment import function_environment, writer_environment
from spillway.cdk.functions import FunctionNetwork, ServiceFunction
from spillway.cdk.scaler import ShardScaler
from stacks.api import ServiceApi
from stacks.cache import CacheStack
from stacks.config import Stage
from stacks.dashboard import DashboardInputs, ServiceDashboard
from stacks.storage import StorageStack

__all__ = ["ServiceStack"]


class ServiceStack(Stack):
    """Everything without data of its own: deleting it loses nothing."""

    def __init__(  # noqa: PLR0913  one stack each
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        storage: StorageStack,
        cache: CacheStack | None,
        code: lambda_.Code,
    ) -> None:
        """Build the service on the tables of `storage`; `code` is one bundle for all functions.

        Only `query` reads through the cache, so it alone stands in the cache's network.
        """
        super().__init__(
            scope,
            construct_id,
            description=f"Spillway {stage.name}: functions and HTTP API",
            termination_protection=stage.deletion_protection,
        )
        self.ingest = self._function(
            "ingest", stage, storage, code, variables=writer_environment(stage.growth)
        )
        if stage.growth.writers:
            storage.tables.grant(self.ingest.role, READS_CAPACITY)
            Validations.of(self.ingest.role).acknowledge(
                Acknowledgment(
                    id="AwsSolutions::AwsSolutions-IAM5[Resource::*]",
                    reason="cloudwatch:GetMetricData knows no resources",
                )
            )
        self.query = self._function(
            "query",
            stage,
            storage,
            code,
            network=None if cache is None else cache.network.functions,
        )
        self.admin = self._function("admin", stage, storage, code)
        self.api = ServiceApi(
            self,
            "Api",
            stage=stage,
            ingest=self.ingest.function,
            query=self.query.function,
            admin=self.admin.function,
        )
        self.scaler = ShardScaler(
            self,
            "Scaler",
            tables=storage.tables,
            code=code,
            people=stage.people,
            growth=stage.growth,
            alarms=stage.alarms,
            scaler=stage.scaler,
            functions=stage.functions,
        )
        self.alarms = self._alarms(stage)
        self.dashboard = ServiceDashboard(
            self,
            "Dashboard",
            stage=stage,
            inputs=DashboardInputs(
                tables=storage.tables,
                functions={
                    "ingest": self.ingest.function,
                    "query": self.query.function,
                    "admin": self.admin.function,
                    "scaler": self.scaler.function,
                },
                api=self.api.http_api,
                cluster=None if cache is None else cache.cluster_name,
            ),
        )

        if cache is not None:
            self.query.function.add_environment("DAX_ENDPOINT", cache.endpoint)
            self.query.allow([dax_statement(cache.cluster_arn)])

        CfnOutput(self, "ApiUrl", value=self.api.http_api.api_endpoint)
        CfnOutput(self, "ApiId", value=self.api.http_api.api_id)

    def _function(  # noqa: PLR0913  what differs between functions
        self,
        name: str,
        stage: Stage,
        storage: StorageStack,
        code: lambda_.Code,
        *,
        variables: Mapping[str, str] | None = None,
        network: FunctionNetwork | None = None,
    ) -> ServiceFunction:
        """Return a function on the tables, with the rights that its calls need."""
        environment = {**storage.tables.environment, **function_environment(stage.functions)}
        function = ServiceFunction(
            self,
            name,
            settings=stage.functions,
            code=code,
            environment={**environment, **(variables or {})},
            network=network,
        )
        storage.tables.grant(function.role, ACCESS[name])
        return function

    def _alarms(self, stage: Stage) -> list[cloudwatch.Alarm]:
        functions = (("Ingest", self.ingest), ("Query", self.query), ("Admin", self.admin))
        specs = [
            spec
            for name, each in functions
            for spec in function_alarms(name, each.function, stage.alarms)
        ]
        return add_alarms(
            self,
            [*specs, *api_alarms(self.api.http_api, stage.alarms)],
            prefix=f"{self.stack_name}-",
            topics=self.scaler.topics,
        )
