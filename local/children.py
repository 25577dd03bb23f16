"""Child processes that never outlive this process, however it ends."""

import errno
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO

from dynamoheat.serve import LOOPBACK
from local.errors import LocalCloudError

__all__ = [
    "Child",
    "free_port",
    "http_get",
    "last_lines",
    "spawn",
    "stop",
    "wait_until_ready",
]

_GUARD = Path(__file__).with_name("guard.py")
_PORTS = range(20_000, 32_000)  # below the ports of outgoing connections, on Linux and macOS
_POLL_SECONDS = 0.01
_PROBE_SECONDS = 1.0
_MAX_LOG_COLUMNS = 200

Child = subprocess.Popen[bytes]


def spawn(
    command: Sequence[str],
    *,
    log: Path | None = None,
    error_log: Path | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Child:
    """Start a command, in a process group of its own, that is killed when this process ends.

    Its output is appended to `log`; errors go to `error_log` where one is given. Without logs both
    go where this process's own output goes. Linux ties the command to the calling *thread*: call
    from one that lives as long as the command should.

    Raises:
        LocalCloudError: The program is missing or not executable.
    """
    if not os.access(command[0], os.X_OK):
        raise LocalCloudError(f"{command[0]} is missing or not executable: run `make setup`.")
    guarded = [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), *command]
    with _append(log) as output, _append(error_log or log) as errors:
        return subprocess.Popen(  # noqa: S603  # a list, no shell
            guarded,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            process_group=0,
        )


def _append(log: Path | None) -> AbstractContextManager[BinaryIO | None]:
    if log is None:
        return nullcontext()
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("ab")


def stop(child: Child, *, timeout_seconds: float = 5.0) -> None:
    """Terminate a child and its process group, and kill what is left after the timeout."""
    _signal_group(child.pid, signal.SIGTERM)
    try:
        child.wait(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        pass
    finally:
        _signal_group(child.pid, signal.SIGKILL)
        child.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
    except OSError as error:  # macOS says EPERM for a group of zombies
        if error.errno != errno.EPERM:
            raise


def wait_until_ready(child: Child, is_ready: Callable[[], bool], *, timeout_seconds: float) -> bool:
    """Wait until `is_ready()`. Return False if the child ends, or the time is up, before that."""
    for _ in range(round(timeout_seconds / _POLL_SECONDS)):
        if is_ready():
            return child.poll() is None
        try:
            child.wait(timeout=_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return False
    return False


def free_port() -> int:
    """Return a port of the loopback address on which nothing listens now.

    It is none of those that the system gives to outgoing connections, any of which may be taken
    before a child binds it.
    """
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port


def http_get(port: int, path: str) -> HTTPResponse | None:
    """Return the head of the response to a GET on the loopback address, None if there is none."""
    connection = HTTPConnection(LOOPBACK, port, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse()
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def last_lines(log: Path, count: int = 5) -> str:
    """Return the last lines of a log that hold text, long ones cut; empty without a log."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return "\n".join(_cut(line) for line in [line for line in lines if line.strip()][-count:])


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_LOG_COLUMNS else f"{line[:_MAX_LOG_COLUMNS]}…"
