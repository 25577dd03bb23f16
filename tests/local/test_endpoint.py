"""What passes through the one address of the local cloud."""

import asyncio
import gzip
import json
import os
import statistics
import zlib
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from time import perf_counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config

from dynamoheat.serve import LOOPBACK, EndpointCall, Forward, Reply, refusal
from local.clients import client_settings
from local.cloud import Cloud
from local.dynamodb import DynamoDB
from tests.local.processes import option_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.cloud


@pytest.fixture
def connection(cloud: Cloud) -> Iterator[HTTPConnection]:
    with closing(HTTPConnection(urlsplit(cloud.endpoint_url).netloc, timeout=300)) as opened:
        yield opened


def test_everything_but_dynamodb_reaches_the_emulated_aws(cloud: Cloud) -> None:
    queues = boto3.client("sqs", **cloud.client_settings())
    url = queues.create_queue(QueueName="queue")["QueueUrl"]
    queues.send_message(QueueUrl=url, MessageBody="hello")
    (message,) = queues.receive_message(QueueUrl=url)["Messages"]
    assert message["Body"] == "hello"


def test_big_objects_stream_through_unchanged(cloud: Cloud) -> None:
    path_style = Config(s3={"addressing_style": "path"})
    objects = boto3.client("s3", config=path_style, **cloud.client_settings())
    objects.create_bucket(Bucket="bucket")
    content = os.urandom(5_000_000)
    objects.put_object(Bucket="bucket", Key="a b/c%20d", Body=content)
    answer = objects.get_object(Bucket="bucket", Key="a b/c%20d")
    assert zlib.crc32(answer["Body"].read()) == zlib.crc32(content)
    assert objects.head_object(Bucket="bucket", Key="a b/c%20d")["ContentLength"] == 5_000_000


def test_a_packed_body_stays_packed(cloud: Cloud) -> None:
    path_style = Config(s3={"addressing_style": "path"})
    objects = boto3.client("s3", config=path_style, **cloud.client_settings())
    objects.create_bucket(Bucket="packed")
    content = gzip.compress(b"text" * 100)
    objects.put_object(Bucket="packed", Key="key", Body=content, ContentEncoding="gzip")
    answer = objects.get_object(Bucket="packed", Key="key")
    assert answer["Body"].read() == content


def test_one_connection_carries_calls_of_all_kinds(connection: HTTPConnection) -> None:
    headers = {
        "X-Amz-Target": "DynamoDB_20120810.ListTables",
        "Content-Type": "application/x-amz-json-1.0",
    }
    for _ in range(3):
        connection.request("POST", "/", b"{}", headers)
        assert "TableNames" in json.loads(connection.getresponse().read())
        connection.request("GET", "/_ministack/health")
        answer = connection.getresponse()
        assert answer.status == 200
        answer.read()


def test_a_client_that_asks_first_is_told_to_continue(cloud: Cloud) -> None:
    async def scenario() -> bytes:
        parts = urlsplit(cloud.endpoint_url)
        reader, writer = await asyncio.open_connection(LOOPBACK, parts.port)
        writer.write(
            b"PUT /asked HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n"
        )
        first = await reader.readline()
        writer.close()
        return first

    assert asyncio.run(scenario()) == b"HTTP/1.1 100 Continue\r\n"


@pytest.mark.parametrize("body", [b"", b"not json", b"[]", b'{"TableName": 1}', b"\xff" * 100])
def test_a_malformed_call_gets_an_error_in_dynamodbs_shape(
    connection: HTTPConnection, body: bytes
) -> None:
    for operation in ("GetItem", "BatchWriteItem", "CreateTable", "DescribeTable", "Nonsense"):
        headers = {
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "AWS4-HMAC-SHA256 Credential=local/20200101/us-east-1/dynamodb/"
            "aws4_request, SignedHeaders=host, Signature=0",
            "X-Amz-Date": "20200101T000000Z",
        }
        connection.request("POST", "/", body, headers)
        answer = connection.getresponse()
        told = answer.read()
        assert answer.status == 400, (operation, told)
        assert "__type" in json.loads(told), (operation, told)


def test_a_large_page_of_a_query_arrives_whole(dynamodb: "DynamoDBClient") -> None:
    dynamodb.create_table(
        TableName="Large",
        KeySchema=[
            {"AttributeName": "PK", "KeyType": "HASH"},
            {"AttributeName": "SK", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "PK", "AttributeType": "S"},
            {"AttributeName": "SK", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    for number in range(4):
        big = {"PK": {"S": "a"}, "SK": {"S": str(number)}, "text": {"S": "x" * 300_000}}
        dynamodb.put_item(TableName="Large", Item=big)
    pages = dynamodb.get_paginator("query").paginate(
        TableName="Large",
        KeyConditionExpression="PK = :p",
        ExpressionAttributeValues={":p": {"S": "a"}},
    )
    items = [item for page in pages for item in page["Items"]]
    assert [len(item["text"]["S"]) for item in items] == [300_000] * 4
    dynamodb.delete_table(TableName="Large")


def test_who_admits_may_answer_instead_of_the_engine() -> None:
    seen: list[str] = []

    async def engine(call: EndpointCall) -> Reply:
        seen.append(call.operation)
        return Reply(200, b"{}")

    async def reads_only(call: EndpointCall, forward: Forward) -> Reply:
        if call.operation == "PutItem":
            return refusal(400, "ProvisionedThroughputExceededException", "slow down")
        return await forward(call)

    front = DynamoDB(engine=engine, declared=engine, replicator=None, admit=reads_only)  # type: ignore[arg-type]
    replies = [
        asyncio.run(front.answer(EndpointCall(name, b"{}", {}))) for name in ("PutItem", "GetItem")
    ]
    assert [reply.status for reply in replies] == [400, 200]
    assert seen == ["GetItem"]


def test_the_endpoint_adds_less_than_the_engine_takes(
    cloud: Cloud, dynamodb: "DynamoDBClient"
) -> None:
    key = {"AttributeName": "PK", "KeyType": "HASH"}
    dynamodb.create_table(
        TableName="Timed",
        KeySchema=[key],  # type: ignore[list-item]
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    port = option_of(cloud.engine_pid, "--port")
    straight: DynamoDBClient = boto3.client(
        "dynamodb", **client_settings(f"http://{LOOPBACK}:{port}")
    )

    def seconds(client: "DynamoDBClient", number: int) -> float:
        names = (f"{number}-{position}" for position in range(25))
        puts = [{"PutRequest": {"Item": {"PK": {"S": name}}}} for name in names]
        began = perf_counter()
        client.batch_write_item(RequestItems={"Timed": puts})  # type: ignore[dict-item]
        return perf_counter() - began

    pairs = [(seconds(straight, n), seconds(dynamodb, n)) for n in range(60)]
    alone, through = (statistics.median(column) for column in zip(*pairs, strict=True))
    assert through < 2 * alone
    dynamodb.delete_table(TableName="Timed")
