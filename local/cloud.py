"""Local clouds for programs: start one, use it, stop it."""

import os
import shutil
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

_POLL_SECONDS = 0.05
_START_SECONDS = 1_200.0  # only guards against hanging: ten are usual
_STOP_SECONDS = 60.0  # a few are usual
_MAX_CAUSE_LINES = 40


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
        """The process of the current engine, another one after a restart."""
        status = self.state.status()
        if status is None:
            raise LocalCloudError("The cloud has stopped.")
        return status.engine_pid

    @property
    def outputs(self) -> Mapping[str, Mapping[str, str]]:
        """The outputs of the deployed stacks, by stack and name."""
        return Outputs.read(self.state.outputs).values

    def client_settings(self) -> ClientSettings:
        """Return the keyword arguments of a boto3 client that talks to this cloud."""
        return client_settings(self.endpoint_url)

    def check(self) -> None:
        """Check that the cloud still runs.

        Raises:
            LocalCloudError: It has ended. The message says why.
        """
        if self.state.pid() is None:
            raise _failure("has ended", self.state)


@contextmanager
def running(  # noqa: PLR0913  # options, by keyword
    *,
    deploys: bool = True,
    data: Path | None = None,
    quiet: bool = True,
    heat: HeatOptions | None = None,
    context: Mapping[str, str] | None = None,
    keep_logs: Path | None = None,
) -> Generator[Cloud]:
    """Run a cloud on free ports until the block ends.

    It takes about ten seconds with the stacks, about one without (`deploys=False`). The cloud is a
    process of its own that dies with this one. Enter the block on a thread that lives as long as
    the cloud should.

    Args:
        deploys: whether to deploy the stacks.
        data: the folder of the tables; without one, they live in memory.
        quiet: whether to leave out the cloud's progress on this process's output.
        heat: the limits at which it throttles; DynamoDB's own by default.
        context: settings of the stacks (stacks/overrides.py).
        keep_logs: a folder to copy the logs to if the start or the block fails.

    Raises:
        LocalCloudError: The cloud does not start. The message says why.
    """
    with TemporaryDirectory(prefix="spillway-cloud-") as folder:
        state = State(Path(folder).resolve())
        command = _command(state, deploys=deploys, data=data, context=context or {})
        command += heat.to_arguments() if heat else []
        child = spawn(
            command,
            log=state.logs / "up.log" if quiet else None,
            error_log=_errors(state),
            cwd=ROOT,
        )
        try:
            status = _wait_until_ready(child, state)
            yield Cloud(status.endpoint, status.api or "", child.pid, state)
        except Exception as error:
            if keep_logs is None:
                raise
            shutil.copytree(state.logs, keep_logs, dirs_exist_ok=True)
            if isinstance(error, LocalCloudError):  # it names logs that will be gone
                message = str(error).replace(str(state.logs), str(keep_logs))
                raise LocalCloudError(message) from error
            raise
        finally:
            stop(child, timeout_seconds=_STOP_SECONDS)


def stop_cloud(state: State) -> bool:
    """Stop the cloud of a folder and wait until it has ended. Return False if none runs.

    Raises:
        LocalCloudError: It does not stop.
    """
    pid = state.pid()
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    for _ in range(round(_STOP_SECONDS / _POLL_SECONDS)):
        if state.pid() != pid:
            return True
        Event().wait(_POLL_SECONDS)
    raise LocalCloudError(
        f"The local cloud (process {pid}) does not stop: `kill -9 {pid}` ends it."
    )


def _command(
    state: State, *, deploys: bool, data: Path | None, context: Mapping[str, str]
) -> list[str]:
    command = [sys.executable, "-m", "local", "up", "--port", "0", "--state", str(state.folder)]
    command += ["--brief"]  # people who start a cloud by hand are told how to use it
    command += [] if deploys else ["--no-deploy"]
    command += [f"--context={name}={value}" for name, value in context.items()]
    return command + ([] if data is None else ["--data", str(data.resolve())])


def _wait_until_ready(child: Child, state: State) -> Status:
    for _ in range(round(_START_SECONDS / _POLL_SECONDS)):
        status = state.status()
        if status is not None:
            return status
        try:
            child.wait(timeout=_POLL_SECONDS)
        except TimeoutExpired:
            continue
        raise _failure("does not start", state)
    raise _failure(f"does not start within {_START_SECONDS:.0f} seconds", state)


def _errors(state: State) -> Path:
    return state.logs / "errors.log"


def _failure(what: str, state: State) -> LocalCloudError:
    cause = last_lines(_errors(state), _MAX_CAUSE_LINES).removeprefix("local cloud: ")
    return LocalCloudError(f"The local cloud {what}" + (f": {cause}" if cause else "."))
