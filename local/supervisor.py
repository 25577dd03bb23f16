"""Run a local cloud: start its parts, keep them running, stop them, leave nothing behind."""

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
from dynamoheat.serve import (
    LOOPBACK,
    Describe,
    Description,
    EndpointCall,
    EngineConnectionPool,
    HeatOptions,
    make_faults,
    make_throttling,
    serve_requests,
    steady_clock,
)
from local.children import free_port
from local.clients import client_settings
from local.cloudwatch.service import CloudWatch
from local.deploy import Deployment, deploy
from local.dynamodb import DynamoDB, admit_all
from local.endpoint import Endpoint, bind_port
from local.engine import EngineSupervisor
from local.ministack import MiniStack, Passthrough
from local.progress import ProgressPrinter
from local.scratch import scratch_folder
from local.state import State, Status
from local.table_replicator import TableReplicator

__all__ = ["CloudOptions", "OnReady", "supervise"]

OnReady = Callable[[Status], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudOptions:
    """The choices about a cloud."""

    port: int = 4566  # of the endpoint; 0 for any
    data: Path | None = None  # folder that keeps the tables on disk; None: in memory
    deploys: bool = True
    context: tuple[str, ...] = ()  # `name=value` for the deployed app
    heat: HeatOptions = field(default_factory=HeatOptions)


async def supervise(
    options: CloudOptions, state: State, progress: ProgressPrinter, on_ready: OnReady
) -> None:
    """Run a cloud until SIGINT, SIGTERM or SIGHUP. Call `on_ready` once it can be used.

    Raises:
        LocalCloudError: A part is missing, taken or broken. Nothing is left running.
    """
    running = asyncio.ensure_future(_run(options, state, progress, on_ready))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, _once(running.cancel))
    with suppress(asyncio.CancelledError):
        await running


async def _run(
    options: CloudOptions, state: State, progress: ProgressPrinter, on_ready: OnReady
) -> None:
    async with AsyncExitStack() as stack:
        stack.enter_context(state.lock())
        scratch = stack.enter_context(scratch_folder())
        listener = stack.enter_context(bind_port(options.port))
        url = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
        deployment = _start_deployment(options, url, state)
        if deployment is not None:  # its synthesis needs no cloud and runs from now on
            stack.callback(deployment.cancel)
        parts = _Parts(options, state, scratch, url)
        stack.callback(parts.stop)
        with progress.step("Start the DynamoDB engine and the emulated AWS"):
            await parts.start()
        endpoint = await stack.enter_async_context(_serve(options, parts, listener))

        def publish() -> None:
            api = f"{url}/api" if endpoint.api_id else None
            state.publish(Status(endpoint=url, api=api, engine_pid=parts.engine.pid))

        async def deploy_and_wait() -> None:
            if deployment is not None:
                outputs = await deploy(deployment, progress)
                endpoint.api_id = outputs.find("ApiId")
            publish()
            on_ready(state.status() or Status(url, None, parts.engine.pid))
            await asyncio.Event().wait()

        await _run_until_failure(
            deploy_and_wait(),
            parts.engine.restart_forever(lambda: publish() if state.status() else None),
            parts.ministack.wait_for_end(),
            endpoint.cloudwatch.run(),
        )


class _Parts:
    """The processes behind the endpoint."""

    def __init__(self, options: CloudOptions, state: State, scratch: Path, url: str) -> None:
        folder = options.data or scratch
        folder.mkdir(parents=True, exist_ok=True)
        logs = {name: state.logs / f"{name}.log" for name in ("engine", "ministack")}
        for log in logs.values():  # a restart appends to a log, a new cloud begins it
            log.unlink(missing_ok=True)
        self.engine_port = free_port()
        self.engine = EngineSupervisor(self.engine_port, folder / "engine.db", logs["engine"])
        scale = options.heat.time_scale
        self.ministack = MiniStack(free_port(), url, scratch, logs["ministack"], time_scale=scale)

    async def start(self) -> None:
        await asyncio.gather(self.engine.start(), self.ministack.start())

    def stop(self) -> None:
        self.engine.stop()
        self.ministack.stop()


def _start_deployment(options: CloudOptions, url: str, state: State) -> Deployment | None:
    if not options.deploys:
        return None
    units, default = options.heat.partition_wcu, HeatOptions().partition_wcu
    is_changed = options.heat.enabled and units != default
    partitions = (f"partition_wcu={units:.0f}",) if is_changed else ()
    return Deployment(url, state, (*partitions, *options.context))


@asynccontextmanager
async def _serve(
    options: CloudOptions, parts: _Parts, listener: socket
) -> AsyncGenerator[Endpoint]:
    pool = EngineConnectionPool(LOOPBACK, parts.engine_port)
    replicator = _make_replicator(parts)
    if options.data is not None:
        await asyncio.to_thread(replicator.declare_tables_on_disk)
    throttling = make_throttling(options.heat, _describer(replicator), steady_clock())
    async with Passthrough(parts.ministack.port) as ministack:
        cloudwatch = CloudWatch(
            throttling.heat if throttling else Heat(),
            scale=options.heat.time_scale,
            clock=throttling.clock if throttling else steady_clock(),
            declared=ministack.send,
            templates=lambda: replicator.settings,
        )
        dynamodb = DynamoDB(
            engine=pool.send,
            declared=cloudwatch.with_insights,
            replicator=replicator,
            admit=throttling.admit if throttling else admit_all,
            tables=throttling.tables if throttling else None,
        )
        endpoint = Endpoint(
            dynamodb=dynamodb,
            aws=ministack,
            replicator=replicator,
            throttling=throttling,
            faults=make_faults(options.heat, throttling),
            cloudwatch=cloudwatch,
        )
        dynamodb.update_model()
        async with serve_requests(endpoint.handle, listener):
            yield endpoint
    pool.close()


def _make_replicator(parts: _Parts) -> TableReplicator:
    config = Config(proxies={}, retries={"mode": "standard", "total_max_attempts": 5})
    ministack = client_settings(f"http://{LOOPBACK}:{parts.ministack.port}")
    engine = client_settings(f"http://{LOOPBACK}:{parts.engine_port}")
    return TableReplicator(
        boto3.client("dynamodb", config=config, **ministack),
        boto3.client("cloudformation", config=config, **ministack),
        boto3.client("dynamodb", config=config, **engine),
    )


def _describer(replicator: TableReplicator) -> Describe:
    async def describe(name: str, _: EndpointCall) -> Description | None:
        await asyncio.to_thread(replicator.ensure, name)
        return replicator.descriptions.get(name)

    return describe


async def _run_until_failure(*jobs: Awaitable[None]) -> None:
    """Run jobs concurrently until one fails, and raise its error."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()


def _once(action: Callable[[], object]) -> Callable[[], None]:
    """Return a function that acts once, so that a second signal does not interrupt the stop."""
    pending = [action]

    def act() -> None:
        if pending:
            pending.pop()()

    return act
