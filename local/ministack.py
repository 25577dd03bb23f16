"""The emulated AWS: everything but DynamoDB's items."""

import asyncio
import os
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from local.children import LOOPBACK, Child, last_lines, spawn, stop, wait_until_ready
from local.clients import REGION
from local.errors import LocalCloudError
from local.state import ROOT

__all__ = ["ACCOUNT", "MiniStack"]

ACCOUNT = "000000000000"

_PROGRAM = ROOT / ".local" / "ministack" / "bin" / "python"
_CORRECTED = ROOT / "local" / "cloudwatch" / "emulated.py"
_READY_SECONDS = 300.0  # against hanging: it takes some


class MiniStack:
    """The process of the emulated AWS; its Python runs the deployed functions."""

    def __init__(
        self, port: int, endpoint: str, scratch: Path, log: Path, *, time_scale: float = 1.0
    ) -> None:
        """Listen on `port`; tell functions that AWS is at `endpoint`, so that DynamoDB is the engine.

        `time_scale` divides the times of scheduled rules, as it does those of metrics.
        """
        self.port = port
        self._environment = _environment(port, endpoint, scratch) | {
            "LOCAL_TIME_SCALE": str(time_scale)
        }
        self._scratch = scratch
        self._log = log
        self._child: Child | None = None

    async def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            LocalCloudError: It ends or stays silent.
        """
        self._child = spawn(
            [str(_PROGRAM), "-I", str(_CORRECTED)],
            log=self._log,
            env=self._environment,
            cwd=self._scratch,
        )
        if not await asyncio.to_thread(
            wait_until_ready, self._child, self._is_ready, timeout=_READY_SECONDS
        ):
            raise self._ended("does not start")

    async def watch(self) -> None:
        """Wait for its end, which is never wanted: the deployed stacks are gone with it.

        Raises:
            LocalCloudError: It ended.
        """
        if self._child is not None:
            await asyncio.to_thread(self._child.wait)
            raise self._ended("ended by itself")

    def stop(self) -> None:
        """End it and the functions it runs."""
        if self._child is not None:
            stop(self._child)

    def _is_ready(self) -> bool:
        connection = HTTPConnection(LOOPBACK, self.port, timeout=1)
        try:
            connection.request("GET", "/_ministack/ready")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def _ended(self, how: str) -> LocalCloudError:
        return LocalCloudError(
            f"The emulated AWS (MiniStack) {how}; {self._log} ends so:\n{last_lines(self._log)}"
        )


def _environment(port: int, endpoint: str, scratch: Path) -> dict[str, str]:
    """Return an environment that deployed functions can inherit: nothing of the caller's but PATH."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "LANG": "C.UTF-8",
        "LOG_LEVEL": "WARNING",  # so that its log ends with what went wrong
        "GATEWAY_PORT": str(port),
        "BIND_HOST": LOOPBACK,
        "AWS_ENDPOINT_URL": endpoint,
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
    }
