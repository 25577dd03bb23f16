"""What a boto3 client is configured with still holds for requests that go around its serialiser."""

import re
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from botocore.exceptions import ClientError

from spillway import EventStore, OutcomeUnknownError, UnreachableError
from spillway.dynamodb.boto import call_through
from tests.support.clients import client_with, credentials, refreshing_credentials
from tests.support.loopback import (
    GARBLE,
    HANG,
    HANG_UP,
    Answer,
    Endpoint,
    Received,
    endpoint,
    proxy,
)

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "AWS_CA_BUNDLE", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with endpoint() as running:
        yield running


def _call_once(client: "DynamoDBClient") -> None:
    try:
        call_through(client)("Query", {"TableName": "T"})
    finally:
        client.close()


def _scope(request: Received) -> list[str]:
    found = re.search(r"Credential=([^,]+), ", request.headers["Authorization"])
    assert found
    return found[1].split("/")


def test_requests_are_signed_for_the_clients_key_and_region(server: Endpoint) -> None:
    _call_once(client_with(server.url, held=credentials("AKIAMINE"), region="ap-south-1"))
    (request,) = server.received
    key, _, region, service, end = _scope(request)
    assert (key, region, service, end) == ("AKIAMINE", "ap-south-1", "dynamodb", "aws4_request")
    assert request.headers["Authorization"].startswith("AWS4-HMAC-SHA256 ")
    assert request.headers["Host"] == f"127.0.0.1:{server.port}"


def test_a_session_token_is_sent_and_signed(server: Endpoint) -> None:
    _call_once(client_with(server.url, held=credentials(token="TOKEN")))  # noqa: S106
    (request,) = server.received
    assert request.headers["X-Amz-Security-Token"] == "TOKEN"
    assert "x-amz-security-token" in request.headers["Authorization"]


def test_the_signature_is_the_one_that_boto3_makes(server: Endpoint) -> None:
    client = client_with(server.url)
    client.query(TableName="T", KeyConditionExpression="#p = :p")
    call_through(client)("Query", {"TableName": "T", "KeyConditionExpression": "#p = :p"})
    client.close()
    theirs, ours = server.received
    assert ours.headers["X-Amz-Target"] == theirs.headers["X-Amz-Target"]
    signed = [
        re.findall(r"SignedHeaders=([^,]+)", each.headers["Authorization"])
        for each in server.received
    ]
    assert signed[0] == signed[1]
    assert ours.target == theirs.target == "/"


def test_credentials_are_refreshed_before_they_expire(server: Endpoint) -> None:
    moment = [NOW]
    fetched: list[str] = []

    def fetch() -> dict[str, str]:
        fetched.append(f"AKIA{len(fetched)}")
        expiry = (moment[0] + timedelta(hours=1)).isoformat()
        return {
            "access_key": fetched[-1],
            "secret_key": "secret",
            "token": f"token-{len(fetched)}",
            "expiry_time": expiry,
        }

    client = client_with(server.url, held=refreshing_credentials(fetch, lambda: moment[0]))
    call = call_through(client)
    for minutes in (0, 10, 55, 1):
        moment[0] += timedelta(minutes=minutes)
        call("Query", {})
    client.close()
    assert [_scope(request)[0] for request in server.received] == [
        "AKIA0",
        "AKIA0",
        "AKIA1",
        "AKIA1",
    ]
    assert server.received[-1].headers["X-Amz-Security-Token"] == "token-2"


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "AssumeRole"),
        RuntimeError(
            "Credentials were refreshed, but the refreshed credentials are still expired."
        ),
    ],
)
def test_credentials_that_can_not_be_refreshed_send_nothing(
    server: Endpoint, error: Exception
) -> None:
    moment = [NOW]
    expiry = (NOW + timedelta(minutes=30)).isoformat()
    answers: list[dict[str, str]] = [
        {"access_key": "A", "secret_key": "s", "token": "t", "expiry_time": expiry}
    ]

    def fetch() -> dict[str, str]:
        if not answers:
            raise error
        return answers.pop()

    client = client_with(server.url, held=refreshing_credentials(fetch, lambda: moment[0]))
    moment[0] += timedelta(hours=1)
    with pytest.raises(UnreachableError):
        _call_once(client)
    assert server.received == []


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def _bundle(authority: trustme.CA, folder: Path) -> str:
    path = folder / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def test_tls_is_verified_against_the_clients_bundle(
    authority: trustme.CA, tls: ssl.SSLContext, tmp_path: Path
) -> None:
    with endpoint(tls) as server:
        _call_once(client_with(server.url, verify=_bundle(authority, tmp_path)))
        assert len(server.received) == 1


@pytest.mark.parametrize("bundle", ["another's", "the machine's"])
def test_a_server_of_another_authority_is_refused_before_anything_is_sent(
    tls: ssl.SSLContext, tmp_path: Path, bundle: str
) -> None:
    verify = _bundle(trustme.CA(), tmp_path) if bundle == "another's" else True
    with endpoint(tls) as server:
        with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
            _call_once(client_with(server.url, verify=verify))
        assert server.received == []


def test_a_server_of_another_name_is_refused(authority: trustme.CA, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("another.example").configure_cert(context)
    with endpoint(context) as server, pytest.raises(UnreachableError):
        _call_once(client_with(server.url, verify=_bundle(authority, tmp_path)))


@pytest.mark.parametrize("answer", [HANG_UP, GARBLE])
def test_tls_that_breaks_after_the_request_leaves_the_outcome_unknown(
    authority: trustme.CA, tls: ssl.SSLContext, tmp_path: Path, answer: Answer
) -> None:
    with endpoint(tls) as server:
        server.answer = lambda _: answer
        with pytest.raises(OutcomeUnknownError):
            _call_once(client_with(server.url, verify=_bundle(authority, tmp_path)))
        assert len(server.received) == 1


def test_a_proxy_is_used_where_one_is_configured(server: Endpoint) -> None:
    with proxy() as between:
        _call_once(client_with(server.url, proxies={"http": between.url}))
        (request,) = between.received
        assert request.target == f"{server.url}/"
        assert _scope(request)[3] == "dynamodb"
    assert server.received == []


def test_tls_goes_through_a_proxys_tunnel(
    authority: trustme.CA, tls: ssl.SSLContext, tmp_path: Path
) -> None:
    with endpoint(tls) as server, proxy() as between:
        bundle = _bundle(authority, tmp_path)
        _call_once(client_with(server.url, verify=bundle, proxies={"https": between.url}))
        assert [each.target for each in between.received] == [f"127.0.0.1:{server.port}"]
        assert len(server.received) == 1


def test_a_proxy_that_is_gone_was_sent_nothing(server: Endpoint) -> None:
    with pytest.raises(UnreachableError):
        _call_once(client_with(server.url, proxies={"http": f"http://127.0.0.1:{_closed_port()}"}))
    assert server.received == []


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_refused_connection_was_sent_nothing() -> None:
    with pytest.raises(UnreachableError):
        _call_once(client_with(f"http://127.0.0.1:{_closed_port()}"))


def test_the_clients_read_timeout_leaves_the_outcome_unknown(server: Endpoint) -> None:
    server.answer = lambda _: HANG
    with pytest.raises(OutcomeUnknownError, match="ReadTimeoutError"):
        _call_once(client_with(server.url, read_timeout=0.2))


def test_a_reset_connection_leaves_the_outcome_unknown() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def reset() -> None:
            connection, _ = listener.accept()
            connection.recv(65_536)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

        thread = threading.Thread(target=reset)
        thread.start()
        with pytest.raises(OutcomeUnknownError):
            _call_once(client_with(f"http://127.0.0.1:{listener.getsockname()[1]}"))
        thread.join()


def test_the_endpoint_may_have_a_path(server: Endpoint) -> None:
    _call_once(client_with(f"{server.url}/dynamodb/"))
    assert server.received[0].target == "/dynamodb/"


def test_without_an_endpoint_the_regions_own_is_used() -> None:
    with proxy() as between:
        client = client_with(region="eu-west-3", proxies={"https": between.url})
        with pytest.raises(UnreachableError):  # the proxy of the tests leads nowhere else
            _call_once(client)
        (request,) = between.received
    assert request.target == "dynamodb.eu-west-3.amazonaws.com:443"


def test_the_user_agent_is_the_clients(server: Endpoint) -> None:
    client = client_with(server.url, user_agent_extra="spillway-test/1")
    _call_once(client)
    agent = server.received[0].headers["User-Agent"]
    assert agent.startswith("Boto3/")
    assert "spillway-test/1" in agent


def test_connections_are_kept_and_shared_between_threads(server: Endpoint) -> None:
    client = client_with(server.url, max_pool_connections=4)
    call = call_through(client)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: call("Query", {}), range(40)))
    client.close()
    assert len(server.received) == 40
    assert len({request.connection for request in server.received}) <= 4


def test_a_store_takes_a_client_as_it_is(server: Endpoint) -> None:
    client = client_with(server.url)
    store: Any = EventStore(client, table="events", layouts="layouts")
    assert store.read("ORD", NOW, NOW + timedelta(hours=1)).events == ()
    client.close()
