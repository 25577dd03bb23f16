"""Settings of boto3 clients for local endpoints, whatever the caller's own AWS configuration."""

from typing import TypedDict

__all__ = ["REGION", "ClientSettings", "client_settings"]

REGION = "us-east-1"


class ClientSettings(TypedDict):
    """Keyword arguments of `boto3.client`."""

    endpoint_url: str
    region_name: str
    aws_access_key_id: str
    aws_secret_access_key: str


def client_settings(endpoint_url: str) -> ClientSettings:
    """Return the settings of a client. Any credentials will do, but boto3 requires some."""
    return ClientSettings(
        endpoint_url=endpoint_url,
        region_name=REGION,
        aws_access_key_id="local",
        aws_secret_access_key="local",  # noqa: S106
    )
