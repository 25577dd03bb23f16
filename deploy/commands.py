"""The commands: each says what will happen, checks what it needs, and runs the CDK."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deploy.account import Account
from deploy.errors import DeployError
from stacks.config import STAGES, Stage
from stacks.costs import PRICES
from stacks.names import stack_name, stack_names

__all__ = ["COMMANDS", "Tools", "find_stage"]

_ENDPOINT: Final = "AWS_ENDPOINT_URL"
_LOCAL: Final = "local"


RunCdk = Callable[[Sequence[str]], int]
"""Runs the CDK CLI with these arguments in the foreground and returns its exit code."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What commands call: to find the account, run the CDK, print and ask."""

    find_account: Callable[[], Account]
    run: RunCdk
    say: Callable[[str], None]
    ask: Callable[[str], str]
    environment: Mapping[str, str]


Command = Callable[[Stage, Tools], int]
"""Acts on a stage and returns an exit code; raises DeployError where it can't."""


def find_stage(name: str, command: str) -> Stage:
    """Return the stage of that name.

    Raises:
        DeployError: The name is empty, or there is no such stage.
    """
    names = ", ".join(STAGES)
    if not name:
        raise DeployError(
            f"which stage? Type `make {command} STAGE=dev`; there are {names} (stacks/config.py)"
        )
    stage = STAGES.get(name)
    if stage is None:
        raise DeployError(f"there is no stage {name!r}: there are {names} (stacks/config.py)")
    return stage


def deploy(stage: Stage, tools: Tools) -> int:
    """Deploy all stacks of the stage."""
    account = _account(stage, tools)
    if not account.is_bootstrapped():
        raise DeployError(
            f"the CDK has not been used in {account} yet. Once for each account and region:"
            " `make bootstrap`"
        )
    tools.say(f"Deploying stage {stage.name} to {account}: {', '.join(stack_names(stage))}.")
    for note in _notes(stage):
        tools.say(note)
    code = tools.run(["deploy", "--all", *_context(stage, tools)])
    if code == 0:
        _mention_left_over_cache(stage, account, tools)
    return code


def diff(stage: Stage, tools: Tools) -> int:
    """Show what a deployment would change; nothing is changed."""
    account = _account(stage, tools)
    tools.say(f"Comparing stage {stage.name} with {account}; nothing is changed.")
    return tools.run(["diff", *_context(stage, tools)])


def destroy(stage: Stage, tools: Tools) -> int:
    """Delete all stacks of the stage with their data, once its name has been typed."""
    if stage.deletion_protection:
        raise DeployError(_PROTECTED.format(name=stage.name))
    account = _account(stage, tools)
    tools.say(f"This deletes from {account}: {', '.join(stack_names(stage))}.")
    tools.say("All events, layouts and usage of the stage go with them.")
    if tools.ask(f"Type the stage's name ({stage.name}) to delete it: ").strip() != stage.name:
        raise DeployError("that is not its name: nothing was deleted")
    code = tools.run(["destroy", "--all", "--force", *_context(stage, tools)])
    if code == 0:
        _mention_left_over_cache(stage, account, tools)
    return code


def bootstrap(stage: Stage, tools: Tools) -> int:
    """Create what the CDK itself needs in an account and region: a bucket and roles."""
    account = _account(stage, tools)
    tools.say(f"Bootstrapping {account} for the CDK: a bucket for assets, and roles.")
    return tools.run(["bootstrap", str(account), *_context(stage, tools)])


COMMANDS: Final[Mapping[str, Command]] = {
    "deploy": deploy,
    "diff": diff,
    "destroy": destroy,
    "bootstrap": bootstrap,
}

_PROTECTED: Final = """stage {name} is protected: its stacks refuse deletion, and its tables
outlive them. To delete it after all, data included:
  1. in stacks/config.py give it deletion_protection=False and removal_policy=RemovalPolicy.DESTROY
  2. make deploy STAGE={name}
  3. make destroy STAGE={name}"""


def _account(stage: Stage, tools: Tools) -> Account:
    if stage.name == _LOCAL and _ENDPOINT not in tools.environment:
        raise DeployError(
            "stage local lives in the local cloud: `make up` starts it and deploys to it"
            f" (to deploy to one that runs, set {_ENDPOINT} to its endpoint)"
        )
    return tools.find_account()


def _context(stage: Stage, tools: Tools) -> list[str]:
    context = ["-c", f"stage={stage.name}"]
    if stage.name == _LOCAL:
        context += ["-c", f"endpoint={tools.environment[_ENDPOINT]}"]
    return context


def _notes(stage: Stage) -> list[str]:
    notes = []
    if stage.cache is not None:
        nodes, kind = stage.cache.nodes, stage.cache.node_type
        month = PRICES.dax_month(kind, nodes)
        cost = "" if month is None else f", about ${month:.0f} a month used or not"
        notes.append(f"DAX: {nodes} x {kind}{cost}; it takes about 10 minutes to create.")
    if stage.deletion_protection:
        notes.append("Its tables and stacks refuse deletion from then on.")
    return notes


def _mention_left_over_cache(stage: Stage, account: Account, tools: Tools) -> None:
    # The CDK forgets stacks that its app no longer has; this one costs by the hour.
    name = stack_name(stage, "cache")
    if name not in stack_names(stage) and account.has_stack(name):
        tools.say(
            f"Stack {name} still exists, and DAX costs by the hour. Delete it:"
            f" aws cloudformation delete-stack --stack-name {name}"
        )
