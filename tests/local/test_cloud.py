"""Starting and stopping: nothing is lost that should stay, nothing stays that should go."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from dynamoheat.serve import LOOPBACK
from local.clients import client_settings
from local.cloud import Cloud, running, stop_cloud
from local.errors import LocalCloudError
from local.scratch import memory_folder
from local.state import ROOT, State, Status
from tests.local.processes import alive, descendants, gone

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.cloud


def client(endpoint: str) -> "DynamoDBClient":
    patient = Config(retries={"mode": "standard", "total_max_attempts": 8})
    made: DynamoDBClient = boto3.client("dynamodb", config=patient, **client_settings(endpoint))
    return made


def make_table(dynamodb: "DynamoDBClient", name: str) -> None:
    dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


@contextmanager
def up(state: Path, *options: str) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "local", "up", "--state", str(state), *options]
    with subprocess.Popen(  # noqa: S603
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ready(state: Path, process: subprocess.Popen[str]) -> Status:
    for _ in range(10_000):
        status = State(state).status()
        if status is not None:
            return status
        assert process.poll() is None, process.communicate()
        Event().wait(0.02)
    raise AssertionError("not ready")


def test_the_engine_is_back_at_once_after_kill_9_and_nothing_is_lost(cloud: Cloud) -> None:
    dynamodb = client(cloud.endpoint_url)
    make_table(dynamodb, "Killed")
    for number in range(30):
        dynamodb.put_item(TableName="Killed", Item={"PK": {"S": str(number)}})
        if number % 10 == 5:
            os.kill(cloud.engine_pid, signal.SIGKILL)
    assert dynamodb.scan(TableName="Killed")["Count"] == 30
    dynamodb.delete_table(TableName="Killed")


def test_the_engines_new_process_is_told(cloud: Cloud) -> None:
    before = cloud.engine_pid
    os.kill(before, signal.SIGKILL)
    client(cloud.endpoint_url).list_tables()
    for _ in range(5_000):
        if cloud.engine_pid != before:
            break
        Event().wait(0.02)
    assert alive(cloud.engine_pid)


def test_two_clouds_share_nothing(cloud: Cloud) -> None:
    with running(deploys=False) as other:
        make_table(client(other.endpoint_url), "Mine")
        assert "Mine" not in client(cloud.endpoint_url).list_tables()["TableNames"]
        assert other.endpoint_url != cloud.endpoint_url


def test_a_cloud_leaves_no_process_and_no_file_in_memory() -> None:
    with running(deploys=False) as started:
        below = descendants(started.pid)
        assert len(below) >= 2
        folders = {
            path for path in memory_folder().glob("spillway-*") if held_by(path, started.pid)
        }
        assert folders
    assert not any(alive(pid) for pid in below | {started.pid})
    assert not any(path.exists() for path in folders)


def held_by(folder: Path, pid: int) -> bool:
    try:
        return (folder / "lock").read_text() == str(pid)
    except OSError:
        return False


def test_a_killed_cloud_leaves_no_process(tmp_path: Path) -> None:
    with up(tmp_path, "--port", "0", "--no-deploy") as process:
        ready(tmp_path, process)
        below = descendants(process.pid)
        process.kill()
        process.wait()
    assert gone(below)


@pytest.mark.parametrize("seconds", [0.1, 0.4, 0.8, 1.6, 3.2])
def test_a_cloud_that_is_stopped_while_it_starts_leaves_no_process(
    tmp_path: Path, seconds: float
) -> None:
    with up(tmp_path, "--port", "0") as process:
        Event().wait(seconds)
        below = descendants(process.pid)
        process.terminate()
        process.wait(timeout=300)
        below |= descendants(process.pid)
    assert gone(below)


def test_a_cloud_whose_emulated_aws_ended_says_so_first_and_last(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    with pytest.raises(LocalCloudError) as failed:
        use_a_cloud_whose_emulated_aws_ends(logs)
    lines = str(failed.value).splitlines()
    assert lines[0].startswith("The local cloud has ended: The emulated AWS (MiniStack) ended")
    assert lines[-1] in lines[0]
    assert str(logs / "ministack.log") in lines[-1]
    assert (logs / "ministack.log").exists()
    assert len(lines) < 10


def use_a_cloud_whose_emulated_aws_ends(logs: Path) -> None:
    with running(deploys=False, keep_logs=logs) as started:
        started.check()
        (emulated,) = [pid for pid in descendants(started.pid) if runs(pid, "emulated.py")]
        os.kill(emulated, signal.SIGKILL)
        assert gone({started.pid})
        started.check()


def runs(pid: int, program: str) -> bool:
    return program in Path(f"/proc/{pid}/cmdline").read_text()


def test_a_second_cloud_in_a_folder_is_refused_and_down_stops_the_first(tmp_path: Path) -> None:
    with up(tmp_path, "--port", "0", "--no-deploy") as first:
        ready(tmp_path, first)
        with up(tmp_path, "--port", "0", "--no-deploy") as second:
            assert second.wait(timeout=300) == 1
            assert second.stderr is not None
            assert "runs already" in second.stderr.read()
        assert stop_cloud(State(tmp_path))
        assert first.wait(timeout=300) == 0
    assert not stop_cloud(State(tmp_path))
    assert State(tmp_path).status() is None


def test_a_taken_port_is_said_in_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with up(tmp_path, "--port", port, "--no-deploy") as process:
            output, errors = process.communicate(timeout=300)
    assert process.returncode == 1
    assert f"Port {port} of {LOOPBACK} is not free" in errors
    assert "Traceback" not in output + errors


def test_a_missing_part_is_said_in_a_sentence_and_nothing_keeps_running(tmp_path: Path) -> None:
    program = (
        "import sys, local.ministack, pathlib; from local.__main__ import main\n"
        "local.ministack._PYTHON = pathlib.Path('/nowhere/ministack')\n"
        f"sys.exit(main(['up', '--no-deploy', '--port', '0', '--state', {str(tmp_path)!r}]))"
    )
    failed = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert failed.returncode == 1
    assert "/nowhere/ministack is missing or not executable: run `make setup`" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_stacks_table_on_disk_keeps_its_items_when_it_is_deployed_again(tmp_path: Path) -> None:
    template = {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {
            "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    }
    counts = []
    for start in range(2):
        with running(deploys=False, data=tmp_path) as started:
            stacks = boto3.client("cloudformation", **started.client_settings())
            body = json.dumps({"Resources": {"Kept": template}})
            stacks.create_stack(StackName="stack", TemplateBody=body)
            stacks.get_waiter("stack_create_complete").wait(StackName="stack")
            dynamodb = client(started.endpoint_url)
            (name,) = dynamodb.list_tables()["TableNames"]
            dynamodb.put_item(TableName=name, Item={"PK": {"S": str(start)}})
            counts.append(dynamodb.scan(TableName=name)["Count"])
    assert counts == [1, 2]


def test_tables_on_disk_are_there_at_the_next_start(tmp_path: Path) -> None:
    with running(deploys=False, data=tmp_path) as started:
        make_table(client(started.endpoint_url), "Kept")
        client(started.endpoint_url).put_item(TableName="Kept", Item={"PK": {"S": "a"}})
    with running(deploys=False, data=tmp_path) as started:
        dynamodb = client(started.endpoint_url)
        assert dynamodb.list_tables()["TableNames"] == ["Kept"]
        assert dynamodb.scan(TableName="Kept")["Count"] == 1
        dynamodb.delete_table(TableName="Kept")
        assert dynamodb.list_tables()["TableNames"] == []
