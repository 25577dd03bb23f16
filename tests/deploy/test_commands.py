"""The deploy commands: what they refuse and why, what they say, what they have the CDK do."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from deploy.account import Account, find_account
from deploy.commands import COMMANDS, Tools, find_stage
from deploy.errors import DeployError
from stacks.config import STAGES, Stage

DEV = STAGES["dev"]


@dataclass
class FakeSession:
    """AWS as the commands see it: an identity, and stacks that exist."""

    stacks: set[str] = field(default_factory=lambda: {"CDKToolkit"})
    failure: Exception | None = None
    region_name: str | None = "eu-central-1"

    def client(self, service: str) -> Any:
        assert service in {"sts", "cloudformation"}
        return self

    def get_caller_identity(self) -> dict[str, str]:
        if self.failure is not None:
            raise self.failure
        return {"Account": "123456789012"}

    def describe_stacks(self, *, StackName: str) -> object:  # noqa: N803  AWS's name
        if StackName not in self.stacks:
            raise _error("ValidationError", f"Stack with id {StackName} does not exist")
        return {"Stacks": [{}]}


def _error(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "Operation")


@dataclass
class Terminal:
    """Whoever typed the command, and the CDK."""

    session: FakeSession = field(default_factory=FakeSession)
    typed: str = ""
    code: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    ran: list[list[str]] = field(default_factory=list)

    def do(self, command: str, stage: Stage = DEV) -> int:
        return COMMANDS[command](stage, self.tools())

    def tools(self) -> Tools:
        return Tools(
            find_account=lambda: find_account(self.session),
            run=self._run,
            say=self.said.append,
            ask=self._ask,
            environment=self.environment,
        )

    def _run(self, arguments: Sequence[str]) -> int:
        self.ran.append(list(arguments))
        return self.code

    def _ask(self, question: str) -> str:
        self.asked.append(question)
        return self.typed


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_missing_stage_is_asked_for_with_a_command_that_works(command: str) -> None:
    with pytest.raises(DeployError, match=rf"make {command} STAGE=dev.*local, dev, prod"):
        find_stage("", command)


def test_an_unknown_stage_is_refused_with_those_there_are() -> None:
    with pytest.raises(DeployError, match="no stage 'production': there are local, dev, prod"):
        find_stage("production", "deploy")


def test_a_deployment_says_where_to_and_what_before_the_cdk_runs() -> None:
    terminal = Terminal()
    assert terminal.do("deploy") == 0
    assert terminal.said[0] == (
        "Deploying stage dev to aws://123456789012/eu-central-1:"
        " Spillway-dev-storage, Spillway-dev-cache, Spillway-dev-service."
    )
    assert "1 x dax.t3.small, about $29 a month used or not" in terminal.said[1]
    assert terminal.ran == [["deploy", "--all", "-c", "stage=dev"]]


def test_a_deployment_of_prod_says_that_it_will_be_hard_to_delete() -> None:
    terminal = Terminal()
    assert terminal.do("deploy", STAGES["prod"]) == 0
    assert "3 x dax.t3.small, about $88" in terminal.said[1]
    assert "refuse deletion" in terminal.said[2]


def test_what_the_cdk_ends_with_is_what_the_command_ends_with() -> None:
    for command in COMMANDS:
        assert Terminal(code=3, typed="dev").do(command) == 3


def test_a_region_without_the_cdks_bucket_gets_the_command_that_makes_it() -> None:
    terminal = Terminal(FakeSession(stacks=set()))
    with pytest.raises(DeployError, match="make bootstrap"):
        terminal.do("deploy")
    assert terminal.ran == []
    assert terminal.do("bootstrap") == 0
    assert terminal.ran == [["bootstrap", "aws://123456789012/eu-central-1", "-c", "stage=dev"]]


@pytest.mark.parametrize(
    "failure", [NoCredentialsError(), _error("ExpiredToken", "The token has expired")]
)
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_unusable_credentials_stop_every_command_with_what_to_do(
    command: str, failure: Exception
) -> None:
    terminal = Terminal(FakeSession(failure=failure), typed="dev")
    with pytest.raises(
        DeployError, match=r"(?i)no usable AWS credentials.*(unable|expired).*login"
    ):
        terminal.do(command)
    assert terminal.ran == []


def test_a_missing_region_is_asked_for() -> None:
    with pytest.raises(DeployError, match="AWS_REGION"):
        Terminal(FakeSession(region_name=None)).do("deploy")


def test_a_refusal_to_describe_stacks_is_not_taken_for_their_absence() -> None:
    class Denied(FakeSession):
        def describe_stacks(self, *, StackName: str) -> object:  # noqa: N803
            raise _error("AccessDenied", f"not for {StackName}")

    with pytest.raises(DeployError, match="AccessDenied"):
        Terminal(Denied()).do("deploy")


def test_a_comparison_changes_nothing() -> None:
    terminal = Terminal(FakeSession(stacks=set()))
    assert terminal.do("diff") == 0
    assert terminal.ran == [["diff", "-c", "stage=dev"]]


def test_a_stage_is_deleted_once_its_name_was_typed() -> None:
    terminal = Terminal(typed=" dev\n")
    assert terminal.do("destroy") == 0
    assert "aws://123456789012/eu-central-1" in terminal.said[0]
    assert terminal.ran == [["destroy", "--all", "--force", "-c", "stage=dev"]]


@pytest.mark.parametrize("typed", ["", "y", "yes", "DEV", "prod"])
def test_anything_else_deletes_nothing(typed: str) -> None:
    terminal = Terminal(typed=typed)
    with pytest.raises(DeployError, match="nothing was deleted"):
        terminal.do("destroy")
    assert (len(terminal.asked), terminal.ran) == (1, [])


def test_a_protected_stage_is_not_deleted_whatever_is_typed() -> None:
    terminal = Terminal(typed="prod")
    with pytest.raises(DeployError, match=r"(?s)protected.*deletion_protection=False.*make deploy"):
        terminal.do("destroy", STAGES["prod"])
    assert (terminal.asked, terminal.ran) == ([], [])


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_the_local_stage_goes_to_a_running_local_cloud_only(command: str) -> None:
    stage = STAGES["local"]
    with pytest.raises(DeployError, match="make up"):
        Terminal().do(command, stage)
    url = "http://127.0.0.1:4566"
    terminal = Terminal(typed="local", environment={"AWS_ENDPOINT_URL": url})
    assert terminal.do(command, stage) == 0
    assert terminal.ran[0][-4:] == ["-c", "stage=local", "-c", f"endpoint={url}"]


def test_a_cache_that_was_switched_off_but_still_exists_is_mentioned() -> None:
    stacks = {"CDKToolkit", "Spillway-dev-cache"}
    uncached = replace(DEV, cache=None)
    for command in ("deploy", "destroy"):
        terminal = Terminal(FakeSession(stacks=stacks), typed="dev")
        assert terminal.do(command, uncached) == 0
        assert "delete-stack --stack-name Spillway-dev-cache" in terminal.said[-1]
        terminal = Terminal(FakeSession(stacks=stacks), typed="dev")
        assert terminal.do(command, DEV) == 0
        assert "still exists" not in " ".join(terminal.said)


def test_an_account_reads_as_the_cdk_writes_it() -> None:
    assert str(Account("1", "eu-west-1", None)) == "aws://1/eu-west-1"
