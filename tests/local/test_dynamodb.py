import json

import pytest

from dynamoheat.serve.wire import Reply, refusal
from local.dynamodb import is_missing_table, table_names


@pytest.mark.parametrize(
    ("request_body", "names"),
    [
        ({"TableName": "a", "Key": {"RequestItems": {"S": "b"}}}, {"a"}),
        ({"TableName": "arn:aws:dynamodb:us-east-1:000000000000:table/a"}, {"a"}),
        ({"RequestItems": {"a": [], "b": []}}, {"a", "b"}),
        ({"TransactItems": [{"Put": {"TableName": "a"}}, {"Get": {"TableName": "b"}}]}, {"a", "b"}),
        ({"TransactItems": None}, set()),
        ({"TableName": 1}, set()),
        ([], set()),
    ],
)
def test_every_table_that_a_request_names_is_found(request_body: object, names: set[str]) -> None:
    assert table_names(json.dumps(request_body).encode()) == names


def test_a_malformed_request_names_no_table() -> None:
    assert table_names(b"\xff{") == set()


def test_only_a_missing_table_counts_as_one() -> None:
    assert is_missing_table(refusal(400, "ResourceNotFoundException", "no"))
    assert not is_missing_table(refusal(400, "ValidationException", "no"))
    assert not is_missing_table(Reply(200, b'{"a": "#ResourceNotFoundException"}'))


def test_a_refusal_has_the_shape_of_dynamodbs_errors() -> None:
    assert json.loads(refusal(500, "InternalServerError", "why").body) == {
        "__type": "com.amazonaws.dynamodb.v20120810#InternalServerError",
        "message": "why",
    }
