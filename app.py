"""The AWS CDK application: `cdk deploy --all -c stage=local|dev|prod`.

Context: `stage` (cdk.json names the default), and for the local stage what `stacks.overrides` takes.
"""

import os
import sys

from stacks.interpreters import find_node

_NODE = find_node()
if _NODE is not None:
    os.environ.setdefault("JSII_NODE", str(_NODE))

# Importing aws_cdk starts Node, so the choice of Node stands above.
from aws_cdk import App  # noqa: E402

from stacks.assembly import assemble  # noqa: E402
from stacks.bundle import BundleError, BundleTarget  # noqa: E402
from stacks.code import function_code  # noqa: E402
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
