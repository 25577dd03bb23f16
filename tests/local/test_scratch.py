import subprocess
import sys
from pathlib import Path

import pytest

import local.scratch
from local.scratch import scratch_folder


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(local.scratch, "memory_folder", lambda: tmp_path)
    return tmp_path


def test_a_folder_is_gone_after_its_block(memory: Path) -> None:
    with scratch_folder() as folder:
        assert folder.parent == memory
        (folder / "file").write_text("")
    assert not folder.exists()


def test_the_folder_of_a_killed_run_is_removed_by_the_next_one(memory: Path) -> None:
    program = (
        "import pathlib, os, local.scratch as s\n"
        f"s.memory_folder = lambda: pathlib.Path({str(memory)!r})\n"
        "with s.scratch_folder(): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program], check=False)  # noqa: S603
    (left,) = memory.iterdir()
    with scratch_folder() as folder:
        assert list(memory.iterdir()) == [folder]
    assert not left.exists()


def test_the_folders_of_running_clouds_and_of_others_stay(memory: Path) -> None:
    other = memory / "spillway-other"
    other.mkdir()
    with scratch_folder() as first, scratch_folder() as second:
        assert {first, second, other} == set(memory.iterdir())
