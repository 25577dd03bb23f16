"""Child processes that never outlive their parent, whatever ends it."""

import errno
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

from local.errors import LocalCloudError

__all__ = [
    "LOOPBACK",
    "Child",
    "accepts",
    "free_port",
    "guarded",
    "last_lines",
    "spawn",
    "stop",
    "wait_until_ready",
]

LOOPBACK = "127.0.0.1"
_GUARD = Path(__file__).with_name("guard.py")
_LISTENING = range(20_000, 32_000)  # below the ports of outgoing connections, on Linux and macOS
_POLL = 0.01  # seconds
_MAX_LINE = 200  # characters of a log's line that a message shows

Child = subprocess.Popen[bytes]


def free_port() -> int:
    """Return a port of the loopback address that nothing listens on now.

    Not one of those that the system gives to outgoing connections: any of these may be taken before a child binds it.
    """
    while True:
        port = secrets.choice(_LISTENING)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port


def accepts(port: int) -> bool:
    """Say whether something accepts connections on a port of the loopback address."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def guarded(command: Sequence[str]) -> list[str]:
    """Return the command line that runs a command so that it dies with this process.

    Linux ties it to the calling *thread*: call from one that lives as long as the child should.
    """
    return [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), *command]


def spawn(
    command: Sequence[str],
    *,
    log: Path | None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Child:
    """Start a guarded command in a process group of its own.

    Its output is appended to `log`, or goes where this process's own goes.

    Raises:
        LocalCloudError: The program is not there or may not be run.
    """
    if not os.access(command[0], os.X_OK):
        raise LocalCloudError(f"{command[0]} is missing or not executable: run `make setup`.")
    with _output(log) as output:
        return subprocess.Popen(  # noqa: S603  # a list, no shell
            guarded(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=None if output is None else subprocess.STDOUT,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            process_group=0,
        )


def _output(log: Path | None) -> AbstractContextManager[BinaryIO | None]:
    if log is None:
        return nullcontext()
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("ab")


def stop(child: Child, *, patience: float = 5.0) -> None:
    """End a child and everything in its group: politely, after `patience` seconds by force."""
    _signal_group(child.pid, signal.SIGTERM)
    try:
        child.wait(timeout=patience)
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


def wait_until_ready(child: Child, ready: Callable[[], bool], *, timeout: float) -> bool:
    """Wait until `ready()`; False where the child ended or about `timeout` seconds passed before."""
    for _ in range(round(timeout / _POLL)):
        if ready():
            return child.poll() is None
        try:
            child.wait(timeout=_POLL)
        except subprocess.TimeoutExpired:
            continue
        return False
    return False


def last_lines(log: Path, count: int = 5) -> str:
    """Return the end of a log, for the message about a child that failed: lines that hold text, cut."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return "\n".join(_cut(line) for line in [line for line in lines if line.strip()][-count:])


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}…"
