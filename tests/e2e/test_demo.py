"""The main job as a user starts it: its last words, its exit code, and that it leaves nothing behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Event

import pytest

from local.state import ROOT
from tests.local.processes import descendants, gone

pytestmark = [pytest.mark.cloud, pytest.mark.xdist_group("deployed")]

# Against hanging: the demo takes a minute, on a machine of two busy cores four.
MAX_SECONDS = 1_200.0
POLL = 0.05  # seconds


@contextmanager
def demo(flights: str) -> Generator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "local.demo"], cwd=ROOT, env={**os.environ, "FLIGHTS": flights},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for the demo's end and return what it printed; fails with its last words if it hangs."""
    try:
        return process.communicate(timeout=MAX_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
    pytest.fail(f"the demo hangs after:\n{_end(output)}\n{_end(errors)}", pytrace=False)


def _end(text: str) -> str:
    return "\n".join(text.splitlines()[-5:])


def test_the_demo_ends_with_all_flights_verified() -> None:
    with demo("300") as process:
        output, errors = finish(process)
    assert (process.returncode, _end(errors)) == (0, "")
    assert output.splitlines()[-1] == "verified: 300 of 300"
    for words in ("order=asc", "order=desc", "sharding_key=", "(index shards)", "events/s", "p99"):
        assert words in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_interrupted_stops_everything(number: signal.Signals) -> None:
    with demo("1000") as process:
        started: set[int] = set()
        for _ in range(round(MAX_SECONDS / POLL)):
            # The cloud, its engine, the emulated AWS, a command of the CDK.
            started = descendants(process.pid)
            if process.poll() is not None or len(started) >= 4:
                break
            Event().wait(POLL)
        process.send_signal(number)
        _, errors = finish(process)
    assert len(started) >= 4
    assert process.returncode == 130
    assert errors.startswith("demo: interrupted")
    assert gone(started)


@pytest.mark.parametrize("flights", ["many", "0", "3000001"])
def test_a_wrong_number_of_flights_is_refused_at_once(flights: str) -> None:
    with demo(flights) as process:
        output, errors = finish(process)
    assert (process.returncode, output) == (1, "")
    assert errors.startswith("demo: FLIGHTS: ")
    assert "Traceback" not in errors
