"""The AWS CDK application: `cdk deploy --all -c stage=local|dev|prod`.

Context: `stage` (cdk.json names the default), `endpoint` (DynamoDB's URL, for the local stage).
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

from stacks.interpreters import find_node

_NODE = find_node()
if _NODE is not None:
    os.environ.setdefault("JSII_NODE", str(_NODE))

# Importing aws_cdk starts Node, so the choice of Node stands above.
from aws_cdk import App  # noqa: E402
from aws_cdk import aws_lambda as lambda_  # noqa: E402

from stacks.assembly import assemble  # noqa: E402
from stacks.bundle import BundleError, Target, build_bundle  # noqa: E402
from stacks.config import Stage, UnknownStageError, stage_named  # noqa: E402

_ROOT = Path(__file__).parent


def main() -> None:
    """Synthesise the stage that the context names."""
    app = App()
    try:
        stage = _stage(app)
        assemble(app, stage=stage, code=_code(app, stage))
    except (UnknownStageError, BundleError) as error:
        sys.exit(f"error: {error}")
    app.synth()


def _stage(app: App) -> Stage:
    stage = stage_named(app.node.try_get_context("stage"))
    endpoint = app.node.try_get_context("endpoint")
    if endpoint is not None and stage.dynamodb_endpoint is not None:
        return replace(stage, dynamodb_endpoint=endpoint)
    return stage


def _code(app: App, stage: Stage) -> lambda_.Code:
    # The CLI asks for no bundles where it needs none: `cdk list`, `cdk destroy`.
    if app.node.try_get_context("aws:cdk:bundling-stacks") == []:
        return lambda_.Code.from_asset(str(_ROOT / "lambdas"))
    bundle = build_bundle(_ROOT, _target(stage))
    for note in bundle.notes:
        sys.stderr.write(f"note: {note}\n")
    return lambda_.Code.from_asset(str(bundle.path), asset_hash=bundle.digest)


def _target(stage: Stage) -> Target:
    if stage.bundle_for_this_machine:
        return Target.this_machine()
    return Target.aws(python=stage.functions.python, architecture=stage.functions.architecture)


if __name__ == "__main__":
    main()
