"""Cold starts of the functions, beside a bare boto3 handler that asks DynamoDB once.

Each start is a fresh interpreter of the runtime's minor version where this machine has one, on the bundle that would be
deployed, against the local cloud; all take turns. From the first line of the program to the answer of the first call:
the interpreter's own start, which Lambda has behind it by then, is left out. The bare handler has the same bundle, its
pruned SDK included.
"""

import argparse
import json
import os
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from platform import machine
from statistics import median

import boto3
from rich.console import Console
from rich.table import Table

from benchmarks.cold.calls import ENVIRONMENT, first_calls
from benchmarks.cold.tables import LAYOUTS, fill
from local.cloud import running
from toolchain.node import use_pinned_node

use_pinned_node()  # importing the stages imports aws_cdk, which starts Node
from spillway.cdk.bundle import WITH_DAX, WITHOUT_DAX, BundleTarget, build_bundle, find_python  # noqa: E402
from spillway.cdk.settings import FUNCTIONS  # noqa: E402

_ROOT = Path(__file__).parents[2]
_START = Path(__file__).with_name("start.py")
_GOAL = 1.4
_MAX_BYTES = 8_000_000


def _target() -> tuple[BundleTarget, Path]:
    """Return what to bundle for and the interpreter that runs it."""
    python = find_python(FUNCTIONS.python)
    if python is None or sys.platform != "linux" or machine() not in {"x86_64", "aarch64"}:
        return BundleTarget.this_machine(), Path(sys.executable)
    architecture = "arm64" if machine() == "aarch64" else "x86_64"
    return BundleTarget.aws(python=FUNCTIONS.python, architecture=architecture), python


def _zipped(folder: Path) -> int:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return packed.tell()


def _start(python: Path, bundle: Path, module: str, event: object, endpoint: str) -> list[float]:
    """Return the milliseconds of import and first call."""
    credentials = {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
    }
    done = subprocess.run(  # noqa: S603
        [str(python), "-I", "-S", str(_START), str(bundle), module, json.dumps(event)],
        env={"PATH": os.environ["PATH"], **ENVIRONMENT, **credentials},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{module} failed: {done.stderr}{done.stdout}")
    return [float(each) for each in done.stdout.splitlines()[-1].split()]


def _measure(python: Path, bundle: Path, rounds: int) -> dict[str, list[list[float]]]:
    now = datetime.now(UTC)  # noqa: TID251  for events that functions take
    with running(deploys=False) as cloud:
        fill(boto3.client("dynamodb", **cloud.client_settings()), now)
        modules: dict[str, tuple[str, object]] = {
            "bare boto3 handler": ("bare", {"table": LAYOUTS}),
            **{name: (f"lambdas.{name}", event) for name, event in first_calls(now).items()},
        }
        found: dict[str, list[list[float]]] = {name: [] for name in modules}
        for number in range(rounds + 1):
            for name, (module, event) in modules.items():
                taken = _start(python, bundle, module, event, cloud.endpoint_url)
                if number:  # the first of each reads files from disk
                    found[name].append(taken)
    return found


def _print(found: dict[str, list[list[float]]]) -> None:
    bare = [sum(each) for each in found["bare boto3 handler"]]
    table = Table()
    for heading in ("", "import ms", "first call ms", "together (least to most)", "÷ bare"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, runs in found.items():
        totals = [sum(each) for each in runs]
        ratio = median(own / other for own, other in zip(totals, bare, strict=True))
        table.add_row(
            name,
            f"{median(each[0] for each in runs):.0f}",
            f"{median(each[1] for each in runs):.0f}",
            f"{median(totals):.0f} ({min(totals):.0f} to {max(totals):.0f})",
            f"{ratio:.2f}{'' if ratio <= _GOAL else f' above {_GOAL}'}",
        )
    Console(width=100).print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="of all in turn (%(default)s)")
    rounds = parser.parse_args().rounds
    target, python = _target()
    console = Console(width=100, highlight=False)
    bundle = build_bundle(_ROOT, target)
    console.print(f"Cold starts on Python {target.python}, {rounds} rounds, medians")
    for note in bundle.notes:
        console.print(f"note: {note}")
    _print(_measure(python, bundle.path, rounds))
    for title, requirements in (("", WITHOUT_DAX), (" with DAX's client", WITH_DAX)):
        aws = BundleTarget.aws(python=FUNCTIONS.python, architecture=FUNCTIONS.architecture)
        size = _zipped(build_bundle(_ROOT, aws, requirements=requirements).path)
        verdict = "" if size <= _MAX_BYTES else ", above 8 MB"
        console.print(f"Deployed asset{title}: {size / 1e6:.2f} MB zipped{verdict}")


if __name__ == "__main__":
    main()
