"""The constructs in somebody else's app: the very code of docs/constructs.md, synthesised."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk
import pytest
from aws_cdk import App, Stack, Validations
from aws_cdk.assertions import Template
from cdk_nag import AwsSolutionsChecks

import spillway.cdk
from spillway import keys
from stacks.config import STAGES
from tests.infra.synthesis import ROOT, Synthesis, allowed, functions, tables, written
from tests.infra.test_alarms import EXPECTED
from tests.infra.watched import DOCUMENTED, deployed, published, silent

DOCUMENT = ROOT / "docs" / "constructs.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
TEN_LINES, FUNCTIONS = BLOCKS

Run = Callable[[str], Synthesis]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run an app's code; its one stack is storage and service at once."""
    apps: list[App] = []

    def app() -> App:
        # No bundle is built, as for the CLI's commands that need none.
        bundled: list[str] = []
        apps.append(App(outdir=str(tmp_path), context={"aws:cdk:bundling-stacks": bundled}))
        return apps[-1]

    def run(code: str) -> Synthesis:
        with monkeypatch.context() as patched:
            patched.setattr(aws_cdk, "App", app)
            exec(compile(code, str(DOCUMENT), "exec"), {})  # noqa: S102 - our own document
        (stack,) = [each for each in apps[-1].node.children if isinstance(each, Stack)]
        template = Template.from_stack(stack)
        return Synthesis(STAGES["dev"], tmp_path, template, template, None)

    return run


def _lines_of_code(code: str) -> list[str]:
    return [line for line in code.splitlines() if line.strip()]


def test_ten_lines_are_ten_lines() -> None:
    assert len(_lines_of_code(TEN_LINES)) <= 10


def test_ten_lines_are_the_tables_the_alarms_and_the_scaler(run: Run) -> None:
    synthesis = run(TEN_LINES)
    assert tables(synthesis).keys() == {"events", "layouts", "usage"}
    alarms = deployed(synthesis, "Orders-")
    assert alarms == {name: alarm for name, alarm in EXPECTED.items() if name in alarms}
    assert alarms.keys() == {name for name in EXPECTED if name.startswith("Scaler-")}
    assert silent(alarms, published(synthesis) | DOCUMENTED) == set()
    assert f"{len(alarms)} alarms" in DOCUMENT.read_text()
    synthesis.service.has_resource_properties(
        "AWS::SNS::Subscription", {"Protocol": "email", "Endpoint": "oncall@example.com"}
    )
    synthesis.service.has_resource_properties(
        "AWS::Events::Rule", {"ScheduleExpression": "rate(1 minute)"}
    )


def test_the_scaler_of_ten_lines_is_told_and_allowed_its_own_tables(run: Run) -> None:
    synthesis = run(TEN_LINES)
    scaler = functions(synthesis)["scaler"]
    told = scaler["Environment"]["Variables"]
    assert written(synthesis, told["SPILLWAY_TABLE"]) == "<events>"
    assert told["SPILLWAY_ALARM_PREFIX"] == "Orders-Scaler-"
    granted = {(action, written(synthesis, on)) for action, on in allowed(synthesis, "scaler")}
    assert ("dynamodb:UpdateItem", "<layouts>") in granted
    assert ("dynamodb:Query", f"<layouts>/index/{keys.LAYOUT_INDEX_NAME}") in granted
    assert {on for action, on in granted if on == "*"} == {"*"}
    assert not [action for action, on in granted if on == "<events>" and "Item" in action]


def test_cdk_nag_finds_nothing_in_ten_lines(run: Run, tmp_path: Path) -> None:
    check = "from tests.infra.test_constructs import checked; checked(app); "
    run(TEN_LINES.replace("app.synth()", f"{check}app.synth()"))
    report = json.loads((tmp_path / "validation-report.json").read_text())
    (nag,) = [p for p in report["pluginReports"] if p["pluginName"] == "AwsSolutions"]
    assert (nag["conclusion"], nag["violations"]) == ("success", [])


def checked(app: App) -> None:
    """Let cdk-nag look at an app."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))


def test_a_function_gets_what_the_library_asks_for_and_no_more(run: Run) -> None:
    synthesis = run(FUNCTIONS)
    (writer,) = functions(synthesis).values()
    told = {
        name: written(synthesis, value)
        for name, value in writer["Environment"]["Variables"].items()
    }
    assert told["SPILLWAY_TABLE"] == "<events>"
    assert (told["SPILLWAY_SHARDS"], told["SPILLWAY_RETENTION_DAYS"]) == ("8", "90")
    granted = {(action, written(synthesis, on)) for action, on in allowed(synthesis, "handler")}
    index = f"<events>/index/{keys.INDEX_NAME}"
    assert granted == {
        *(
            (f"dynamodb:{name}", "<events>")
            for name in ("BatchWriteItem", "PutItem", "GetItem", "Query")
        ),
        ("dynamodb:Query", index),
        *(
            (f"dynamodb:{name}", table)
            for name in ("GetItem", "UpdateItem")
            for table in ("<layouts>", "<usage>")
        ),
    }
    events = tables(synthesis)["events"]["Properties"]
    assert events["WriteOnDemandThroughputSettings"] == {"MaxWriteRequestUnits": 20_000}


def test_every_name_of_the_module_is_there_and_described() -> None:
    for name in spillway.cdk.__all__:
        assert getattr(spillway.cdk, name) is not None
    described: list[Any] = [spillway.cdk.ShardedEventTable, spillway.cdk.ShardScaler]
    assert all(len(each.__doc__) > 100 for each in described)
