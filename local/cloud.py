"""Local clouds for programs: start one beside others, use it, stop it."""

import os
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory
from threading import Event

from dynamoheat.serve.options import HeatOptions
from local.children import Child, last_lines, spawn, stop
from local.clients import REGION, ClientSettings, client_settings
from local.deploy import Outputs
from local.errors import LocalCloudError
from local.state import ROOT, State, Status

__all__ = ["Cloud", "running", "stop_cloud"]

_POLL = 0.05  # seconds
_START_SECONDS = 1_200.0  # against hanging: it takes some ten, on a busy machine minutes
_STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Cloud:
    """A running cloud. `api_url` is empty where nothing was deployed."""

    endpoint_url: str
    api_url: str
    pid: int
    state: State
    region: str = REGION

    @property
    def engine_pid(self) -> int:
        """The process of the engine that runs now; another one after a restart."""
        status = self.state.status()
        if status is None:
            raise LocalCloudError("The cloud has stopped.")
        return status.engine_pid

    @property
    def outputs(self) -> Mapping[str, Mapping[str, str]]:
        """What the deployed stacks put out, by stack and name."""
        return Outputs.read(self.state.outputs).values

    def client_settings(self) -> ClientSettings:
        """Return the keyword arguments of a boto3 client that talks to this cloud."""
        return client_settings(self.endpoint_url)


@contextmanager
def running(
    *,
    deploys: bool = True,
    data: Path | None = None,
    quiet: bool = True,
    heat: HeatOptions | None = None,
    context: Mapping[str, str] | None = None,
) -> Generator[Cloud]:
    """Run a cloud of its own on free ports until the block ends.

    It takes about ten seconds to deploy the stacks, about one without (`deploys=False`). The tables
    live in memory, or in the folder `data`. It throttles at DynamoDB's own limits, unless `heat` says
    others, or not at all. `context` changes settings of the stacks (stacks/overrides.py). The cloud is a process of its own that dies with this one;
    enter on a thread that lives as long as the cloud should. Unless `quiet`, its progress is printed.

    Raises:
        LocalCloudError: It does not start; the message says why.
    """
    with TemporaryDirectory(prefix="spillway-cloud-") as folder:
        state = State(Path(folder).resolve())
        log = state.logs / "up.log"
        command = _command(state, deploys=deploys, data=data, context=context or {})
        command += heat.to_arguments() if heat else []
        child = spawn(command, log=log if quiet else None, cwd=ROOT)
        try:
            status = _wait(child, state, log)
            yield Cloud(status.endpoint, status.api or "", child.pid, state)
        finally:
            stop(child, patience=_STOP_SECONDS)


def stop_cloud(state: State) -> bool:
    """Stop the cloud of a folder and wait until it is gone; False where none runs.

    Raises:
        LocalCloudError: It does not stop.
    """
    pid = state.pid()
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    for _ in range(round(_STOP_SECONDS / _POLL)):
        if state.pid() != pid:
            return True
        Event().wait(_POLL)
    raise LocalCloudError(
        f"The local cloud (process {pid}) does not stop: `kill -9 {pid}` ends it."
    )


def _command(
    state: State, *, deploys: bool, data: Path | None, context: Mapping[str, str]
) -> list[str]:
    command = [sys.executable, "-m", "local", "up", "--port", "0", "--state", str(state.folder)]
    command += ["--brief"]  # how to use it is for those who started it by hand
    command += [] if deploys else ["--no-deploy"]
    command += [f"--context={name}={value}" for name, value in context.items()]
    return command + ([] if data is None else ["--data", str(data.resolve())])


def _wait(child: Child, state: State, log: Path) -> Status:
    for _ in range(round(_START_SECONDS / _POLL)):
        status = state.status()
        if status is not None:
            return status
        try:
            child.wait(timeout=_POLL)
        except TimeoutExpired:
            continue
        break
    raise LocalCloudError(f"The local cloud does not start: {last_lines(log, 20)}")
