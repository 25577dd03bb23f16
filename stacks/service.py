"""The stack that answers: functions, their rights, the HTTP API."""

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.access import ACCESS, dax_statement, statements
from stacks.api import ServiceApi
from stacks.cache import CacheStack
from stacks.config import Stage
from stacks.environment import function_environment
from stacks.functions import ServiceFunction
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
        environment = function_environment(stage=stage, storage=storage)
        self.ingest, self.query, self.admin = (
            ServiceFunction(
                self,
                name,
                settings=stage.functions,
                code=code,
                environment=environment,
                network=cache.network if cache is not None and name == "query" else None,
            )
            for name in ("ingest", "query", "admin")
        )
        self.api = ServiceApi(
            self,
            "Api",
            stage=stage,
            ingest=self.ingest.function,
            query=self.query.function,
            admin=self.admin.function,
        )

        functions = (("ingest", self.ingest), ("query", self.query), ("admin", self.admin))
        for name, function in functions:
            function.allow(
                statements(
                    ACCESS[name],
                    events=storage.events,
                    layouts=storage.layouts,
                    usage=storage.usage,
                )
            )

        if cache is not None:
            self.query.function.add_environment("DAX_ENDPOINT", cache.endpoint)
            self.query.allow([dax_statement(cache.cluster_arn)])

        CfnOutput(self, "ApiUrl", value=self.api.http_api.api_endpoint)
        CfnOutput(self, "ApiId", value=self.api.http_api.api_id)
