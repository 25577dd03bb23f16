"""The folder of the demo's tables: in memory if they fit, else on disk."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from local.demo.errors import DemoError

__all__ = ["table_folder"]

_EVENT_BYTES = 1_100  # of the engine's file, with the entry of the index
_SPARE_BYTES = 256 * 2**20  # for the functions and other programs


@contextmanager
def table_folder(events: int, memory: Path, disk: Path | None = None) -> Generator[Path | None]:
    """Yield a folder on disk for the tables of the block, or None if `memory` has room for them.

    The folder lies in `disk`, by default the folder for temporary files.

    Raises:
        DemoError: Neither has room.
    """
    needed = events * _EVENT_BYTES + _SPARE_BYTES
    if shutil.disk_usage(memory).free >= needed:
        yield None
        return
    disk = disk or Path(gettempdir())
    if shutil.disk_usage(disk).free < needed:
        raise DemoError(
            f"{events:,} flights need about {needed / 1e9:.1f} GB, but neither {memory} nor {disk}"
            " has as much free. Choose fewer (FLIGHTS=…) or another disk (TMPDIR=…)."
        )
    with TemporaryDirectory(prefix="spillway-demo-", dir=disk) as folder:
        yield Path(folder)
