"""The one address of the local cloud: DynamoDB here, all else on to the emulated AWS."""

import asyncio
import logging
import re
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aiohttp import web
from botocore.exceptions import BotoCoreError, ClientError

from dynamoheat.serve.faults import Faults
from dynamoheat.serve.pages import answer_page, is_page, leave_unanswered, responded
from dynamoheat.serve.throttling import Throttling
from dynamoheat.serve.wire import UnansweredError
from local.calls import EndpointCall, refusal
from local.children import LOOPBACK
from local.cloudwatch.protocols import is_cloudwatch, read
from local.cloudwatch.service import CloudWatch
from local.dynamodb import DynamoDB
from local.errors import LocalCloudError
from local.passthrough import Passthrough
from local.table_replicator import TableReplicator

__all__ = ["Endpoint", "bind", "serving"]

_log = logging.getLogger(__name__)
_TARGET = "DynamoDB_20120810."
_API = "/api"  # in front of the deployed HTTP API's paths
_STACKS_CHANGE = re.compile(
    rb"(?:^|&)Action=(?:CreateStack|UpdateStack|DeleteStack|ExecuteChangeSet|RollbackStack)\b"
)
_PAUSE = 0.2  # seconds between looks at a stack that is changing


class Endpoint:
    """Routes requests; keeps the engine's tables up to date while stacks change."""

    def __init__(  # noqa: PLR0913  # one place makes it, by keyword
        self,
        *,
        dynamodb: DynamoDB,
        aws: Passthrough,
        mirror: TableReplicator,
        throttling: Throttling | None,
        faults: Faults,
        cloudwatch: CloudWatch,
    ) -> None:
        """Take the parts behind the endpoint."""
        self.api_id: str | None = None
        self.cloudwatch = cloudwatch
        self._throttling = throttling
        self._faults = faults
        self._dynamodb = dynamodb
        self._aws = aws
        self._mirror = mirror
        self._changes = 0  # of stacks, that passed through
        self._settled = 0  # of them, those after which the tables were found right
        self._settling: asyncio.Task[None] | None = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        target = request.headers.get("X-Amz-Target", "")
        if target.startswith(_TARGET):
            return await self._answer(request, target.removeprefix(_TARGET))
        if request.raw_path.startswith(_API + "/") and self.api_id is not None:
            return await self._aws.relay(request, self._api_path(request.raw_path))
        if is_page(request):
            return await answer_page(request, self._throttling, self._faults)
        if is_cloudwatch(request.raw_path, request.headers):
            return await self._answer_metrics(request)
        if _to_cloudformation(request):
            return await self._relay_stacks(request)
        return await self._aws.relay(request)

    async def _answer(self, request: web.BaseRequest, operation: str) -> web.Response:
        call = EndpointCall(operation, await request.content.read(), request.headers)
        try:
            reply = await self._faults.answer(call, self._dynamodb.answer)
        except UnansweredError as how:
            return await leave_unanswered(request, how)
        except (BotoCoreError, ClientError) as error:
            reply = refusal(500, "InternalServerError", f"The table could not be mirrored: {error}")
        return responded(reply)

    async def _answer_metrics(self, request: web.BaseRequest) -> web.Response:
        body = await request.content.read()
        asked = read(request.raw_path, request.headers, body)
        reply = await self.cloudwatch.answer(asked)
        if reply is None:
            reply = await self._aws.send(EndpointCall("", body, request.headers), request.raw_path)
        return responded(reply)

    def _api_path(self, raw_path: str) -> str:
        return f"/restapis/{self.api_id}/$default/_user_request_{raw_path.removeprefix(_API)}"

    async def _relay_stacks(self, request: web.BaseRequest) -> web.Response:
        """Pass CloudFormation's calls on; whoever is told of a finished stack finds its tables."""
        body = await request.content.read()
        reply = await self._aws.send(EndpointCall("", body, request.headers), request.raw_path)
        if _STACKS_CHANGE.search(body):
            self._changes += 1
            if self._settling is None or self._settling.done():
                self._settling = asyncio.create_task(self._settle())
        if self._settled < self._changes:
            await self._sync()
        return responded(reply)

    async def _settle(self) -> None:
        """Follow stacks that change while nobody asks about them."""
        while self._settled < self._changes:
            await asyncio.sleep(_PAUSE)
            await self._sync()

    async def _sync(self) -> None:
        changes = self._changes
        try:
            if await asyncio.to_thread(self._mirror.sync):
                self._settled = max(self._settled, changes)
            self._dynamodb.tables_changed()
        except (BotoCoreError, ClientError):
            _log.exception("the engine's tables could not be brought up to date")


def _to_cloudformation(request: web.BaseRequest) -> bool:
    signed_for = request.headers.get("Authorization", "")
    return request.method == "POST" and "/cloudformation/" in signed_for


def bind(port: int) -> socket.socket:
    """Take a port of the loopback address, 0 for any.

    Raises:
        LocalCloudError: It is taken.
    """
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise LocalCloudError(
            f"Port {port} of {LOOPBACK} is not free ({error.strerror}): `make down` stops a local"
            " cloud of this folder, `make up PORT=4567` takes another port."
        ) from error
    return listener


@asynccontextmanager
async def serving(endpoint: Endpoint, listener: socket.socket) -> AsyncGenerator[None]:
    """Serve requests on a bound socket until the block ends."""
    # Bodies go on as they came, so nothing here unpacks them.
    server = web.Server(endpoint.handle, access_log=None, auto_decompress=False)
    runner = web.ServerRunner(server, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield
    finally:
        await runner.cleanup()
