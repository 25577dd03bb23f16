"""boto3 clients for endpoints of tests, untouched by the settings of whoever runs them."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import boto3
import botocore.session
from botocore.config import Config
from botocore.credentials import Credentials, RefreshableCredentials

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["client_with", "credentials", "refreshing_credentials"]

_QUICK: Final = Config(
    connect_timeout=20, read_timeout=50, retries={"total_max_attempts": 1}, max_pool_connections=4
)


def credentials(access_key: str = "AKIATEST", token: str | None = None) -> Credentials:
    return Credentials(access_key, "secret", token)


def refreshing_credentials(
    fetch: Callable[[], dict[str, str]], now: Callable[[], datetime]
) -> RefreshableCredentials:
    """Return credentials that `fetch` renews when their `expiry_time` is near, by the clock `now`."""
    first = fetch()
    return RefreshableCredentials(
        first["access_key"],
        first["secret_key"],
        first["token"],
        datetime.fromisoformat(first["expiry_time"]),
        fetch,
        "test",
        time_fetcher=now,
    )


def client_with(
    endpoint_url: str | None = None,
    *,
    held: Credentials | None = None,
    region: str = "eu-central-1",
    verify: str | bool | None = None,
    **config: Any,
) -> "DynamoDBClient":
    """Return a client that knows nothing but what it is given."""
    session: Any = botocore.session.Session({"config_file": (None, None, "", None)})
    session._credentials = held or credentials()  # noqa: SLF001  no public way to give refreshable ones
    made: DynamoDBClient = boto3.Session(botocore_session=session, region_name=region).client(
        "dynamodb",
        endpoint_url=endpoint_url,
        verify=verify,
        config=_QUICK.merge(Config(**config)),
    )
    return made
