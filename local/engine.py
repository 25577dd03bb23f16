"""The DynamoDB engine: where dynoxide is found, how it starts, and one to use by itself."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from local.children import LOOPBACK, Child, free_port, last_lines, spawn, stop, wait_until_ready
from local.clients import ClientSettings, client_settings
from local.errors import LocalCloudError
from local.scratch import scratch_folder

__all__ = [
    "EngineProcess",
    "engine_command",
    "find_engine",
    "is_engine",
    "running_engine",
]

_ROOT = Path(__file__).resolve().parent.parent
_PACKAGED = _ROOT / "node_modules" / "@dynoxide" / "linux-x64" / "dynoxide"
_READY_SECONDS = 10.0
_ATTEMPTS = 3  # another process may take a free port before the engine does


@dataclass(frozen=True, slots=True)
class EngineProcess:
    """A running engine."""

    url: str
    pid: int

    def client_settings(self) -> ClientSettings:
        """Return the keyword arguments of a boto3 client that talks to this engine."""
        return client_settings(self.url)


def find_engine() -> Path:
    """Return the engine's program: the npm package's, else the one on PATH.

    Raises:
        LocalCloudError: There is none.
    """
    if _PACKAGED.exists():
        return _PACKAGED
    on_path = shutil.which("dynoxide")
    if on_path is None:
        raise LocalCloudError(
            "The DynamoDB engine `dynoxide` is neither in node_modules nor on PATH: run `make setup`"
            " (its npm package is for Linux on x64; elsewhere install dynoxide yourself)."
        )
    return Path(on_path)


def engine_command(program: Path, port: int, database: Path) -> list[str]:
    """Return the command line of an engine that keeps its tables in the file `database`."""
    return [str(program), "--host", LOOPBACK, "--port", str(port), "--db-path", str(database)]


@contextmanager
def running_engine(database: Path | None = None) -> Generator[EngineProcess]:
    """Run an engine alone on a free port, without the endpoint; stop it at the end.

    Tables live in `database`, by default in a file in memory that is removed afterwards: as durable
    against `kill -9` as a file on disk, and faster. Ready in about 0.2 s. Enter it on a thread that
    lives as long as the engine should.

    Raises:
        LocalCloudError: The engine is missing or does not start.
    """
    with scratch_folder() as folder:
        child, port = _start(database or folder / "engine.db", folder / "engine.log")
        try:
            yield EngineProcess(url=f"http://{LOOPBACK}:{port}", pid=child.pid)
        finally:
            stop(child)


def is_engine(port: int) -> bool:
    """Say whether what listens on a port is the engine, ready for requests."""
    connection = HTTPConnection(LOOPBACK, port, timeout=1)
    try:
        connection.request("GET", "/")
        return (connection.getresponse().getheader("server") or "").startswith("Dynoxide")
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _start(database: Path, log: Path) -> tuple[Child, int]:
    program = find_engine()
    for _ in range(_ATTEMPTS):
        port = free_port()
        child = spawn(engine_command(program, port, database), log=log)
        if wait_until_ready(child, lambda: is_engine(port), timeout=_READY_SECONDS):  # noqa: B023  # called at once
            return child, port
        stop(child)
    raise LocalCloudError(f"The DynamoDB engine {program} does not start: {last_lines(log)}")
