"""All stacks of one stage, tagged and checked."""

from typing import NamedTuple

from aws_cdk import App, Tags, Validations
from aws_cdk import aws_lambda as lambda_
from cdk_nag import AwsSolutionsChecks

from stacks.cache import CacheStack
from stacks.config import Stage
from stacks.names import stack_name
from stacks.service import ServiceStack
from stacks.storage import StorageStack

__all__ = ["Stacks", "assemble"]


class Stacks(NamedTuple):
    """The stacks of one stage."""

    storage: StorageStack
    cache: CacheStack | None
    service: ServiceStack


def assemble(app: App, *, stage: Stage, code: lambda_.Code) -> Stacks:
    """Add the stacks of one stage to the app; its synthesis fails where cdk-nag finds a fault."""
    storage = StorageStack(app, stack_name(stage, "storage"), stage=stage)
    cache = None
    if stage.cache is not None:
        cache = CacheStack(
            app,
            stack_name(stage, "cache"),
            stage=stage,
            cache=stage.cache,
            storage=storage,
        )
    service = ServiceStack(
        app, stack_name(stage, "service"), stage=stage, storage=storage, cache=cache, code=code
    )
    Tags.of(app).add("project", "spillway")
    Tags.of(app).add("stage", stage.name)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return Stacks(storage, cache, service)
