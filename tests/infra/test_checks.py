"""What holds for whole stages: checkers, accounts, the application itself."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk import App
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3

from stacks.assembly import assemble
from stacks.config import STAGES
from tests.infra.synthesis import ROOT, Synthesis


def _report(synthesis: Synthesis) -> list[dict[str, object]]:
    report = json.loads((synthesis.folder / "validation-report.json").read_text())
    return [plugin for plugin in report["pluginReports"] if plugin["pluginName"] == "AwsSolutions"]


def test_cdk_nag_finds_nothing(synthesis: Synthesis) -> None:
    (report,) = _report(synthesis)
    assert (report["conclusion"], report["violations"]) == ("success", [])


def test_each_suppression_is_known_and_has_a_reason(synthesis: Synthesis) -> None:
    (report,) = _report(synthesis)
    suppressed = report["suppressedViolations"]
    assert isinstance(suppressed, list)
    known = {"AwsSolutions-L1", "AwsSolutions-SQS3", "AwsSolutions-IAM5"}
    if synthesis.stage.name == "local":
        known.add("AwsSolutions-APIG4")
    assert {str(violation["ruleName"]).partition("[")[0] for violation in suppressed} == known
    assert all(len(violation["reason"]) > 30 for violation in suppressed)


def test_cdk_nag_stops_an_open_bucket(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path / "out"))
    code = lambda_.Code.from_asset(str(ROOT / "lambdas"))
    stacks = assemble(app, stage=STAGES["dev"], code=code)
    s3.Bucket(stacks.storage, "Open")
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()


def test_cfn_lint_finds_nothing(synthesis: Synthesis) -> None:
    templates = [str(path) for path in synthesis.template_files]
    assert len(templates) == (2 if synthesis.cache is None else 3)
    command = [str(Path(sys.executable).with_name("cfn-lint")), *templates]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stdout) == (0, "")


def test_no_template_names_an_account_or_a_region(synthesis: Synthesis) -> None:
    for path in synthesis.template_files:
        text = path.read_text()
        assert not re.search(r"\b\d{12}\b", text)
        assert not re.search(r"\b(us|eu|ap|sa|ca)-[a-z]+-\d\b", text)


def test_stacks_carry_the_name_of_their_stage(synthesis: Synthesis) -> None:
    name = synthesis.stage.name
    found = [path.name.removesuffix(".template.json") for path in synthesis.template_files]
    kinds = [] if synthesis.cache is None else ["cache"]
    assert found == [f"Spillway-{name}-{kind}" for kind in (*kinds, "service", "storage")]


def test_stacks_refuse_deletion_in_prod_only(synthesis: Synthesis) -> None:
    manifest = json.loads((synthesis.folder / "manifest.json").read_text())
    protected = {
        artifact["properties"].get("terminationProtection", False)
        for artifact in manifest["artifacts"].values()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    assert protected == {synthesis.stage.name == "prod"}


def _run_app(context: dict[str, object], outdir: Path) -> subprocess.CompletedProcess[str]:
    # As the CDK CLI does it for a command that needs no bundles; without any AWS settings.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    environment = {
        **kept,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "CDK_OUTDIR": str(outdir),
        "CDK_CONTEXT_JSON": json.dumps({"aws:cdk:bundling-stacks": [], **context}),
    }
    command = [sys.executable, "app.py"]
    return subprocess.run(  # noqa: S603
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_a_bare_cdk_synthesises_dev_without_an_account(tmp_path: Path) -> None:
    done = _run_app(json.loads((ROOT / "cdk.json").read_text())["context"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in tmp_path.glob("*.template.json")} == {
        "Spillway-dev-cache.template.json",
        "Spillway-dev-service.template.json",
        "Spillway-dev-storage.template.json",
    }


def test_the_endpoint_of_the_local_stage_can_be_chosen(tmp_path: Path) -> None:
    done = _run_app({"stage": "local", "endpoint": "http://127.0.0.1:9"}, tmp_path)
    assert done.returncode == 0, done.stderr
    template = json.loads((tmp_path / "Spillway-local-service.template.json").read_text())
    endpoints = [
        resource["Properties"]["Environment"]["Variables"]["AWS_ENDPOINT_URL_DYNAMODB"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Lambda::Function"
    ]
    assert endpoints == ["http://127.0.0.1:9"] * 4


def test_an_unknown_stage_is_one_sentence(tmp_path: Path) -> None:
    done = _run_app({"stage": "production"}, tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: unknown stage 'production': choose one of local, dev, prod (-c stage=…)"
    ]
