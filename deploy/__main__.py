"""Commands: `python -m deploy deploy|diff|destroy|bootstrap [STAGE]`."""

import argparse
import os
import sys
from collections.abc import Sequence

import boto3

from toolchain.node import MissingToolError, run_cdk, use_pinned_node

use_pinned_node()  # importing the stages imports aws_cdk, which starts Node
from deploy.account import Account, find_account  # noqa: E402
from deploy.commands import COMMANDS, Tools, find_stage  # noqa: E402
from deploy.errors import DeployError  # noqa: E402

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: the CDK's, or 1 where something is missing."""
    parser = argparse.ArgumentParser(prog="python -m deploy", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("stage", nargs="?", default="")
    options = parser.parse_args(arguments)
    tools = Tools(_find_account, run_cdk, _say, _ask, os.environ)
    try:
        stage = find_stage(options.stage, options.command)
        return COMMANDS[options.command](stage, tools)
    except (DeployError, MissingToolError) as error:
        sys.stderr.write(f"{options.command}: {error}\n")
        return 1


def _find_account() -> Account:
    return find_account(boto3.Session(region_name=os.environ.get("AWS_REGION")))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()  # before what the CDK prints


def _ask(question: str) -> str:
    try:
        return input(question)
    except EOFError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
