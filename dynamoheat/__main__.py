"""The command line: `python -m dynamoheat serve`."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from dynamoheat.serve.factory import relax_collector
from dynamoheat.serve.options import OptionError, ServeOptions, add_serve_arguments
from dynamoheat.serve.server import ServeError, serve

__all__ = ["main"]

_DESCRIPTION: Final = """\
dynamoheat models how Amazon DynamoDB's partitions admit, throttle and split.

Local DynamoDB engines never throttle. `serve` listens in front of one, forwards what DynamoDB
would admit, and refuses the rest with DynamoDB's own exceptions and throttling reasons. Point an
SDK's endpoint URL at it to see hot partitions before they happen in production.
"""
_SERVE_DESCRIPTION: Final = """\
Throttle like DynamoDB in front of any engine that speaks its protocol, such as DynamoDB Local.
GET /heat on the endpoint shows partitions, rates, throttles and splits; /heat/faults shows and
replaces the faults.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parsed = _parser().parse_args(arguments)
    options = ServeOptions.from_arguments(parsed)
    try:
        asyncio.run(serve(options, lambda url: _announce(url, options)))
    except (OptionError, ServeError) as error:
        sys.stderr.write(f"dynamoheat: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m dynamoheat", description=_DESCRIPTION, formatter_class=layout
    )
    commands = parser.add_subparsers(dest="command", required=True)
    add_serve_arguments(
        commands.add_parser(
            "serve",
            help="throttle like DynamoDB in front of an engine",
            description=_SERVE_DESCRIPTION,
            formatter_class=layout,
        )
    )
    return parser


def _announce(url: str, options: ServeOptions) -> None:
    relax_collector()
    sys.stdout.write(
        f"{url} throttles like DynamoDB in front of {options.engine}.\n"
        f"{url}/heat shows its partitions. Ctrl-C stops it.\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
