"""The files of one local cloud: where it says what it is, and that it runs."""

import fcntl
import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from local.engine import memory_folder
from local.errors import LocalCloudError

__all__ = ["DEFAULT_FOLDER", "ROOT", "State", "Status", "scratch_folder"]

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_FOLDER = ROOT / ".local"
_SCRATCH = "spillway-"


@dataclass(frozen=True, slots=True)
class Status:
    """What a running cloud tells about itself."""

    endpoint: str
    api: str | None
    engine_pid: int


@dataclass(frozen=True, slots=True)
class State:
    """The folder of one cloud; two clouds never share one."""

    folder: Path

    @property
    def logs(self) -> Path:
        """Folder of the logs of the parts."""
        return self.folder / "logs"

    @property
    def outputs(self) -> Path:
        """Outputs of the deployed stacks, by stack."""
        return self.folder / "outputs.json"

    @property
    def url(self) -> Path:
        """The API's base URL, present while the cloud is ready."""
        return self.folder / "url"

    @property
    def cdk_home(self) -> Path:
        """What the CDK CLI caches about this cloud."""
        return self.folder / "cdk"

    @property
    def assembly(self) -> Path:
        """The synthesised stacks."""
        return self.folder / "cdk.out"

    @property
    def _pid(self) -> Path:
        return self.folder / "pid"

    @property
    def _status(self) -> Path:
        return self.folder / "status.json"

    @contextmanager
    def held(self) -> Generator[None]:
        """Own the folder, which tells others that this process runs its cloud.

        Raises:
            LocalCloudError: Another process owns it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._pid.open("a+") as file:
            if not _lock(file.fileno()):
                raise LocalCloudError(
                    f"A local cloud of this folder runs already (process {self.pid()}):"
                    " `make down` stops it."
                )
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
            finally:
                for gone in (self._status, self.url, self._pid):
                    gone.unlink(missing_ok=True)

    def pid(self) -> int | None:
        """Return the process that runs the cloud, None where none does."""
        try:
            with self._pid.open() as file:
                if _lock(file.fileno()):
                    return None
                return int(file.read() or 0) or None
        except FileNotFoundError:
            return None

    def tell(self, status: Status) -> None:
        """Publish the status."""
        _replace(self._status, json.dumps(asdict(status)))
        if status.api is not None:
            _replace(self.url, status.api + "\n")

    def status(self) -> Status | None:
        """Return what was published last, None where the cloud is not ready."""
        try:
            return Status(**json.loads(self._status.read_text()))
        except FileNotFoundError:
            return None


@contextmanager
def scratch_folder() -> Generator[Path]:
    """Make a folder in memory for one run, and remove what killed runs left there."""
    for folder in memory_folder().glob(_SCRATCH + "*"):
        if _abandoned(folder / "lock"):
            shutil.rmtree(folder, ignore_errors=True)
    with (
        TemporaryDirectory(
            prefix=_SCRATCH, dir=memory_folder(), ignore_cleanup_errors=True
        ) as name,
        (Path(name) / "lock").open("w") as lock,
    ):
        _lock(lock.fileno())
        lock.write(str(os.getpid()))  # after the lock: an empty file is not abandoned but new
        lock.flush()
        yield Path(name)


def _abandoned(lock: Path) -> bool:
    with suppress(OSError), lock.open() as file:
        return _lock(file.fileno()) and file.read() != ""
    return False


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _replace(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(path)
