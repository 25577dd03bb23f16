"""Runs a local cloud: starts its parts, keeps them running, stops them, leaves nothing behind."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket

import boto3
from botocore.config import Config

from dynamoheat import Heat
from dynamoheat.serve.connection_pool import EngineConnectionPool
from dynamoheat.serve.descriptions import Description
from dynamoheat.serve.factory import make_faults, make_throttling, steady_clock
from dynamoheat.serve.options import HeatOptions
from dynamoheat.serve.tables import Describe
from local.calls import EndpointCall, admit_all
from local.children import LOOPBACK, free_port
from local.clients import client_settings
from local.cloudwatch.service import CloudWatch
from local.deploy import Deployment, deploy
from local.dynamodb import DynamoDB
from local.endpoint import Endpoint, bind, serving
from local.engine_supervisor import EngineSupervisor
from local.ministack import MiniStack
from local.passthrough import Passthrough
from local.progress import ProgressPrinter
from local.scratch import scratch_folder
from local.state import State, Status
from local.table_replicator import TableReplicator

__all__ = ["Options", "Ready", "supervise"]

Ready = Callable[[Status], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What can be chosen about a cloud."""

    port: int = 4566  # of the endpoint; 0 for any
    data: Path | None = None  # folder that keeps the tables on disk, else they live in memory
    deploys: bool = True
    context: tuple[str, ...] = ()  # `name=value` of the deployed app
    heat: HeatOptions = field(default_factory=HeatOptions)


async def supervise(
    options: Options, state: State, progress: ProgressPrinter, ready: Ready
) -> None:
    """Run a cloud until SIGINT, SIGTERM or SIGHUP; call `ready` once it can be used.

    Raises:
        LocalCloudError: Something it needs is missing, taken or broken. Nothing is left running.
    """
    running = asyncio.ensure_future(_run(options, state, progress, ready))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, _once(running.cancel))
    with suppress(asyncio.CancelledError):
        await running


async def _run(options: Options, state: State, progress: ProgressPrinter, ready: Ready) -> None:
    async with AsyncExitStack() as stack:
        stack.enter_context(state.held())
        scratch = stack.enter_context(scratch_folder())
        listener = stack.enter_context(bind(options.port))
        url = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        deployment = _deployment(options, url, state)
        if deployment is not None:  # its synthesis needs no cloud and runs from now on
            stack.callback(deployment.abandon)
        parts = _Parts(options, state, scratch, url)
        stack.callback(parts.stop)
        with progress.step("DynamoDB engine, emulated AWS"):
            await parts.start()
        endpoint = await stack.enter_async_context(_endpoint(options, parts, listener))

        def publish() -> None:
            api = f"{url}/api" if endpoint.api_id else None
            state.tell(Status(endpoint=url, api=api, engine_pid=parts.engine.pid))

        async def use() -> None:
            if deployment is not None:
                outputs = await deploy(deployment, progress)
                endpoint.api_id = outputs.find("ApiId")
            publish()
            ready(state.status() or Status(url, None, parts.engine.pid))
            await asyncio.Event().wait()

        await _first_failure(
            use(),
            parts.engine.keep(lambda: publish() if state.status() else None),
            parts.aws.watch(),
            endpoint.cloudwatch.run(),
        )


class _Parts:
    """The processes behind the endpoint."""

    def __init__(self, options: Options, state: State, scratch: Path, url: str) -> None:
        folder = options.data or scratch
        folder.mkdir(parents=True, exist_ok=True)
        logs = {name: state.logs / f"{name}.log" for name in ("engine", "ministack")}
        for old in logs.values():  # a restart adds to a log, a new cloud begins it
            old.unlink(missing_ok=True)
        self.engine_port = free_port()
        self.engine = EngineSupervisor(self.engine_port, folder / "engine.db", logs["engine"])
        scale = options.heat.time_scale
        self.aws = MiniStack(free_port(), url, scratch, logs["ministack"], time_scale=scale)

    async def start(self) -> None:
        await asyncio.gather(self.engine.start(), self.aws.start())

    def stop(self) -> None:
        self.engine.stop()
        self.aws.stop()


def _deployment(options: Options, url: str, state: State) -> Deployment | None:
    if not options.deploys:
        return None
    units, usual = options.heat.partition_wcu, HeatOptions().partition_wcu
    scaled = options.heat.enabled and units != usual
    told = (f"partition_wcu={units:.0f}",) if scaled else ()
    return Deployment(url, state, (*told, *options.context))


@asynccontextmanager
async def _endpoint(options: Options, parts: _Parts, listener: socket) -> AsyncGenerator[Endpoint]:
    link = EngineConnectionPool(LOOPBACK, parts.engine_port)
    mirror = _mirror(parts)
    if options.data is not None:
        await asyncio.to_thread(mirror.adopt)
    throttling = make_throttling(options.heat, _described_by(mirror), steady_clock())
    faults = make_faults(options.heat, throttling)
    async with Passthrough(parts.aws.port) as aws:
        cloudwatch = CloudWatch(
            throttling.heat if throttling else Heat(),
            scale=options.heat.time_scale,
            clock=throttling.clock if throttling else steady_clock(),
            declared=aws.send,
            templates=lambda: mirror.settings,
        )
        dynamodb = DynamoDB(
            engine=link.send,
            declared=cloudwatch.with_insights,
            mirror=mirror,
            admit=throttling.admit if throttling else admit_all,
            tables=throttling.tables if throttling else None,
        )
        endpoint = Endpoint(
            dynamodb=dynamodb,
            aws=aws,
            mirror=mirror,
            throttling=throttling,
            faults=faults,
            cloudwatch=cloudwatch,
        )
        dynamodb.tables_changed()
        async with serving(endpoint, listener):
            yield endpoint
    link.close()


def _mirror(parts: _Parts) -> TableReplicator:
    config = Config(proxies={}, retries={"mode": "standard", "total_max_attempts": 5})
    aws = client_settings(f"http://{LOOPBACK}:{parts.aws.port}")
    engine = client_settings(f"http://{LOOPBACK}:{parts.engine_port}")
    return TableReplicator(
        boto3.client("dynamodb", config=config, **aws),
        boto3.client("cloudformation", config=config, **aws),
        boto3.client("dynamodb", config=config, **engine),
    )


def _described_by(mirror: TableReplicator) -> Describe:
    async def describe(name: str, _: EndpointCall) -> Description | None:
        await asyncio.to_thread(mirror.ensure, name)
        return mirror.described.get(name)

    return describe


async def _first_failure(*jobs: Awaitable[None]) -> None:
    """Run jobs side by side until one fails, and fail like it."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()


def _once(action: Callable[[], object]) -> Callable[[], None]:
    """A second signal must not interrupt the stopping that the first one began."""
    left = [action]

    def act() -> None:
        if left:
            left.pop()()

    return act
