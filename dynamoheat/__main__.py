"""Commands: `python -m dynamoheat serve`."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from dynamoheat.serve.factory import relax_collector
from dynamoheat.serve.options import HeatOptions, OptionError, add_arguments
from dynamoheat.serve.server import ServeError, ServeOptions, serve

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    given = _parser().parse_args(arguments)
    try:
        options = ServeOptions(
            engine=given.engine,
            port=given.port,
            patience=given.patience,
            heat=HeatOptions.from_arguments(given),
        )
        asyncio.run(serve(options, lambda url: _started(url, options)))
    except (OptionError, ServeError) as error:
        sys.stderr.write(f"dynamodynamoheat: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dynamoheat", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    serve_ = commands.add_parser(
        "serve", help="throttle like DynamoDB in front of any engine that speaks its protocol"
    )
    serve_.add_argument(
        "--engine",
        default="http://127.0.0.1:8000",
        metavar="URL",
        help="of the engine (%(default)s)",
    )
    serve_.add_argument(
        "--port", type=int, default=8001, help="to listen on, on loopback; 0 for any (%(default)s)"
    )
    serve_.add_argument(
        "--patience",
        type=float,
        default=50.0,
        metavar="SECONDS",
        help="for an answer of the engine (%(default)g)",
    )
    add_arguments(serve_)
    return parser


def _started(url: str, options: ServeOptions) -> None:
    relax_collector()
    sys.stdout.write(
        f"{url} throttles like DynamoDB in front of {options.engine}.\n"
        f"{url}/heat shows its partitions. Ctrl-C stops it.\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
