"""What the pages tell to install outside this folder is enough, in a folder of its own."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from local.state import ROOT
from toolchain.node import find_node

PAGE = (ROOT / "docs" / "constructs.md").read_text()
README = (ROOT / "README.md").read_text()
CHECKOUT = "vendor/spillway"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkout beside it, and what the page tells to install."""
    folder = tmp_path_factory.mktemp("app")
    (folder / CHECKOUT).parent.mkdir()
    (folder / CHECKOUT).symlink_to(ROOT)
    (commands,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for command in re.findall(r"^\$ (.*)$", commands, re.MULTILINE):
        run(command, folder)
    return folder


def run(command: str, folder: Path, **variables: str) -> str:
    """Run a command of a page as its reader does; return what it prints."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONPATH", "VIRTUAL_ENV", "JSII_NODE"}
    }
    node = find_node()
    jsii = {} if node is None else {"JSII_NODE": str(node)}
    environment = {
        **kept,
        **jsii,
        "PATH": f"{ROOT / '.venv' / 'bin'}:{kept['PATH']}",
        # The versions that `make setup` has brought already.
        "UV_CONSTRAINT": str(ROOT / "requirements-dev.txt"),
        **variables,
    }
    done = subprocess.run(  # noqa: S603  our own pages
        ["bash", "-c", command],  # noqa: S607
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_app_of_the_page_synthesises_by_what_it_tells_to_install(app: Path) -> None:
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    (app / "app.py").write_text(code)
    (settings,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    # As the CDK's CLI calls it where it needs no bundle; tests/infra/test_bundle.py builds them.
    context = json.dumps({"aws:cdk:bundling-stacks": []})
    run(json.loads(settings)["app"], app, CDK_OUTDIR="cdk.out", CDK_CONTEXT_JSON=context)
    (template,) = (app / "cdk.out").glob("*.template.json")
    kinds = {each["Type"] for each in json.loads(template.read_text())["Resources"].values()}
    assert {"AWS::DynamoDB::GlobalTable", "AWS::SNS::Topic", "AWS::Lambda::Function"} <= kinds


def test_the_bundle_finds_its_uv(app: Path) -> None:
    assert run(".venv/bin/python -m uv --version", app).startswith("uv ")


def test_the_library_runs_by_what_the_readme_tells_to_install(tmp_path: Path) -> None:
    assert "put a checkout on `PYTHONPATH` and install its `requirements.txt`" in " ".join(
        README.split()
    )
    (tmp_path / CHECKOUT).parent.mkdir()
    (tmp_path / CHECKOUT).symlink_to(ROOT)
    run(f"uv venv .venv && uv pip install -r {CHECKOUT}/requirements.txt", tmp_path)
    imports = "import boto3; from spillway import Event, EventStore"
    run(f"PYTHONPATH={CHECKOUT} .venv/bin/python -c '{imports}'", tmp_path)
