"""The one address of the local cloud: DynamoDB and CloudWatch are answered, the rest is relayed."""

import asyncio
import logging
import re
from socket import socket

from aiohttp import web
from botocore.exceptions import BotoCoreError, ClientError

from dynamoheat.serve import (
    LOOPBACK,
    TARGET_PREFIX,
    EndpointCall,
    Faults,
    Throttling,
    UnansweredError,
    answer_page,
    bind_loopback,
    is_page,
    leave_unanswered,
    permit_body,
    refusal,
    to_response,
)
from local.cloudwatch.requests import is_cloudwatch, parse_request
from local.cloudwatch.service import CloudWatch
from local.dynamodb import DynamoDB
from local.errors import LocalCloudError
from local.ministack import Passthrough
from local.table_replicator import TableReplicator

__all__ = ["Endpoint", "bind_port"]

_log = logging.getLogger(__name__)
_API = "/api"  # prefix of the deployed HTTP API's paths
_CHANGES_STACKS = re.compile(
    rb"(?:^|&)Action=(?:CreateStack|UpdateStack|DeleteStack|ExecuteChangeSet|RollbackStack)\b"
)
_POLL_SECONDS = 0.2  # while a stack is changing


class Endpoint:
    """Routes requests, and keeps the engine's tables up to date while stacks change."""

    def __init__(  # noqa: PLR0913  # one place makes it, by keyword
        self,
        *,
        dynamodb: DynamoDB,
        aws: Passthrough,
        replicator: TableReplicator,
        throttling: Throttling | None,
        faults: Faults,
        cloudwatch: CloudWatch,
    ) -> None:
        """Take the parts behind the endpoint. Without `throttling`, nothing is throttled."""
        self.api_id: str | None = None
        self.cloudwatch = cloudwatch
        self._throttling = throttling
        self._faults = faults
        self._dynamodb = dynamodb
        self._aws = aws
        self._replicator = replicator
        self._changes = 0  # changes of stacks that were requested
        self._synced_changes = 0  # of these, the changes that the tables reflect
        self._syncing: asyncio.Task[None] | None = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        permit_body(request)
        target = request.headers.get("X-Amz-Target", "")
        if target.startswith(TARGET_PREFIX):
            return await self._answer_dynamodb(request, target.removeprefix(TARGET_PREFIX))
        if request.raw_path.startswith(_API + "/") and self.api_id is not None:
            return await self._aws.relay(request, self._api_path(request.raw_path))
        if is_page(request):
            return await answer_page(request, self._throttling, self._faults)
        if is_cloudwatch(request.raw_path, request.headers):
            return await self._answer_cloudwatch(request)
        if _is_cloudformation(request):
            return await self._relay_stacks(request)
        return await self._aws.relay(request)

    async def _answer_dynamodb(self, request: web.BaseRequest, operation: str) -> web.Response:
        call = EndpointCall(operation, await request.content.read(), request.headers)
        try:
            reply = await self._faults.answer(call, self._dynamodb.answer)
        except UnansweredError as error:
            return await leave_unanswered(request, error)
        except (BotoCoreError, ClientError) as error:
            reply = refusal(
                500, "InternalServerError", f"The table could not be created in the engine: {error}"
            )
        return to_response(reply)

    async def _answer_cloudwatch(self, request: web.BaseRequest) -> web.Response:
        body = await request.content.read()
        parsed = parse_request(request.raw_path, request.headers, body)
        reply = await self.cloudwatch.answer(parsed)
        if reply is None:
            reply = await self._aws.send(EndpointCall("", body, request.headers), request.raw_path)
        return to_response(reply)

    def _api_path(self, raw_path: str) -> str:
        return f"/restapis/{self.api_id}/$default/_user_request_{raw_path.removeprefix(_API)}"

    async def _relay_stacks(self, request: web.BaseRequest) -> web.Response:
        """Relay a call to CloudFormation. Tables are ready before an answer calls a stack done."""
        body = await request.content.read()
        reply = await self._aws.send(EndpointCall("", body, request.headers), request.raw_path)
        if _CHANGES_STACKS.search(body):
            self._changes += 1
            if self._syncing is None or self._syncing.done():
                self._syncing = asyncio.create_task(self._sync_until_settled())
        if self._synced_changes < self._changes:
            await self._sync()
        return to_response(reply)

    async def _sync_until_settled(self) -> None:
        """Update the tables until no stack is changing any more."""
        while self._synced_changes < self._changes:
            await asyncio.sleep(_POLL_SECONDS)
            await self._sync()

    async def _sync(self) -> None:
        changes = self._changes
        try:
            if await asyncio.to_thread(self._replicator.sync):
                self._synced_changes = max(self._synced_changes, changes)
            self._dynamodb.update_model()
        except (BotoCoreError, ClientError):
            _log.exception("the engine's tables could not be brought up to date")


def _is_cloudformation(request: web.BaseRequest) -> bool:
    signed_for = request.headers.get("Authorization", "")
    return request.method == "POST" and "/cloudformation/" in signed_for


def bind_port(port: int) -> socket:
    """Listen on a port of the loopback address, 0 for any.

    Raises:
        LocalCloudError: The port is taken, may not be used, or does not exist.
    """
    try:
        return bind_loopback(port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LocalCloudError(
            f"Port {port} of {LOOPBACK} is not free ({reason}). `make down` stops the local"
            " cloud of this folder; `make up PORT=4567` uses another port."
        ) from error
