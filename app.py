"""The AWS CDK application: `cdk deploy --all -c stage=local|dev|prod`.

Context: `stage`, whose default stands in cdk.json; for the local stage also those of
`stacks.overrides`.
"""

import sys

from toolchain.node import use_pinned_node

use_pinned_node()  # importing aws_cdk starts Node
from aws_cdk import App  # noqa: E402

from spillway.cdk.bundle import (  # noqa: E402
    BundleError,
    BundleTarget,
    function_code,
)
from stacks.assembly import assemble  # noqa: E402
from stacks.config import Stage, UnknownStageError, stage_named  # noqa: E402
from stacks.overrides import OverrideError, overridden  # noqa: E402


def main() -> None:
    """Synthesise the stage that the context names."""
    app = App()
    try:
        context = app.node.try_get_context
        stage = overridden(stage_named(context("stage")), context)
        code = function_code(app, target=_target(stage), with_dax=stage.cache is not None)
        assemble(app, stage=stage, code=code)
    except (UnknownStageError, OverrideError, BundleError) as error:
        sys.exit(f"error: {error}")
    app.synth()


def _target(stage: Stage) -> BundleTarget:
    if stage.bundle_for_this_machine:
        return BundleTarget.this_machine()
    return BundleTarget.aws(
        python=stage.functions.python, architecture=stage.functions.architecture
    )


if __name__ == "__main__":
    main()
