"""`python -m toolchain npm ARGUMENTS…` and `python -m toolchain cdk ARGUMENTS…`."""

import sys
from collections.abc import Sequence

from toolchain.node import MissingToolError, run_cdk, run_npm

__all__ = ["main"]

_PROGRAMS = {"cdk": run_cdk, "npm": run_npm}


def main(arguments: Sequence[str]) -> int:
    """Run a program and return its exit code, 2 where none of these is named."""
    if not arguments or arguments[0] not in _PROGRAMS:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    try:
        return _PROGRAMS[arguments[0]](arguments[1:])
    except MissingToolError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
