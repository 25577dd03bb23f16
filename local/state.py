"""The folder of one local cloud: its logs and results, and what says that it runs."""

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from local.errors import LocalCloudError
from local.scratch import try_lock
from toolchain.node import ROOT

__all__ = ["DEFAULT_FOLDER", "ROOT", "State", "Status"]

DEFAULT_FOLDER = ROOT / ".local"


@dataclass(frozen=True, slots=True)
class Status:
    """What a running cloud publishes about itself."""

    endpoint: str
    api: str | None
    engine_pid: int


@dataclass(frozen=True, slots=True)
class State:
    """The folder of one cloud. Two clouds never share one."""

    folder: Path

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.folder / "logs"

    @property
    def outputs(self) -> Path:
        """The outputs of the deployed stacks, by stack."""
        return self.folder / "outputs.json"

    @property
    def url(self) -> Path:
        """The file with the API's base URL, present while the cloud is ready."""
        return self.folder / "url"

    @property
    def cdk_home(self) -> Path:
        """The folder of the CDK CLI's caches about this cloud."""
        return self.folder / "cdk"

    @property
    def assembly(self) -> Path:
        """The folder of the synthesised stacks."""
        return self.folder / "cdk.out"

    @property
    def _pid(self) -> Path:
        return self.folder / "pid"

    @property
    def _status(self) -> Path:
        return self.folder / "status.json"

    @contextmanager
    def lock(self) -> Generator[None]:
        """Lock the folder, as the process that runs its cloud, until the block ends.

        Raises:
            LocalCloudError: Another process holds the lock.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._pid.open("a+") as file:
            if not try_lock(file.fileno()):
                raise LocalCloudError(
                    f"A local cloud of this folder runs already (process {self.pid()})."
                    " `make down` stops it."
                )
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
            finally:
                for path in (self._status, self.url, self._pid):
                    path.unlink(missing_ok=True)

    def pid(self) -> int | None:
        """Return the process that runs the cloud, None where none runs."""
        try:
            with self._pid.open() as file:
                if try_lock(file.fileno()):
                    return None
                return int(file.read() or 0) or None
        except FileNotFoundError:
            return None

    def publish(self, status: Status) -> None:
        """Publish the status."""
        _replace(self._status, json.dumps(asdict(status)))
        if status.api is not None:
            _replace(self.url, status.api + "\n")

    def status(self) -> Status | None:
        """Return the published status, None where the cloud is not ready."""
        try:
            return Status(**json.loads(self._status.read_text()))
        except FileNotFoundError:
            return None


def _replace(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.replace(path)
