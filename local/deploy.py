"""Deploy the real stacks to the local cloud with the real CDK CLI."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from local.children import Child, last_lines, spawn, stop
from local.clients import REGION
from local.errors import LocalCloudError
from local.ministack import ACCOUNT
from local.progress import ProgressPrinter
from local.state import State
from toolchain.node import ROOT, MissingToolError, cdk_command, node_environment

__all__ = ["Deployment", "Outputs", "deploy"]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Outputs of the deployed stacks, by stack and name."""

    values: Mapping[str, Mapping[str, str]]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file that the CDK CLI wrote. Stacks without outputs leave no file."""
        return cls(json.loads(path.read_text()) if path.exists() else {})

    def find(self, name: str) -> str | None:
        """Return an output by name, whichever stack has it, None where no stack does."""
        return next((stack[name] for stack in self.values.values() if name in stack), None)


async def deploy(deployment: "Deployment", progress: ProgressPrinter) -> Outputs:
    """Run all steps of a deployment, with a line of progress for each."""
    with progress.step("Prepare the account (cdk bootstrap)"):
        await deployment.bootstrap()
    with progress.step("Synthesise the stacks (cdk synth)"):
        await deployment.synth()
    with progress.step("Deploy the stacks (cdk deploy)"):
        return await deployment.deploy()


class Deployment:
    """The CDK commands of one deployment. Synthesis starts at once and runs in the background."""

    def __init__(self, endpoint: str, state: State, context: Sequence[str] = ()) -> None:
        """Start the synthesis.

        Args:
            endpoint: the local cloud's endpoint, which need not answer yet.
            state: the folder of logs and results.
            context: `name=value` for the context of the app.

        Raises:
            LocalCloudError: The CDK CLI is not installed.
        """
        self._state = state
        try:
            self._environment = _environment(endpoint, state)
            self._synthesis = self._start(
                "synth", "-c", "stage=local", "-c", f"endpoint={endpoint}", "-q",
                *(word for setting in context for word in ("-c", setting)),
                "-o", str(state.assembly),
            )  # fmt: skip
        except MissingToolError as error:
            raise LocalCloudError(str(error)) from error

    async def bootstrap(self) -> None:
        """Create what the CDK needs in an account.

        Raises:
            LocalCloudError: The command fails.
        """
        # From the state's folder, where there is no app, so that the stacks are not synthesised.
        child = self._start("bootstrap", f"aws://{ACCOUNT}/{REGION}", folder=self._state.folder)
        await self._finish("bootstrap", child)

    async def synth(self) -> None:
        """Wait for the synthesis.

        Raises:
            LocalCloudError: It fails.
        """
        await self._finish("synth", self._synthesis)

    async def deploy(self) -> Outputs:
        """Deploy all stacks.

        Raises:
            LocalCloudError: The command fails.
        """
        self._state.outputs.unlink(missing_ok=True)
        child = self._start(
            "deploy", "--all", "--app", str(self._state.assembly), "--require-approval", "never",
            "--outputs-file", str(self._state.outputs),
        )  # fmt: skip
        await self._finish("deploy", child)
        return Outputs.read(self._state.outputs)

    def cancel(self) -> None:
        """Stop the synthesis if it still runs."""
        stop(self._synthesis)

    def _start(self, command: str, *arguments: str, folder: Path = ROOT) -> Child:
        self._log(command).unlink(missing_ok=True)
        return spawn(
            cdk_command([command, *arguments, "--no-color", "--ci"]),
            log=self._log(command),
            env=self._environment,
            cwd=folder,
        )

    async def _finish(self, command: str, child: Child) -> None:
        try:
            code = await asyncio.to_thread(child.wait)
        finally:
            stop(child)
        if code != 0:
            log = self._log(command)
            raise LocalCloudError(
                f"`cdk {command}` failed with exit code {code}. Its output is in {log}.",
                log_lines=last_lines(log, 15),
            )

    def _log(self, command: str) -> Path:
        return self._state.logs / f"cdk-{command}.log"


def _environment(endpoint: str, state: State) -> dict[str, str]:
    """Return an environment in which the CDK CLI and its app know this cloud and no other."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    return node_environment(inherited) | {
        "CDK_HOME": str(state.cdk_home),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": f"127.0.0.1,localhost,{os.environ.get('NO_PROXY', '')}",
    }
