"""Node's programs: npm, and the CDK CLI that package.json pins."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from toolchain.errors import MissingToolError
from toolchain.interpreters import pinned_node

__all__ = ["ROOT", "cdk_command", "node_environment", "run_cdk", "run_npm"]

ROOT: Final = Path(__file__).resolve().parent.parent
"""The folder of the project."""

_CDK: Final = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"


def cdk_command(arguments: Sequence[str]) -> list[str]:
    """Return the command line of the CDK CLI, to be run in `node_environment`.

    Raises:
        MissingToolError: Node or the CDK CLI is not installed.
    """
    node = pinned_node()
    if not _CDK.exists():
        raise MissingToolError("The CDK CLI is not installed in node_modules: run `make setup`.")
    return [str(node), str(_CDK), *arguments, "--no-notices"]


def node_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which Node's programs find the pinned Node and this Python.

    The CDK's app is `python3 app.py`, so PATH decides which Python runs it.

    Raises:
        MissingToolError: Node is not installed.
    """
    node = pinned_node()
    folders = (Path(sys.executable).parent, node.parent, environment.get("PATH", os.defpath))
    return {
        **environment,
        "PATH": os.pathsep.join(map(str, folders)),
        "JSII_NODE": str(node),
    }


def run_cdk(arguments: Sequence[str]) -> int:
    """Run the CDK CLI on this project, in the foreground, and return its exit code.

    Raises:
        MissingToolError: Node or the CDK CLI is not installed.
    """
    return _run(cdk_command(arguments))


def run_npm(arguments: Sequence[str]) -> int:
    """Run npm in the project's folder, in the foreground, and return its exit code.

    Raises:
        MissingToolError: Node is not installed.
    """
    node = pinned_node()
    # The wheel's `bin/npm` is a link that unpacking breaks; npm's own program is whole.
    program = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return _run([str(node), str(program), *arguments])


def _run(command: Sequence[str]) -> int:
    environment = node_environment(os.environ)
    done = subprocess.run(  # noqa: S603  # a list, no shell
        command, cwd=ROOT, env=environment, check=False
    )
    return done.returncode
