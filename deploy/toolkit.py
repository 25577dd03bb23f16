"""The CDK CLI that the project pins, run on this project."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from deploy.errors import DeployError
from stacks.interpreters import find_node

__all__ = ["Run", "run_cdk"]

Run = Callable[[Sequence[str]], int]
"""Runs the CDK CLI with these arguments in the foreground and returns its exit code."""

_ROOT: Final = Path(__file__).parents[1]
_CDK: Final = _ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"


def run_cdk(arguments: Sequence[str]) -> int:
    """Run the CLI; it asks and prints for itself. DeployError where it is not installed."""
    node = find_node()
    if node is None or not _CDK.exists():
        raise DeployError("the CDK CLI is not installed here: make setup")
    # The app is `python3 app.py`: that must be this environment's.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    environment = {**os.environ, "PATH": path, "JSII_NODE": str(node)}
    command = [str(node), str(_CDK), *arguments, "--no-notices"]
    return subprocess.run(command, cwd=_ROOT, env=environment, check=False).returncode  # noqa: S603
