"""The real stacks on the local cloud, and what is said when they do not get there."""

import asyncio
import json
import os
import signal
from collections.abc import Generator
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

import toolchain.node
from dynamoheat.serve import LOOPBACK
from local.cloud import Cloud, running
from local.deploy import Deployment
from local.errors import LocalCloudError
from local.state import State

pytestmark = pytest.mark.cloud


@pytest.fixture(scope="module")
def deployed() -> Generator[Cloud]:
    with running() as cloud:
        yield cloud


def write(cloud: Cloud, name: str, second: int) -> int:
    time = f"2001-01-01T00:00:0{second}Z"
    event = {"series": "local/ä #1", "time": time, "id": name, "payload": {"n": 1}}
    body = json.dumps({"events": [event]}).encode()
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(f"{cloud.api_url}/v1/events", body, headers)) as answer:  # noqa: S310
        accepted: int = json.load(answer)["accepted"]
        return accepted


def names(cloud: Cloud) -> list[str]:
    query = {
        "series": "local/ä #1",
        "start": "2000-01-01T00:00:00Z",
        "end": "2100-01-01T00:00:00Z",
        "consistent": "true",
    }
    with urlopen(f"{cloud.api_url}/v1/events?{urlencode(query)}") as answer:  # noqa: S310
        return [event["id"] for event in json.load(answer)["events"]]


def test_events_written_to_the_deployed_api_survive_the_engines_death(deployed: Cloud) -> None:
    assert write(deployed, "before", 1) == 1
    os.kill(deployed.engine_pid, signal.SIGKILL)
    assert write(deployed, "after", 2) == 1
    assert names(deployed) == ["before", "after"]


def test_where_the_api_is_stands_in_the_url_file(deployed: Cloud) -> None:
    assert deployed.state.url.read_text() == f"{deployed.api_url}\n"
    assert deployed.api_url.startswith(f"http://{LOOPBACK}:")


def test_the_stacks_outputs_are_at_hand(deployed: Cloud) -> None:
    assert any("ApiId" in values for values in deployed.outputs.values())


def test_a_failed_command_shows_the_end_of_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "cdk.js"
    script.write_text('console.log("no such stage"); process.exit(3)')
    monkeypatch.setattr(toolchain.node, "_CDK", script)
    deployment = Deployment(f"http://{LOOPBACK}:1", State(tmp_path))
    with pytest.raises(LocalCloudError) as failed:
        asyncio.run(deployment.synth())
    assert "`cdk synth` failed with exit code 3" in str(failed.value)
    assert "no such stage" in str(failed.value)
    assert str(tmp_path / "logs" / "cdk-synth.log") in str(failed.value)


def test_the_callers_own_aws_configuration_stays_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "cdk.js"
    script.write_text(
        "for (const [k, v] of Object.entries(process.env))"
        ' if (k.startsWith("AWS_")) console.log(k + "=" + v); process.exit(1)'
    )
    monkeypatch.setattr(toolchain.node, "_CDK", script)
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    deployment = Deployment(f"http://{LOOPBACK}:1", State(tmp_path))
    with pytest.raises(LocalCloudError) as failed:
        asyncio.run(deployment.synth())
    assert "AWS_ENDPOINT_URL=http://127.0.0.1:1" in str(failed.value)
    assert "production" not in str(failed.value)
    assert "token" not in str(failed.value)
