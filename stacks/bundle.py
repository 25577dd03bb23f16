"""The functions' code and dependencies as one folder, built without Docker.

    .build/dependencies-<target>-<hash>/   wheels of the requirements, pruned, compiled
    .build/bundle-<target>-<hash>/         those, and the packages `spillway` and `lambdas`

A hash is made of everything its folder is made of, so an unchanged tree builds, and deploys, nothing.
A folder appears under its name only when it is complete; the oldest ones go.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from stacks.pruning import prune
from toolchain.interpreters import find_python

__all__ = ["WITHOUT_DAX", "WITH_DAX", "Bundle", "BundleError", "BundleTarget", "build_bundle"]

PACKAGES: Final = ("spillway", "lambdas")
WITHOUT_DAX: Final = "requirements.txt"
WITH_DAX: Final = "requirements-dax.txt"  # where functions read through DAX: its client besides
_BUILD_FOLDER: Final = ".build"
_KEPT: Final = 4  # builds of one kind and target: another synthesis may still read an older one
_BUILT_FROM_SOURCE: Final = "amazon-dax-client"  # published without wheels; pure Python
_OWN_SOURCES: Final = ("bundle.py", "pruning.py")


class BundleError(RuntimeError):
    """A step of the bundling failed; the message holds what the tool said."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleTarget:
    """What a bundle runs on: a minor version of Python, and uv's name of a platform."""

    python: str
    platform: str | None  # None: this machine

    @property
    def name(self) -> str:
        """Return a name for folders, such as `3.13-aarch64-manylinux_2_28`."""
        return f"{self.python}-{self.platform or 'here'}"

    @classmethod
    def aws(cls, *, python: str, architecture: str) -> "BundleTarget":
        """Return AWS Lambda's Amazon Linux 2023, whose glibc (2.34) takes manylinux_2_28."""
        machine = {"arm64": "aarch64", "x86_64": "x86_64"}[architecture]
        return cls(python=python, platform=f"{machine}-manylinux_2_28")

    @classmethod
    def this_machine(cls) -> "BundleTarget":
        """Return the running interpreter's version on this machine."""
        version = sys.version_info
        return cls(python=f"{version.major}.{version.minor}", platform=None)


class Bundle(NamedTuple):
    """A finished bundle. `notes` says what its user may want to know."""

    path: Path
    digest: str
    notes: tuple[str, ...]


def build_bundle(root: Path, target: BundleTarget, *, requirements: str = WITHOUT_DAX) -> Bundle:
    """Build the bundle of the tree at `root`, or find it built; BundleError where a step fails.

    Writes below `root/.build` only. The first build fetches wheels; later ones need no network until
    the requirements change.
    """
    interpreter = find_python(target.python)
    sources = list(_sources(root))  # read once: a file may change while we work
    inputs = _dependency_inputs(root / requirements, target, compiled=interpreter is not None)
    dependencies_digest = _digest(inputs)
    digest = _digest([("dependencies", dependencies_digest.encode()), *sources])
    build = root / _BUILD_FOLDER

    def make_dependencies(folder: Path) -> None:
        _install(root / requirements, target, folder)
        prune(folder)
        _compile(interpreter, folder)

    def make_bundle(folder: Path) -> None:
        installed = _made(
            build, f"dependencies-{target.name}-", dependencies_digest, make_dependencies
        )
        shutil.copytree(installed, folder, dirs_exist_ok=True)
        for name, content in sources:
            destination = folder / name
            destination.parent.mkdir(parents=True, exist_ok=True)
            destination.write_bytes(content)
        _compile(interpreter, *(folder / package for package in PACKAGES))

    path = _made(build, f"bundle-{target.name}-", digest, make_bundle)
    return Bundle(path, digest, _notes(target, interpreter))


def _notes(target: BundleTarget, interpreter: Path | None) -> tuple[str, ...]:
    if interpreter is not None:
        return ()
    note = (
        f"no Python {target.python} here: the bundle has no bytecode, a cold start takes 0.3 s more"
    )
    return (note,)


def _dependency_inputs(
    requirements: Path, target: BundleTarget, *, compiled: bool
) -> Iterator[tuple[str, bytes]]:
    yield "target", f"{target.python} {target.platform or sys.platform} {compiled}".encode()
    yield requirements.name, requirements.read_bytes()
    for name in _OWN_SOURCES:
        yield name, Path(__file__).with_name(name).read_bytes()


def _sources(root: Path) -> Iterator[tuple[str, bytes]]:
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            if path.is_file() and _is_shipped(path.relative_to(root)):
                yield path.relative_to(root).as_posix(), path.read_bytes()


def _is_shipped(path: Path) -> bool:
    if path.suffix == ".pyc" or path.name.endswith("~"):
        return False
    return not any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _digest(inputs: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, content in inputs:
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _made(build: Path, prefix: str, digest: str, make: Callable[[Path], None]) -> Path:
    """Return the folder of that digest, made first where it is missing; never half made."""
    finished = build / f"{prefix}{digest[:16]}"
    if finished.is_dir():
        return finished
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build, prefix="unfinished-") as unfinished:
        folder = Path(unfinished) / "folder"
        folder.mkdir()
        make(folder)
        _set_modes(folder)
        try:
            folder.rename(finished)
        except OSError:
            if not finished.is_dir():  # else another synthesis was quicker, with the same content
                raise
    _drop_oldest(build.glob(f"{prefix}*"))
    return finished


def _drop_oldest(folders: Iterable[Path]) -> None:
    by_age = sorted(folders, key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in by_age[_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)


def _set_modes(folder: Path) -> None:
    # Lambda runs functions as another user, whatever the umask of this one.
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _install(requirements: Path, target: BundleTarget, folder: Path) -> None:
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet"]
    command += ["--python", sys.executable, "--target", str(folder), "--link-mode", "copy"]
    if target.platform is not None:
        command += ["--python-platform", target.platform, "--python-version", target.python]
    command += ["--only-binary", ":all:", "--no-binary", _BUILT_FROM_SOURCE]
    command += ["--require-hashes", "--no-deps", "-r", str(requirements)]
    # From the project's folder: its build constraints stand in pyproject.toml.
    _run(command, "cannot install the functions' dependencies", folder=requirements.parent)


def _compile(interpreter: Path | None, *folders: Path) -> None:
    """Compile to bytecode that names no path of this machine and depends on no file time."""
    if interpreter is None:
        return
    for folder in folders:
        command = [str(interpreter), "-m", "compileall", "-q", "-j", "0", "-s", str(folder)]
        command += ["--invalidation-mode", "unchecked-hash", str(folder)]
        _run(command, "cannot compile the bundle")


def _run(command: list[str], failure: str, *, folder: Path | None = None) -> None:
    done = subprocess.run(  # noqa: S603 - ours
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BundleError(f"{failure}:\n{(done.stderr or done.stdout).strip()}")
