"""The functions' bundle: what is in it, when it is made anew, what happens when a step fails."""

import importlib.metadata
import marshal
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from spillway.cdk.bundle import BundleError, BundleTarget, build_bundle
from spillway.cdk.pruning import SERVICES, prune

HERE = BundleTarget.this_machine()
DISTRIBUTIONS = ("boto3", "botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree like the project's, without dependencies: nothing is fetched."""
    for name, content in {
        "requirements.txt": "",
        "spillway/__init__.py": "",
        "spillway/keys.py": "def name():\n    return 'key'\n",
        "spillway/py.typed": "",
        "spillway/deep/er.py": "",
        "spillway/cdk/tables.py": "import aws_cdk",
        "lambdas/ingest.py": "from spillway import keys\n",
        "lambdas/__pycache__/stale.cpython-311.pyc": "x",
        "spillway/.hidden": "x",
        "spillway/keys.py~": "x",
        "tests/test_keys.py": "x",
        "stacks/app.py": "x",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def test_a_bundle_holds_the_two_packages_without_the_constructs_and_nothing_else(
    root: Path,
) -> None:
    folder = build_bundle(root, HERE).path
    sources = {
        path.relative_to(folder).as_posix() for path in _files(folder) if path.suffix != ".pyc"
    }
    assert sources == {
        "spillway/__init__.py",
        "spillway/keys.py",
        "spillway/py.typed",
        "spillway/deep/er.py",
        "lambdas/ingest.py",
    }


def test_an_unchanged_tree_is_built_once(root: Path) -> None:
    first = build_bundle(root, HERE)
    made = first.path.stat().st_mtime_ns
    (root / "tests" / "test_keys.py").write_text("changed")
    (root / "spillway" / "keys.py").touch()
    second = build_bundle(root, HERE)
    assert second == first
    assert second.path.stat().st_mtime_ns == made


@pytest.mark.parametrize("changed", ["spillway/keys.py", "lambdas/ingest.py", "requirements.txt"])
def test_a_changed_tree_is_another_bundle(root: Path, changed: str) -> None:
    before = build_bundle(root, HERE)
    with (root / changed).open("a") as file:
        file.write("# changed\n")
    after = build_bundle(root, HERE)
    assert after.digest != before.digest
    assert after.path != before.path


def test_a_renamed_module_is_another_bundle(root: Path) -> None:
    before = build_bundle(root, HERE).digest
    (root / "spillway" / "deep" / "er.py").rename(root / "spillway" / "deep" / "est.py")
    assert build_bundle(root, HERE).digest != before


def test_the_same_tree_elsewhere_is_the_same_bundle(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    for package in ("spillway", "lambdas"):
        shutil.copytree(root / package, elsewhere / package)
    shutil.copy(root / "requirements.txt", elsewhere)
    assert build_bundle(elsewhere, HERE).digest == build_bundle(root, HERE).digest


def test_each_target_has_a_bundle_of_its_own(root: Path) -> None:
    arm = BundleTarget.aws(python=HERE.python, architecture="arm64")
    assert build_bundle(root, arm).digest != build_bundle(root, HERE).digest


def test_bytecode_depends_on_no_file_time_and_names_no_path_of_this_machine(root: Path) -> None:
    folder = build_bundle(root, HERE).path
    (compiled,) = (folder / "spillway" / "__pycache__").glob("keys.*.pyc")
    content = compiled.read_bytes()
    assert int.from_bytes(content[4:8], "little") == 0b01  # by hash, unchecked
    code = marshal.loads(content[16:])  # noqa: S302 - our own
    assert isinstance(code, CodeType)
    assert not Path(code.co_filename).is_absolute()


def test_without_the_runtimes_python_a_bundle_goes_without_bytecode_and_says_so(
    root: Path,
) -> None:
    bundle = build_bundle(root, BundleTarget(python="3.99", platform="aarch64-manylinux_2_28"))
    assert not [path for path in _files(bundle.path) if path.suffix == ".pyc"]
    (note,) = bundle.notes
    assert "3.99" in note


def test_any_user_can_read_a_bundle_whatever_the_umask(root: Path) -> None:
    before = os.umask(0o077)
    try:
        folder = build_bundle(root, HERE).path
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in _files(folder)} == {0o644}
    assert {p.stat().st_mode & 0o777 for p in (folder, *folder.glob("**/"))} == {0o755}


def test_a_failed_step_says_why_and_leaves_no_bundle(root: Path) -> None:
    digest = "0" * 64
    (root / "requirements.txt").write_text(
        f"./absent-1.0-py3-none-any.whl --hash=sha256:{digest}\n"
    )
    with pytest.raises(BundleError, match=r"(?s)cannot install.*absent"):
        build_bundle(root, HERE)
    assert list((root / ".build").iterdir()) == []


def test_an_interrupted_build_is_made_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("spillway.cdk.bundle.prune", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build_bundle(root, HERE)
    assert (build_bundle(root, HERE).path / "lambdas" / "ingest.py").is_file()


def test_old_bundles_go_and_the_newest_stay(root: Path) -> None:
    bundles = []
    for number in range(7):
        (root / "spillway" / "keys.py").write_text(f"number = {number}\n")
        bundles.append(build_bundle(root, HERE).path)
        stamp = 1_000_000_000 + number
        os.utime(bundles[-1], (stamp, stamp))
    assert [path.is_dir() for path in bundles][-3:] == [True] * 3
    assert sum(path.is_dir() for path in bundles) <= 5


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SDK as installed here, pruned."""
    folder = tmp_path_factory.mktemp("pruned")
    for distribution in DISTRIBUTIONS:
        for file in importlib.metadata.files(distribution) or ():
            if file.suffix != ".pyc" and ".." not in file.parts:
                destination = folder / file
                destination.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file.locate(), destination)
    prune(folder)
    return folder


def test_a_pruned_sdk_knows_only_the_services_that_functions_use(pruned: Path) -> None:
    found = {path.name for path in (pruned / "botocore" / "data").iterdir() if path.is_dir()}
    assert found == SERVICES == {"cloudwatch", "dynamodb", "sts"}
    assert sum(path.stat().st_size for path in _files(pruned)) < 8_000_000


def test_what_a_client_reads_at_a_cold_start_holds_no_documentation(pruned: Path) -> None:
    models = list((pruned / "botocore" / "data").glob("*/*/service-2.json*"))
    assert {model.suffix for model in models} == {".json"}
    assert {model.parts[-3] for model in models} == SERVICES
    for model in models:
        assert '"documentation":"' not in model.read_text()
    assert (pruned / "botocore" / "data" / "endpoints.json").stat().st_size < 60_000


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1", "cn-north-1", "us-gov-west-1"])
def test_a_pruned_sdk_makes_clients_with_endpoints_paginators_and_errors(
    pruned: Path, region: str
) -> None:
    program = f"""
import sys
sys.path.insert(0, {str(pruned)!r})
import boto3
session = boto3.Session("k", "s", region_name={region!r})
for service in {sorted(SERVICES)!r}:
    client = session.client(service)
    assert {region!r} in client.meta.endpoint_url, client.meta.endpoint_url
client = session.client("dynamodb")
client.get_paginator("query")
client.exceptions.ConditionalCheckFailedException
assert "ThrottlingReasons" in client.meta.service_model.shape_for(
    "ProvisionedThroughputExceededException").members
client.generate_presigned_url("list_tables")
print(boto3.__file__)
"""
    command = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(pruned))


def test_licences_of_dependencies_are_shipped(pruned: Path) -> None:
    licences = [path for path in _files(pruned) if "LICENSE" in path.name.upper()]
    assert len(licences) >= len(DISTRIBUTIONS) - 1
