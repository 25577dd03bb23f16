"""The functions' code and dependencies as one folder and CDK asset, built without Docker.

    .build/dependencies-<target>-<hash>/   wheels of the requirements, pruned, compiled
    .build/bundle-<target>-<hash>/         those, and the packages `spillway` and `lambdas`

A hash covers all inputs of its folder, so an unchanged tree builds nothing and deploys nothing. A
folder appears under its name only when it is complete. The oldest folders are deleted.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from spillway.cdk.pruning import prune
from spillway.cdk.settings import FUNCTIONS

__all__ = [
    "AWS",
    "PACKAGES",
    "WITHOUT_DAX",
    "WITH_DAX",
    "Bundle",
    "BundleError",
    "BundleTarget",
    "build_bundle",
    "find_python",
    "function_code",
]


_ROOT: Final = Path(__file__).parents[2]  # the checkout
PACKAGES: Final = ("spillway", "lambdas")
_LEFT_OUT: Final = ("spillway/cdk",)  # of the packages: nothing that is deployed imports aws_cdk
WITHOUT_DAX: Final = "requirements.txt"
WITH_DAX: Final = "requirements-dax.txt"  # where functions read through DAX: its client besides
_BUILD_FOLDER: Final = ".build"
_KEPT_BUILDS: Final = 4  # of one kind and target: another synthesis may still read an older one
_BUILT_FROM_SOURCE: Final = "amazon-dax-client"  # published without wheels; pure Python
_OWN_SOURCES: Final = ("bundle.py", "pruning.py")


_VERSION_SECONDS: Final = 10.0  # for an interpreter to print its version


class BundleError(RuntimeError):
    """A step of bundling failed; the message holds the output of the tool."""


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


AWS: Final = BundleTarget.aws(python=FUNCTIONS.python, architecture=FUNCTIONS.architecture)


class Bundle(NamedTuple):
    """A finished bundle, with notes for whoever synthesises."""

    path: Path
    digest: str
    notes: tuple[str, ...]


def build_bundle(root: Path, target: BundleTarget, *, requirements: str = WITHOUT_DAX) -> Bundle:
    """Return the bundle of the tree at `root`; build it where it is missing.

    Writes below `root/.build` only. The first build fetches wheels. Later ones need no network
    until the requirements change.

    Raises:
        BundleError: A step failed.
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
        installed = _build_once(
            build, f"dependencies-{target.name}-", dependencies_digest, make_dependencies
        )
        shutil.copytree(installed, folder, dirs_exist_ok=True)
        for name, content in sources:
            destination = folder / name
            destination.parent.mkdir(parents=True, exist_ok=True)
            destination.write_bytes(content)
        _compile(interpreter, *(folder / package for package in PACKAGES))

    path = _build_once(build, f"bundle-{target.name}-", digest, make_bundle)
    return Bundle(path, digest, _notes(target, interpreter))


def function_code(
    scope: Construct, *, target: BundleTarget = AWS, with_dax: bool = False
) -> lambda_.Code:
    """Return one bundle for all functions; build it where it is missing.

    Notes on the bundle go to stderr. The CDK CLI asks for no bundles where it needs none, as for
    `cdk list` and `cdk destroy`: then the code is a folder that stands for it.

    Raises:
        BundleError: A step of bundling failed.
    """
    if scope.node.try_get_context("aws:cdk:bundling-stacks") == []:
        return lambda_.Code.from_asset(str(_ROOT / "lambdas"))
    requirements = WITH_DAX if with_dax else WITHOUT_DAX
    bundle = build_bundle(_ROOT, target, requirements=requirements)
    for note in bundle.notes:
        sys.stderr.write(f"note: {note}\n")
    return lambda_.Code.from_asset(str(bundle.path), asset_hash=bundle.digest)


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
    if path.as_posix().startswith(tuple(f"{folder}/" for folder in _LEFT_OUT)):
        return False
    return not any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _digest(inputs: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, content in inputs:
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _build_once(build: Path, prefix: str, digest: str, make: Callable[[Path], None]) -> Path:
    """Return the folder of that digest. A missing one is built under another name, then renamed."""
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
    for folder in by_age[_KEPT_BUILDS:]:
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
