"""Remove what a bundle can do without: data of unused services, documentation, tests, scripts.

botocore brings the models of 400 services. A client reads its own and a few shared files at every
cold start, so these lose their documentation.
"""

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

__all__ = ["SERVICES", "prune"]

SERVICES: Final = frozenset({"cloudwatch", "dynamodb", "sts"})  # that functions make clients of

_ENDPOINTS: Final = SERVICES | {"monitoring"}  # CloudWatch's prefix

_UNUSED: Final = (
    "bin",  # scripts with this machine's paths
    "boto3/examples",
    "aws_lambda_powertools/event_handler/openapi/swagger_ui/*.js",
    "aws_lambda_powertools/event_handler/openapi/swagger_ui/*.css",
    "botocore/data/*/*/examples-1.json",
    "*.dist-info/RECORD",  # lists what is no longer there
    "*.dist-info/INSTALLER",
    "*.dist-info/REQUESTED",
    "*.dist-info/direct_url.json",
    "**/__pycache__",
    "**/tests",
    "**/*.pyi",
    ".lock",
)


def prune(folder: Path) -> None:
    """Remove from an installed `folder` what no function needs. Licence files stay."""
    for path in [*_other_services(folder), *_matches(folder)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for model in folder.glob("botocore/data/*/*/service-2.json.gz"):
        _slim_model(model)
    _slim_endpoints(folder / "botocore" / "data" / "endpoints.json")


def _slim_model(packed: Path) -> None:
    """Strip a service's model of documentation, and unpack it: bundles are zipped as a whole."""
    model = _undocumented(json.loads(gzip.decompress(packed.read_bytes())))
    packed.with_suffix("").write_text(json.dumps(model, separators=(",", ":")))
    packed.unlink()


def _undocumented(node: Any) -> Any:
    if isinstance(node, list):
        return [_undocumented(each) for each in node]
    if not isinstance(node, dict):
        return node
    # A member of that name would be a shape, not a text.
    return {
        key: _undocumented(value)
        for key, value in node.items()
        if key != "documentation" or not isinstance(value, str)
    }


def _slim_endpoints(file: Path) -> None:
    if not file.exists():
        return
    endpoints = json.loads(file.read_text())
    for partition in endpoints["partitions"]:
        services = partition["services"]
        partition["services"] = {name: services[name] for name in services if name in _ENDPOINTS}
    file.write_text(json.dumps(endpoints, separators=(",", ":")))


def _other_services(folder: Path) -> Iterator[Path]:
    for package in ("botocore", "boto3"):
        for entry in (folder / package / "data").glob("*"):
            if entry.is_dir() and entry.name not in SERVICES:
                yield entry


def _matches(folder: Path) -> Iterator[Path]:
    for pattern in _UNUSED:
        yield from folder.glob(pattern)
