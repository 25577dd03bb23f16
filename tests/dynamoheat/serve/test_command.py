"""`python -m dynamoheat serve` starts, shows its state, stops, and reports errors in a sentence."""

import argparse
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import orjson
import pytest

from dynamoheat.__main__ import main
from dynamoheat.serve import LOOPBACK
from dynamoheat.serve.options import HeatOptions, OptionError, add_arguments
from local.children import free_port
from local.engine import EngineProcess
from local.state import ROOT
from tests.dynamoheat.serve.serving import Endpoint, make_table, puts, refusal_of

Failure = Callable[..., tuple[int, str]]


@contextmanager
def command(*options: str) -> Generator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "dynamoheat", "serve", *options]
    with subprocess.Popen(  # noqa: S603
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def failure(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run the command in this process, which it leaves at once when it can't start."""

    def run(*options: str) -> tuple[int, str]:
        code = main(["serve", *options])
        output, errors = capsys.readouterr()
        assert output == ""
        return code, errors

    return run


@pytest.mark.engine
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_throttles_in_front_of_an_engine_until_ctrl_c(
    engine: EngineProcess, number: signal.Signals
) -> None:
    limits = ("--partition-wcu", "3", "--parameter", "on_demand_partitions=1")
    with command("--engine", engine.url, "--port", "0", *limits) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0]
        served = Endpoint(url, engine.url)
        table = make_table(served.client())
        passed, error = refusal_of(puts(served.client(), table, key="hot"))
        assert passed >= 3
        assert error["Error"]["Code"] == "ThrottlingException"
        process.send_signal(number)
        _, errors = process.communicate(timeout=200)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.engine
def test_a_taken_port_is_told_in_a_sentence(engine: EngineProcess, failure: Failure) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, errors = failure("--engine", engine.url, "--port", port)
    assert code == 1
    assert (
        errors == f"dynamoheat: Port {port} of {LOOPBACK} can't be used (it is taken):"
        " try another --port.\n"
    )


def test_an_engine_that_does_not_answer_is_told_in_a_sentence(failure: Failure) -> None:
    url = f"http://{LOOPBACK}:{free_port()}"
    code, errors = failure("--engine", url, "--port", "0")
    assert code == 1
    assert (
        errors
        == f"dynamoheat: No engine answers at {url}: start it, or name another with --engine.\n"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine", "8000"], "is no address of an engine"),
        (["--engine", "ftp://x"], "is no address of an engine"),
        (["--engine", "http://[::1"], "is no address of an engine"),
        (["--engine", "http://127.0.0.1:99999"], "is no address of an engine"),
        (["--port", "70000"], "can't be used"),
        (["--fault", "PutItem:500"], "is not OPERATION:KIND:PROBABILITY"),
        (["--parameter", "nonsense=1"], "with one of these names"),
        (["--parameter", "split_threshold=x"], "is no value of split_threshold"),
        (["--partition-wcu", "0"], "must be above zero"),
        (["--time-scale", "inf"], "must be a finite number"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_sentence(
    failure: Failure, options: list[str], words: str
) -> None:
    code, errors = failure(*options)
    assert code == 1
    assert errors.startswith("dynamoheat: ")
    assert errors.count("\n") == 1
    assert words in errors


def test_options_survive_the_way_through_a_command_line() -> None:
    options = HeatOptions(
        enabled=False,
        partition_wcu=5.5,
        partition_rcu=7,
        time_scale=60,
        seed=3,
        faults=("*:500:0.1", "PutItem:throttle:1"),
        parameters=("index_buffer_seconds=2", "on_demand_partitions=1"),
    )
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    given = parser.parse_args(options.to_arguments())
    assert HeatOptions.from_arguments(given) == options
    assert options.to_parameters().on_demand_partitions == 1
    assert options.to_parameters().partition_wcu == 5.5


def test_a_program_gets_the_same_errors() -> None:
    with pytest.raises(OptionError, match="no operation"):
        HeatOptions(faults=("nonsense",)).validate()
    with pytest.raises(OptionError, match="above zero"):
        HeatOptions(partition_rcu=0).validate()


@pytest.mark.engine
def test_the_page_shows_partitions_rates_throttles_and_splits(served: Endpoint) -> None:
    table = make_table(served.client(), index=True)
    refusal_of(puts(served.client(), table, key="hot"))
    status, headers, state = served.request("GET", "/heat")
    assert status == 200
    assert headers["content-type"].startswith("application/json")
    shown = state["tables"][table]
    assert shown["consumed"]["write"] == 5.0
    assert shown["throttled"] == {"TableWriteKeyRangeThroughputExceeded": 1}
    (partition,) = shown["partitions"]
    assert (partition["from"], partition["to"]) == (["0" * 16], ["1" + "0" * 16])
    assert partition["write"] == {
        "limit": 5.0, "tokens": 0.0, "consumed": 5.0,
        "per_second": partition["write"]["per_second"],
    }  # fmt: skip
    assert 0 < partition["write"]["per_second"] <= 5.0
    assert shown["splits"] == []
    assert "by-group" in shown["indexes"]
    assert orjson.dumps(state)
