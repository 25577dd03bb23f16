import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

import local.engine
from local.engine import EngineProcess, running_engine
from local.errors import LocalCloudError
from tests.local.processes import alive, gone

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.engine


def client(engine: EngineProcess) -> "DynamoDBClient":
    made: DynamoDBClient = boto3.client("dynamodb", **engine.client_settings())
    return made


def make_table(dynamodb: "DynamoDBClient") -> None:
    dynamodb.create_table(
        TableName="Notes",
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def test_an_engine_answers_and_is_gone_after_its_block() -> None:
    with running_engine() as engine:
        assert client(engine).list_tables()["TableNames"] == []
    assert not alive(engine.pid)


def test_what_was_written_survives_kill_9(tmp_path: Path) -> None:
    with running_engine(tmp_path / "engine.db") as engine:
        make_table(client(engine))
        client(engine).put_item(TableName="Notes", Item={"PK": {"S": "a"}})
        os.kill(engine.pid, signal.SIGKILL)
    with running_engine(tmp_path / "engine.db") as engine:
        assert client(engine).get_item(TableName="Notes", Key={"PK": {"S": "a"}})["Item"]


def test_two_engines_know_nothing_of_each_other() -> None:
    with running_engine() as one, running_engine() as other:
        make_table(client(one))
        assert client(other).list_tables()["TableNames"] == []


def test_an_engine_dies_with_a_parent_that_is_killed() -> None:
    program = (
        "import threading; from local.engine import running_engine\n"
        "with running_engine() as e: print(e.pid, flush=True); threading.Event().wait()"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:  # noqa: S603
        assert parent.stdout is not None
        engine = int(parent.stdout.readline())
        assert alive(engine)
        parent.kill()
    assert gone({engine})


def test_a_missing_engine_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.engine, "_PACKAGED", Path("nowhere"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LocalCloudError, match="run `make setup`"), running_engine():
        pass


def test_an_engine_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(LocalCloudError, match="does not start"),
        running_engine(tmp_path / "no-such-folder" / "engine.db"),
    ):
        pass
