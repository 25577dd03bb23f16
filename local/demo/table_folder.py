"""Where the demo's tables go: in memory where they fit, else on disk."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from local.demo.errors import DemoError

__all__ = ["table_folder"]

_EVENT_BYTES = 1_100  # of the engine's file, the entry of the index included
_SPARE = 256 * 2**20  # bytes, for the functions and for whatever else runs


@contextmanager
def table_folder(events: int, memory: Path, disk: Path | None = None) -> Generator[Path | None]:
    """Yield a folder on disk for the tables of the block, None where `memory` has room for them.

    The default for `disk` is the folder for temporary files.

    Raises:
        DemoError: There is room in neither.
    """
    needed = events * _EVENT_BYTES + _SPARE
    if shutil.disk_usage(memory).free >= needed:
        yield None
        return
    disk = disk or Path(gettempdir())
    if shutil.disk_usage(disk).free < needed:
        raise DemoError(
            f"{events:,} flights need about {needed / 1e9:.1f} GB, and neither {memory} nor {disk} has"
            " as much free: choose fewer (FLIGHTS=…) or another disk (TMPDIR=…)."
        )
    with TemporaryDirectory(prefix="spillway-demo-", dir=disk) as folder:
        yield Path(folder)
