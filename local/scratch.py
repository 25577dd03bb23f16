"""Folders in memory for one run, which the next run removes if this one is killed."""

import fcntl
import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

__all__ = ["memory_folder", "scratch_folder", "try_lock"]

_PREFIX = "spillway-"
_MIN_FREE_BYTES = 512 * 2**20


def memory_folder() -> Path:
    """Return where files live in memory on this machine, else the folder for temporary files.

    Containers often have only 64 MB there, too little for the functions that MiniStack unpacks.
    """
    shared = Path("/dev/shm")  # noqa: S108  # only as the parent of private folders
    is_writable = sys.platform == "linux" and os.access(shared, os.W_OK)
    if is_writable and shutil.disk_usage(shared).free >= _MIN_FREE_BYTES:
        return shared
    return Path(gettempdir())


@contextmanager
def scratch_folder() -> Generator[Path]:
    """Make a folder in memory for one run, and remove those that killed runs left behind."""
    for folder in memory_folder().glob(_PREFIX + "*"):
        if _is_abandoned(folder / "lock"):
            shutil.rmtree(folder, ignore_errors=True)
    with (
        TemporaryDirectory(prefix=_PREFIX, dir=memory_folder(), ignore_cleanup_errors=True) as name,
        (Path(name) / "lock").open("w") as lock,
    ):
        # This may wait for another run that checks whether the folder is abandoned.
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        lock.write(str(os.getpid()))  # after the lock: an empty file is not abandoned but new
        lock.flush()
        yield Path(name)


def _is_abandoned(lock: Path) -> bool:
    with suppress(OSError), lock.open() as file:
        return try_lock(file.fileno()) and file.read() != ""
    return False


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed. Return False if another process holds the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
