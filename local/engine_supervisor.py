"""Keeps the engine running: whatever kills it, it is back at once on the same file and port."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from local.children import Child, last_lines, spawn, stop, wait_until_ready
from local.engine import engine_command, find_engine, is_engine
from local.errors import LocalCloudError

__all__ = ["EngineSupervisor"]

_READY_SECONDS = 30.0  # a big file that was not closed takes its time
_SHORT_LIFE = 2.0  # seconds
_PATIENCE = 5  # short lives in a row


class EngineSupervisor:
    """One engine after another, on one port and one file."""

    def __init__(self, port: int, database: Path, log: Path) -> None:
        """Take where the engine listens, keeps its tables and writes its log."""
        self._command = engine_command(find_engine(), port, database)
        self._port = port
        self._log = log
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        """The process of the engine that runs now."""
        if self._child is None:
            raise LocalCloudError("The engine was not started.")
        return self._child.pid

    async def start(self) -> None:
        """Start an engine and wait until it answers.

        Raises:
            LocalCloudError: It ends or stays silent.
        """
        child = self._child = spawn(self._command, log=self._log)
        if not await asyncio.to_thread(
            wait_until_ready, child, lambda: is_engine(self._port), timeout=_READY_SECONDS
        ):
            raise LocalCloudError(
                f"The DynamoDB engine does not start; {self._log} ends so:\n{last_lines(self._log)}"
            )

    async def keep(self, restarted: Callable[[], None]) -> None:
        """Start the engine anew whenever it ends; `restarted` is called once it answers again.

        Raises:
            LocalCloudError: It keeps ending right after its start.
        """
        short_lives = 0
        while self._child is not None:
            began = monotonic()
            await asyncio.to_thread(self._child.wait)
            short_lives = short_lives + 1 if monotonic() - began < _SHORT_LIFE else 0
            if short_lives >= _PATIENCE:
                raise LocalCloudError(
                    f"The DynamoDB engine keeps ending; {self._log} ends so:\n"
                    f"{last_lines(self._log)}"
                )
            await self.start()
            restarted()

    def stop(self) -> None:
        """End the engine for good."""
        if self._child is not None:
            stop(self._child)
            self._child = None
