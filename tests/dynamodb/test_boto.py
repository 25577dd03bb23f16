import zlib
from collections.abc import Iterator
from datetime import UTC
from email.utils import parsedate_to_datetime

import orjson
import pytest

from spillway import OutcomeUnknownError, RefusedError, StorageError, ThrottledError
from spillway.dynamodb.boto import call_through
from spillway.dynamodb.port import Call, ConditionFailedError
from tests.support.clients import client_with
from tests.support.loopback import HANG_UP, Answer, Endpoint, answer_json, endpoint

DYNAMODB = "com.amazonaws.dynamodb.v20120810#"
CORAL = "com.amazon.coral.availability#"
TABLE = "arn:aws:dynamodb:eu-central-1:123456789012:table/T"


@pytest.fixture(scope="module")
def server() -> Iterator[Endpoint]:
    with endpoint() as running:
        yield running


@pytest.fixture(scope="module")
def call(server: Endpoint) -> Iterator[Call]:
    client = client_with(server.url)
    yield call_through(client)
    client.close()


def _failure(server: Endpoint, call: Call, answer: Answer) -> StorageError:
    server.answer = lambda _: answer
    with pytest.raises(StorageError) as caught:
        call("Query", {})
    return caught.value


def test_requests_and_responses_are_dynamodbs_own_json(server: Endpoint, call: Call) -> None:
    server.answer = lambda _: answer_json(200, Items=[{"PK": {"S": "é"}}])
    assert call("Query", {"TableName": "日"})["Items"] == [{"PK": {"S": "é"}}]
    sent = server.received[-1]
    assert orjson.loads(sent.body) == {"TableName": "日"}
    assert sent.headers["X-Amz-Target"] == "DynamoDB_20120810.Query"
    assert sent.headers["Content-Type"] == "application/x-amz-json-1.0"


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (400, f"{DYNAMODB}ProvisionedThroughputExceededException", ThrottledError),
        (400, f"{CORAL}ThrottlingException", ThrottledError),
        (400, f"{DYNAMODB}RequestLimitExceeded", ThrottledError),
        (400, "ThrottlingException", ThrottledError),
        (503, f"{CORAL}ThrottlingException", ThrottledError),
        (400, f"{DYNAMODB}ConditionalCheckFailedException", ConditionFailedError),
        (400, f"{DYNAMODB}ResourceNotFoundException", RefusedError),
        (400, "com.amazon.coral.validate#ValidationException", RefusedError),
        (400, "com.amazon.coral.service#UnrecognizedClientException", RefusedError),
        (400, "com.amazon.coral.service#AccessDeniedException", RefusedError),
        (413, "RequestEntityTooLarge", RefusedError),
        (500, f"{DYNAMODB}InternalServerError", OutcomeUnknownError),
        (503, "com.amazon.coral.availability#ServiceUnavailableException", OutcomeUnknownError),
    ],
)
def test_each_kind_of_failure_is_the_error_that_callers_act_on(
    server: Endpoint, call: Call, status: int, kind: str, error: type[StorageError]
) -> None:
    raised = _failure(server, call, answer_json(status, __type=kind, message="why"))
    assert type(raised) is error
    assert (raised.code, raised.message) == (kind.rpartition("#")[2], "why")


@pytest.mark.parametrize("spelling", ["ThrottlingReasons", "throttlingReasons"])
def test_throttles_carry_their_reasons_in_either_spelling(
    server: Endpoint, call: Call, spelling: str
) -> None:
    reasons = [
        {"reason": "TableWriteKeyRangeThroughputExceeded", "resource": TABLE},
        {"reason": "IndexWriteKeyRangeThroughputExceeded", "resource": f"{TABLE}/index/I"},
    ]
    body = {"__type": f"{CORAL}ThrottlingException", spelling: reasons}
    raised = _failure(server, call, answer_json(400, **body))
    assert isinstance(raised, ThrottledError)
    assert [tuple(each) for each in raised.reasons] == [tuple(each.values()) for each in reasons]


def test_reasons_make_a_throttle_of_an_exception_of_any_name(server: Endpoint, call: Call) -> None:
    reasons = [{"reason": "TableWriteMaxOnDemandThroughputExceeded", "resource": TABLE}]
    body = {"__type": "NewThroughputException", "ThrottlingReasons": reasons}
    assert isinstance(_failure(server, call, answer_json(400, **body)), ThrottledError)


@pytest.mark.parametrize(
    "answer",
    [
        HANG_UP,
        Answer(200, b"<html>"),
        Answer(200, b""),
        Answer(200, b"[1]"),
        Answer(502, b"<html>bad gateway</html>"),
        Answer(504, b""),
        Answer(200, b'{"Items":[]', {"Content-Length": "100", "Connection": "close"}),
        Answer(200, b'{"Items":[]}', {"x-amz-crc32": "1"}),
        Answer(400, b'{"__type":"ValidationException"}', {"x-amz-crc32": "1"}),
    ],
)
def test_a_reply_that_can_not_be_trusted_leaves_the_outcome_unknown(
    server: Endpoint, call: Call, answer: Answer
) -> None:
    assert type(_failure(server, call, answer)) is OutcomeUnknownError


def test_a_reply_with_the_right_checksum_is_taken(server: Endpoint, call: Call) -> None:
    body = b'{"Items":[]}'
    server.answer = lambda _: Answer(200, body, {"x-amz-crc32": str(zlib.crc32(body))})
    assert call("Query", {})["Items"] == []


def test_a_response_keeps_the_date_where_boto3_has_it(server: Endpoint, call: Call) -> None:
    server.answer = lambda _: answer_json(200)
    (name, date), *others = call("Query", {})["ResponseMetadata"]["HTTPHeaders"].items()
    assert (name, others) == ("date", [])
    assert parsedate_to_datetime(date).tzinfo is UTC


def test_nothing_is_retried_behind_the_callers_back(server: Endpoint, call: Call) -> None:
    before = len(server.received)
    _failure(server, call, answer_json(500, __type="InternalServerError"))
    _failure(server, call, answer_json(400, __type="ThrottlingException"))
    assert len(server.received) == before + 2


def test_a_failed_condition_carries_the_stored_item(server: Endpoint, call: Call) -> None:
    kind = f"{DYNAMODB}ConditionalCheckFailedException"
    item = {"PK": {"S": "ORD#0"}}
    error = _failure(server, call, answer_json(400, __type=kind, Item=item))
    assert isinstance(error, ConditionFailedError)
    assert error.item == item
