"""What throttling costs: BatchWriteItem of 25 through the endpoints, against the same engine alone, side by side.

All engines keep their tables in memory files. The client is a bare HTTP connection that sends ready-made bodies, so that
nothing hides what an endpoint adds. Partitions are made large enough that nothing throttles. Below: CPU of the model alone.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from statistics import median
from urllib.parse import urlsplit

import orjson
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Cost, measure
from benchmarks.tables import EVENTS, connect, native_item
from dynamoheat import Heat, IndexSettings, Key, ModelParameters, TableSettings
from dynamoheat.serve.options import HeatOptions
from local.cloud import running
from local.engine import running_engine
from spillway import keys

_WIDE = HeatOptions(partition_wcu=1e6, parameters=("quota_wcu=1e6",))
_HEADERS = {
    "X-Amz-Target": "DynamoDB_20120810.BatchWriteItem",
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request,"
    " SignedHeaders=host, Signature=0",
}


def _batch(number: int) -> bytes:
    rows = range(number * 25, number * 25 + 25)
    items = [{name: {"S": text} for name, text in native_item(row).items()} for row in rows]
    puts = [{"PutRequest": {"Item": item}} for item in items]
    return orjson.dumps({"RequestItems": {EVENTS: puts}})


def _create(url: str) -> None:
    names = (keys.PARTITION_KEY, keys.SORT_KEY, keys.INDEX_PARTITION_KEY)
    connect(url).create_table(
        TableName=EVENTS,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=[
            {"AttributeName": keys.PARTITION_KEY, "KeyType": "HASH"},
            {"AttributeName": keys.SORT_KEY, "KeyType": "RANGE"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": keys.INDEX_NAME,
                "KeySchema": [
                    {"AttributeName": keys.INDEX_PARTITION_KEY, "KeyType": "HASH"},
                    {"AttributeName": keys.SORT_KEY, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


def _writer(url: str, batches: int, runs: int) -> Callable[[], None]:
    connection = HTTPConnection(urlsplit(url).netloc)
    # Made beforehand, and each new: what is replaced costs the engine another time.
    bodies = [[_batch(run * batches + number) for number in range(batches)] for run in range(runs)]

    def write() -> None:
        for body in bodies.pop():
            connection.request("POST", "/", body, _HEADERS)
            answer = connection.getresponse()
            if answer.status != 200 or orjson.loads(answer.read()).get("UnprocessedItems"):
                raise RuntimeError("the endpoint throttles: the cost is another")

    return write


@contextmanager
def _endpoint(engine: str) -> Generator[str]:
    command = [sys.executable, "-m", "dynamoheat", "serve", "--engine", engine, "--port", "0"]
    command += _WIDE.to_arguments()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            assert process.stdout is not None  # noqa: S101  # it is a pipe
            yield process.stdout.readline().split()[0]
        finally:
            process.terminate()


def _model_cost(batches: int) -> float:
    """Return the CPU µs of admitting a batch."""
    heat = Heat(ModelParameters(partition_wcu=1e6, quota_wcu=1e6))
    index = IndexSettings(name=keys.INDEX_NAME, key=Key(keys.INDEX_PARTITION_KEY, keys.SORT_KEY))
    key = Key(keys.PARTITION_KEY, keys.SORT_KEY)
    heat.create_table(TableSettings(name=EVENTS, key=key, indexes=(index,)), 0.0)
    spent = 0
    for number in range(batches):
        request = orjson.loads(_batch(number))
        began = time.thread_time_ns()
        heat.admit("BatchWriteItem", request, number * 0.01)
        spent += time.thread_time_ns() - began
    return spent / batches / 1_000


def _print(costs: dict[str, list[Cost]], batches: int, rounds: int) -> None:
    alone = costs["engine alone"]
    table = Table(
        title=f"BatchWriteItem of 25, {batches} a round, {rounds} rounds", title_justify="left"
    )
    for heading in ("", "wall ms/batch (median, least to most)", "wall ÷ engine alone"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, runs in costs.items():
        each = [run.wall * 1e3 / batches for run in runs]
        ratio = median(a.wall / b.wall for a, b in zip(runs, alone, strict=True))
        table.add_row(
            name, f"{median(each):.2f} ({min(each):.2f} to {max(each):.2f})", f"{ratio:.2f}"
        )
    Console(width=100).print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=60, help="a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="of all in turn (%(default)s)")
    given = parser.parse_args()
    with (
        running_engine() as alone,
        running_engine() as behind,
        _endpoint(behind.url) as served,
        running(deploys=False, heat=_WIDE) as cloud,
    ):
        urls = {
            "engine alone": alone.url,
            "python -m dynamoheat serve": served,
            "local cloud's endpoint": cloud.endpoint_url,
        }
        for url in urls.values():
            _create(url)
        writers = {
            name: _writer(url, given.batches, given.rounds + 1) for name, url in urls.items()
        }
        costs = measure(writers, given.rounds)
    _print(costs, given.batches, given.rounds)
    model = min(_model_cost(500) for _ in range(5))
    Console().print(f"Admitting such a batch in the model alone: {model:.0f} µs of CPU.")


if __name__ == "__main__":
    main()
