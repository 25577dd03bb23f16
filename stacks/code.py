"""The functions' code as CDK takes it."""

import sys
from pathlib import Path
from typing import Final

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.bundle import WITH_DAX, WITHOUT_DAX, BundleTarget, build_bundle
from stacks.config import FUNCTIONS

__all__ = ["AWS", "function_code"]

_ROOT: Final = Path(__file__).parents[1]

AWS: Final = BundleTarget.aws(python=FUNCTIONS.python, architecture=FUNCTIONS.architecture)


def function_code(
    scope: Construct, *, target: BundleTarget = AWS, with_dax: bool = False
) -> lambda_.Code:
    """Return one bundle for all functions, built where it is missing; BundleError where a step fails.

    What the user may want to know of it goes to stderr.
    """
    # The CLI asks for no bundles where it needs none: `cdk list`, `cdk destroy`.
    if scope.node.try_get_context("aws:cdk:bundling-stacks") == []:
        return lambda_.Code.from_asset(str(_ROOT / "lambdas"))
    requirements = WITH_DAX if with_dax else WITHOUT_DAX
    bundle = build_bundle(_ROOT, target, requirements=requirements)
    for note in bundle.notes:
        sys.stderr.write(f"note: {note}\n")
    return lambda_.Code.from_asset(str(bundle.path), asset_hash=bundle.digest)
