"""What admitting a batch costs: `python -m tests.dynamoheat.cost`. CPU of this thread, the best of five runs.

Each batch is 25 puts of events with a global index, decoded afresh, as an endpoint has them: sizes,
capacity units, index writes, buckets, counters. `settled` adds the engine's (empty) answer.
"""

import sys
import time
from random import Random

import orjson

from dynamoheat import Heat, IndexSettings, Key, ModelParameters, TableSettings

TABLE = TableSettings(
    name="events",
    key=Key("PK", "SK"),
    indexes=(IndexSettings(name="GSI1-Read-Aggregator", key=Key("GSI1PK", "SK")),),
)
BATCHES = 1_000


def batch(number: int, keys: int, random: Random) -> bytes:
    """One BatchWriteItem on the wire."""
    puts = []
    for row in range(number * 25, number * 25 + 25):
        shard = random.randrange(keys)
        time_ = f"2001-01-01T00:{row // 60 % 60:02}:{row % 60:02}.000000Z"
        one = {
            "PK": {"S": f"ORD#{shard}"},
            "SK": {"S": f"{time_}#{row:07}"},
            "payload": {"S": '{"delay":33,"distance":1234,"destination":"LAX"}'},
            "GSI1PK": {"S": f"ORD#2001-01-01T00#{shard}"},
            "expires": {"N": str(1_700_000_000 + row)},
        }
        puts.append({"PutRequest": {"Item": one}})
    return orjson.dumps({"RequestItems": {TABLE.name: puts}})


def cost(partitions: int, keys: int, *, settled: bool) -> float:
    """Return the mean CPU time of a batch in microseconds."""
    heat = Heat(ModelParameters(on_demand_partitions=partitions))
    heat.create_table(TABLE, 0.0)
    random = Random(1)
    spent = 0
    for number in range(BATCHES):
        request = orjson.loads(batch(number, keys, random))
        start = time.thread_time_ns()
        admission = heat.admit("BatchWriteItem", request, number * 0.03)
        if settled:
            heat.settle(admission, {}, number * 0.03)
        spent += time.thread_time_ns() - start
        if admission.throttles:
            raise RuntimeError("the load throttles: its cost is another")
    return spent / BATCHES / 1_000


def main() -> None:
    """Print a table."""
    sys.stdout.write("partitions  keys  admitted µs  settled µs  (a batch of 25, CPU)\n")
    for partitions, keys in ((4, 16), (40, 256)):
        admitted = min(cost(partitions, keys, settled=False) for _ in range(5))
        settled = min(cost(partitions, keys, settled=True) for _ in range(5))
        sys.stdout.write(f"{partitions:10}  {keys:4}  {admitted:11.1f}  {settled:10.1f}\n")


if __name__ == "__main__":
    main()
