"""What a bundle can do without: data of services that no function talks to, tests, scripts.

botocore brings 400 services' models; a client needs its own and a few shared files.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["SERVICES", "prune"]

SERVICES: Final = frozenset({"cloudwatch", "dynamodb", "sts"})  # that functions make clients of

_USELESS: Final = (
    "bin",  # scripts with this machine's paths
    "boto3/examples",
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


def _other_services(folder: Path) -> Iterator[Path]:
    for package in ("botocore", "boto3"):
        for entry in (folder / package / "data").glob("*"):
            if entry.is_dir() and entry.name not in SERVICES:
                yield entry


def _matches(folder: Path) -> Iterator[Path]:
    for pattern in _USELESS:
        yield from folder.glob(pattern)
