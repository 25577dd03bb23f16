"""The DynamoDB engine, dynoxide: where it is found, how it starts, and how it is kept running."""

import asyncio
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from dynamoheat.serve import LOOPBACK
from local.children import (
    Child,
    free_port,
    http_get,
    last_lines,
    spawn,
    stop,
    wait_until_ready,
)
from local.clients import ClientSettings, client_settings
from local.errors import LocalCloudError
from local.scratch import scratch_folder
from toolchain.node import ROOT

__all__ = ["EngineProcess", "EngineSupervisor", "running_engine"]

_PACKAGED = ROOT / "node_modules" / "@dynoxide" / "linux-x64" / "dynoxide"
_START_SECONDS = 60.0  # 0.2 are usual; a big file that was not closed takes longer
_MAX_STARTS = 3  # another process may take a free port before the engine does
_SHORT_LIFE_SECONDS = 2.0
_MAX_SHORT_LIVES = 5  # in a row


@dataclass(frozen=True, slots=True)
class EngineProcess:
    """A running engine."""

    url: str
    pid: int

    def client_settings(self) -> ClientSettings:
        """Return the keyword arguments of a boto3 client that talks to this engine."""
        return client_settings(self.url)


@contextmanager
def running_engine(database: Path | None = None) -> Generator[EngineProcess]:
    """Run an engine by itself on a free port, without the endpoint, until the block ends.

    Tables live in the file `database`, by default in a file in memory that is removed afterwards:
    as durable against `kill -9` as a file on disk, and faster. It is ready in about 0.2 s. Enter
    the block on a thread that lives as long as the engine should.

    Raises:
        LocalCloudError: The engine is missing or does not start.
    """
    with scratch_folder() as folder:
        child, port = _start_anywhere(database or folder / "engine.db", folder / "engine.log")
        try:
            yield EngineProcess(url=f"http://{LOOPBACK}:{port}", pid=child.pid)
        finally:
            stop(child)


class EngineSupervisor:
    """Keeps an engine running on one port and one file, however often it is killed."""

    def __init__(self, port: int, database: Path, log: Path) -> None:
        """Take the port, the file of the tables, and the log.

        Raises:
            LocalCloudError: The engine is missing.
        """
        self._command = _engine_command(port, database)
        self._port = port
        self._log = log
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        """The process of the current engine."""
        if self._child is None:
            raise LocalCloudError("The engine was not started.")
        return self._child.pid

    async def start(self) -> None:
        """Start an engine and wait until it answers.

        Raises:
            LocalCloudError: It ends or does not answer.
        """
        child = self._child = spawn(self._command, log=self._log)
        if not await asyncio.to_thread(_wait_for_engine, child, self._port):
            raise self._failure("does not start")

    async def restart_forever(self, on_restart: Callable[[], None]) -> None:
        """Start the engine anew whenever it ends. Call `on_restart` once it answers again.

        Raises:
            LocalCloudError: It repeatedly ends right after its start.
        """
        short_lives = 0
        while self._child is not None:
            began = monotonic()
            await asyncio.to_thread(self._child.wait)
            is_short = monotonic() - began < _SHORT_LIFE_SECONDS
            short_lives = short_lives + 1 if is_short else 0
            if short_lives >= _MAX_SHORT_LIVES:
                raise self._failure("ends right after each start")
            await self.start()
            on_restart()

    def stop(self) -> None:
        """Stop the engine for good."""
        if self._child is not None:
            stop(self._child)
            self._child = None

    def _failure(self, what: str) -> LocalCloudError:
        return LocalCloudError(
            f"The DynamoDB engine {what}. Its log is {self._log}.", log_lines=last_lines(self._log)
        )


def _start_anywhere(database: Path, log: Path) -> tuple[Child, int]:
    for _ in range(_MAX_STARTS):
        port = free_port()
        child = spawn(_engine_command(port, database), log=log)
        if _wait_for_engine(child, port):
            return child, port
        stop(child)
    raise LocalCloudError("The DynamoDB engine does not start.", log_lines=last_lines(log))


def _engine_command(port: int, database: Path) -> list[str]:
    program = str(_find_engine())
    return [program, "--host", LOOPBACK, "--port", str(port), "--db-path", str(database)]


def _find_engine() -> Path:
    """Return the engine's program: the npm package's, else the one on PATH."""
    if _PACKAGED.exists():
        return _PACKAGED
    on_path = shutil.which("dynoxide")
    if on_path is None:
        raise LocalCloudError(
            "The DynamoDB engine `dynoxide` is neither in node_modules nor on PATH. Run"
            " `make setup`; its npm package is for Linux on x64, elsewhere install it yourself."
        )
    return Path(on_path)


def _wait_for_engine(child: Child, port: int) -> bool:
    return wait_until_ready(child, lambda: _is_engine(port), timeout_seconds=_START_SECONDS)


def _is_engine(port: int) -> bool:
    response = http_get(port, "/")
    server = None if response is None else response.getheader("server")
    return (server or "").startswith("Dynoxide")
