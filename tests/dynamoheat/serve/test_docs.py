"""The page for users says what is so."""

import re
from dataclasses import fields
from typing import Any

import pytest
from botocore.exceptions import ClientError

from dynamoheat import ModelParameters
from dynamoheat.__main__ import main
from dynamoheat.serve.faults import parse_fault
from local.engine import EngineProcess
from local.state import ROOT
from tests.dynamoheat.serve.serving import endpoint

PAGE = (ROOT / "docs" / "dynamoheat.md").read_text()


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.engine
def test_the_five_lines_show_a_hot_partition(engine: EngineProcess) -> None:
    (code,) = re.findall(r"```python\n(import boto3.*?)```", PAGE, re.DOTALL)
    assert len(code.splitlines()) == 5
    with endpoint(engine.url, partition_wcu=50) as served:
        with pytest.raises(ClientError) as refused:
            exec(code.replace("http://127.0.0.1:8001", served.url), {})  # noqa: S102
        served.client().delete_table(TableName="clicks")
    response: Any = refused.value.response
    assert f"Code:              {response['Error']['Code']}" in PAGE
    shown = re.search(r"throttlingReasons: (.*)", PAGE)
    assert shown is not None
    assert shown[1] == str(response["throttlingReasons"])


def test_every_parameter_is_listed_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", section("Parameters"), re.MULTILINE))
    assert {name: float(default) for name, default in rows.items()} == {
        each.name: getattr(ModelParameters(), each.name) for each in fields(ModelParameters)
    }


def test_every_option_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    offered = set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out)) - {"--help"}
    assert set(re.findall(r"--[a-z][a-z-]*", section("Options"))) == offered


def test_every_kind_of_fault_that_is_listed_exists() -> None:
    kinds = re.findall(
        r"`([^`]+)`", "".join(re.findall(r"^\|([^|]*)\|", section("Faults"), re.MULTILINE))
    )
    assert len(kinds) == 9
    for kind in kinds:
        assert parse_fault(f"*:{kind.replace('TIME', '1s')}:0.5").probability == 0.5
    for text in re.findall(r'"([*\w]+:[^"]+)"', section("Faults")):
        assert parse_fault(text).text == text
