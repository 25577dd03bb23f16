"""The bundle of the functions as they are: its size, and what a function imports of it before its first call."""

import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from benchmarks.cold.calls import ENVIRONMENT
from spillway.cdk.bundle import WITH_DAX, WITHOUT_DAX, BundleTarget, build_bundle
from tests.infra.synthesis import ROOT

FUNCTIONS = ("ingest", "query", "admin", "scaler")
# What costs a cold start and no function needs for its first call.
UNWANTED = {
    "amazondax",
    "antlr4",
    "boto3",
    "ddsketch",
    "multiprocessing",
    "pydantic",
    "s3transfer",
}
PROGRAM = """
import gc, sys
sys.path.insert(0, sys.argv[1])
import importlib
module = importlib.import_module(sys.argv[2])
assert callable(module.handler)
print(gc.isenabled(), gc.get_freeze_count() > 10_000, *sorted(set(sys.modules) & set(sys.argv[3:])))
"""


@pytest.fixture(scope="module", params=[WITHOUT_DAX, WITH_DAX])
def bundle(request: pytest.FixtureRequest) -> Path:
    return build_bundle(ROOT, BundleTarget.this_machine(), requirements=request.param).path


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_imports_what_its_first_call_needs_and_collects_garbage_from_then_on(
    bundle: Path, name: str
) -> None:
    own = {"AWS_DEFAULT_REGION": "eu-central-1", "DAX_ENDPOINT": "daxs://127.0.0.1:9"}
    program = [sys.executable, "-I", "-S", "-c", PROGRAM, str(bundle), f"lambdas.{name}"]
    done = subprocess.run(  # noqa: S603
        [*program, *UNWANTED],
        env={**ENVIRONMENT, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]


def test_the_asset_stays_below_eight_megabytes_zipped(bundle: Path) -> None:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(bundle.rglob("*")):
            archive.write(path, path.relative_to(bundle))
    assert packed.tell() < 8_000_000


def test_every_module_has_bytecode(bundle: Path) -> None:
    modules = [path for path in bundle.rglob("*.py") if path.parent.name != "__pycache__"]
    tag = sys.implementation.cache_tag
    missing = [
        m for m in modules if not (m.parent / "__pycache__" / f"{m.stem}.{tag}.pyc").exists()
    ]
    assert len(modules) > 500
    assert missing == []


def test_the_dax_client_is_in_the_bundle_of_stages_with_dax_only() -> None:
    holds = {
        requirements: (
            build_bundle(ROOT, BundleTarget.this_machine(), requirements=requirements).path
            / "amazondax"
        ).is_dir()
        for requirements in (WITHOUT_DAX, WITH_DAX)
    }
    assert holds == {WITHOUT_DAX: False, WITH_DAX: True}
