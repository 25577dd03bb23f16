"""Folders in memory for one run, which even a killed run does not leave there for long."""

import fcntl
import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

__all__ = ["memory_folder", "scratch_folder", "take_lock"]

_PREFIX = "spillway-"
_ENOUGH = 512 * 2**20  # bytes


def memory_folder() -> Path:
    """Return where files live in memory on this machine, else the folder for temporary files.

    Containers often have only 64 MB there, too little for the functions that the emulated AWS unpacks.
    """
    shared = Path("/dev/shm")  # noqa: S108  # only as the parent of private folders
    if sys.platform == "linux" and os.access(shared, os.W_OK) and _free(shared) >= _ENOUGH:
        return shared
    return Path(gettempdir())


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@contextmanager
def scratch_folder() -> Generator[Path]:
    """Make a folder in memory for one run, and remove what killed runs left there."""
    for folder in memory_folder().glob(_PREFIX + "*"):
        if _abandoned(folder / "lock"):
            shutil.rmtree(folder, ignore_errors=True)
    with (
        TemporaryDirectory(prefix=_PREFIX, dir=memory_folder(), ignore_cleanup_errors=True) as name,
        (Path(name) / "lock").open("w") as lock,
    ):
        fcntl.flock(
            lock.fileno(), fcntl.LOCK_EX
        )  # waits for others that look whether it is abandoned
        lock.write(str(os.getpid()))  # after the lock: an empty file is not abandoned but new
        lock.flush()
        yield Path(name)


def _abandoned(lock: Path) -> bool:
    with suppress(OSError), lock.open() as file:
        return take_lock(file.fileno()) and file.read() != ""
    return False


def take_lock(descriptor: int) -> bool:
    """Lock an open file for as long as it is open; False where another process has the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
