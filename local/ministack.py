"""The emulated AWS, for all but DynamoDB's items: the MiniStack process, and a client of it."""

import asyncio
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web
from yarl import URL

from dynamoheat.serve import LOOPBACK, EndpointCall, Reply, forwarded_headers, refusal, relay
from local.children import Child, http_get, last_lines, spawn, stop, wait_until_ready
from local.clients import REGION
from local.errors import LocalCloudError
from toolchain.node import ROOT

__all__ = ["ACCOUNT", "MiniStack", "Passthrough"]

ACCOUNT = "000000000000"

_PYTHON = ROOT / ".local" / "ministack" / "bin" / "python"
_PROGRAM = ROOT / "local" / "cloudwatch" / "emulated.py"  # MiniStack with corrections
_START_SECONDS = 300.0  # only guards against hanging: a few are usual
_NAME = "The emulated AWS"
_ADDED_BY_CLIENT = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class MiniStack:
    """The MiniStack process. Its Python also runs the deployed functions."""

    def __init__(
        self, port: int, endpoint: str, scratch: Path, log: Path, *, time_scale: float = 1.0
    ) -> None:
        """Take where it listens, and the address that deployed functions use for AWS.

        `time_scale` divides the intervals of scheduled rules, like those of metrics.
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
            LocalCloudError: It ends or does not answer.
        """
        self._child = spawn(
            [str(_PYTHON), "-I", str(_PROGRAM)],
            log=self._log,
            env=self._environment,
            cwd=self._scratch,
        )
        if not await asyncio.to_thread(
            wait_until_ready, self._child, self._is_ready, timeout_seconds=_START_SECONDS
        ):
            raise self._failure("does not start")

    async def wait_for_end(self) -> None:
        """Wait until the process ends by itself, which loses the deployed stacks.

        Raises:
            LocalCloudError: It ended.
        """
        if self._child is not None:
            await asyncio.to_thread(self._child.wait)
            raise self._failure("ended by itself")

    def stop(self) -> None:
        """Stop it and the functions that it runs."""
        if self._child is not None:
            stop(self._child)

    def _is_ready(self) -> bool:
        response = http_get(self.port, "/_ministack/ready")
        return response is not None and response.status == 200

    def _failure(self, what: str) -> LocalCloudError:
        return LocalCloudError(
            f"{_NAME} (MiniStack) {what}. Its log is {self._log}.",
            log_lines=last_lines(self._log),
        )


def _environment(port: int, endpoint: str, scratch: Path) -> dict[str, str]:
    """Return an environment fit for deployed functions to inherit: the caller's PATH, no more."""
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


class Passthrough:
    """A client of MiniStack that relays requests unchanged, bodies as streams."""

    def __init__(self, port: int) -> None:
        """Take MiniStack's port. The client connects when entered."""
        self._origin = f"http://{LOOPBACK}:{port}"

    async def __aenter__(self) -> Self:
        self._session = ClientSession(
            auto_decompress=False,
            connector=TCPConnector(limit=0),
            cookie_jar=DummyCookieJar(),
            skip_auto_headers=_ADDED_BY_CLIENT,
            timeout=ClientTimeout(total=None),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def relay(self, request: web.BaseRequest, path: str | None = None) -> web.StreamResponse:
        """Answer a request with MiniStack's answer, under `path` instead of its own if given."""
        url = URL(self._origin + (path or request.raw_path), encoded=True)
        body = request.content if request.body_exists else None
        return await relay(request, self._session, url, body=body, upstream=_NAME)

    async def send(self, call: EndpointCall, path: str = "/") -> Reply:
        """Send a call that was read whole, and return the reply."""
        headers = forwarded_headers(call.headers)
        headers["Content-Length"] = str(len(call.body))
        url = URL(self._origin + path, encoded=True)
        try:
            async with self._session.post(url, data=call.body, headers=headers) as answer:
                kept = {"Content-Type": answer.headers.get("Content-Type", "")}
                return Reply(answer.status, await answer.read(), kept)
        except ClientError as error:
            return refusal(500, "InternalServerError", f"{_NAME} failed: {error}")
