"""Commands: `python -m local up` and `python -m local down`."""

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from dynamoheat.serve.factory import relax_collector
from dynamoheat.serve.options import HeatOptions, OptionError, add_arguments
from local.clients import REGION
from local.cloud import stop_cloud
from local.errors import LocalCloudError
from local.progress import ProgressPrinter
from local.state import DEFAULT_FOLDER, State, Status
from local.supervisor import CloudOptions, supervise

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    try:
        if options.command == "down":
            stopped = stop_cloud(State(options.state))
            console.print("Stopped." if stopped else "No local cloud runs here.")
        else:
            _up(options, ProgressPrinter(console))
    except (LocalCloudError, OptionError) as error:
        Console(stderr=True).print(
            f"local cloud: {error}", markup=False, highlight=False, soft_wrap=True
        )
        return 1
    return 0


def _up(options: argparse.Namespace, progress: ProgressPrinter) -> None:
    heat = HeatOptions.from_arguments(options)
    heat.validate()
    cloud = CloudOptions(
        port=options.port,
        data=options.data,
        deploys=options.deploy,
        heat=heat,
        context=tuple(options.context),
    )
    state = State(options.state.resolve())
    state.logs.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=state.logs / "endpoint.log", level=logging.WARNING)

    def welcome(status: Status) -> None:
        if not options.brief:
            progress.print(_welcome(status))

    relax_collector()
    asyncio.run(supervise(cloud, state, progress, welcome))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser(
        "up", help="start a local cloud, deploy the stacks to it, and run until Ctrl-C"
    )
    up.add_argument(
        "--port",
        type=int,
        default=4566,
        help="port of the endpoint; 0 for any free one (default: %(default)s)",
    )
    up.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="keep the tables in DIR for the next start (default: in memory, lost at the end)",
    )
    up.add_argument(
        "--no-deploy", dest="deploy", action="store_false", help="start without the stacks"
    )
    up.add_argument(
        "--context",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="setting of the deployed stacks (stacks/overrides.py); may be repeated",
    )
    up.add_argument("--brief", action="store_true", help="do not print how to use the cloud")
    add_arguments(up)
    down = commands.add_parser("down", help="stop a running local cloud")
    for command in (up, down):
        command.add_argument(
            "--state",
            type=Path,
            default=DEFAULT_FOLDER,
            metavar="DIR",
            help="folder of logs and results, one for each cloud (default: %(default)s)",
        )
    return parser


def _welcome(status: Status) -> str:
    aws = f"AWS endpoint: {status.endpoint} (region {REGION}, any credentials)"
    stop = "Press Ctrl-C here, or run `make down` elsewhere, to stop it."
    if status.api is None:
        return f"\nThe local cloud is ready, without the stacks.\n\n{aws}\n\n{stop}"
    event = r"{\"series\": \"demo\", \"time\": \"$(date -u +%FT%TZ)\", \"payload\": {\"n\": 1}}"
    return f"""
The local cloud is ready.

HTTP API:     {status.api}
{aws}

Write an event, then read it back:
  curl -s {status.api}/v1/events -H 'content-type: application/json' \\
    -d "{{\\"events\\": [{event}]}}"
  curl -s '{status.api}/v1/events?series=demo&start=2000-01-01T00:00:00Z&end=2100-01-01T00:00:00Z'

{stop}"""


if __name__ == "__main__":
    sys.exit(main())
