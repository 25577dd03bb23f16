"""The files of one local cloud: where it says what it is, and that it runs."""

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from local.errors import LocalCloudError
from local.scratch import take_lock

__all__ = ["DEFAULT_FOLDER", "ROOT", "State", "Status"]

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_FOLDER = ROOT / ".local"


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
            if not take_lock(file.fileno()):
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
                if take_lock(file.fileno()):
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


def _replace(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(path)
