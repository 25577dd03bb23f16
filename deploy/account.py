"""The AWS account that a stage is deployed to: its credentials, its region, its stacks."""

from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from deploy.errors import DeployError

__all__ = ["Account", "find_account"]

_TOOLKIT: Final = "CDKToolkit"  # the stack that `cdk bootstrap` makes


@dataclass(frozen=True, slots=True)
class Account:
    """An account and a region. `session` is a boto3 session."""

    number: str
    region: str
    session: Any

    def __str__(self) -> str:
        """Return it as the CDK writes it."""
        return f"aws://{self.number}/{self.region}"

    def is_bootstrapped(self) -> bool:
        """Tell whether the CDK has its bucket and roles here."""
        return self.has_stack(_TOOLKIT)

    def has_stack(self, name: str) -> bool:
        """Return whether a stack exists.

        Raises:
            DeployError: CloudFormation refuses or does not answer.
        """
        try:
            self.session.client("cloudformation").describe_stacks(StackName=name)
        except ClientError as error:
            if error.response["Error"]["Code"] == "ValidationError":  # "does not exist"
                return False
            raise DeployError(f"CloudFormation refuses to describe {name}: {error}") from error
        except BotoCoreError as error:
            raise DeployError(f"CloudFormation does not answer: {error}") from error
        return True


def find_account(session: Any) -> Account:
    """Return the account and region of the credentials.

    Raises:
        DeployError: There is no region, or the credentials don't work.
    """
    region = session.region_name
    if not region:
        raise DeployError(
            "no region: choose one, such as AWS_REGION=eu-central-1, or"
            " `aws configure set region …`"
        )
    try:
        number = session.client("sts").get_caller_identity()["Account"]
    except (BotoCoreError, ClientError) as error:
        raise DeployError(
            f"no usable AWS credentials ({error}). Log in, such as by `aws sso login` or"
            " `aws configure`, or name a profile: AWS_PROFILE=…"
        ) from error
    return Account(str(number), str(region), session)
