import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from local.demo.errors import DemoError
from local.demo.table_folder import table_folder

Usage = namedtuple("Usage", "total used free")
GB = 10**9


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[Path, int]:
    """Bytes that folders have free."""
    given: dict[Path, int] = {}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, given[path]))
    return given


def test_tables_stay_in_memory_where_they_fit(tmp_path: Path, free: dict[Path, int]) -> None:
    free[Path("/memory")] = 4 * GB
    with table_folder(3_000_000, Path("/memory"), tmp_path) as folder:
        assert folder is None


def test_tables_go_to_disk_for_a_while_where_memory_is_small(
    tmp_path: Path, free: dict[Path, int]
) -> None:
    free.update({Path("/memory"): 3 * GB, tmp_path: 4 * GB})
    with table_folder(3_000_000, Path("/memory"), tmp_path) as folder:
        assert folder is not None
        assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_too_little_room_anywhere_says_what_is_needed(
    tmp_path: Path, free: dict[Path, int]
) -> None:
    free.update({Path("/memory"): 3 * GB, tmp_path: 3 * GB})
    with (
        pytest.raises(DemoError, match=r"3\.6 GB.*FLIGHTS"),
        table_folder(3_000_000, Path("/memory"), tmp_path),
    ):
        pass
