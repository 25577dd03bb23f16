"""What one partition takes: writes at an ever-increasing sort key, eventually consistent queries."""

from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Any, Final

from dynamoheat.studies.validation.case import Case, Expected, Figures
from dynamoheat.studies.validation.loads import item, offered, puts, queries
from dynamoheat.studies.validation.trial import TABLE, Trial, table

__all__ = ["CASES", "address_queries"]

_MINUTES: Final = 18  # long enough for the first split


def _ascending(trial: Trial) -> Figures:
    heat = trial.model(table())
    items = (item("one", f"{n:09}") for n in count())
    passed = offered(trial, puts(heat, items), 1_400, 3_600)
    settled = passed[2:]
    return sum(settled) / len(settled), float(len(heat.resource(TABLE).splits))


def address_queries(random: Random) -> Iterator[dict[str, Any]]:
    """The last address range that begins at or before a random address."""
    while True:
        yield {
            "TableName": TABLE,
            "KeyConditionExpression": "pk = :p AND sk <= :s",
            "ExpressionAttributeValues": {
                ":p": {"S": "one"},
                ":s": {"S": f"{random.random():.9f}"},
            },
            "ScanIndexForward": False,
            "Limit": 1,
        }


def _saturated_by_queries(trial: Trial) -> Figures:
    heat = trial.model(table())
    send = queries(heat, address_queries(trial.random()))
    units = offered(trial, send, 12_000, _MINUTES * 60)
    splits = heat.resource(TABLE).splits
    first = splits[0].at * trial.time / 60 if splits else float(_MINUTES)
    steady = sum(units[2:600]) / 598
    return steady * 2, steady, first


CASES: Final = (
    Case(
        number="1",
        given="new on-demand table, one partition key, ascending sort keys, saturating, an hour",
        source="AWS Database Blog, Scaling DynamoDB, part 1 (2023)",
        run=_ascending,
        expected=(
            Expected.near("writes/s", 1_000, 0.02),
            Expected.exactly("splits", 0),
        ),
        limits=0.05,
        quick=0.01,
    ),
    Case(
        number="5",
        given="on demand, one key, eventually consistent queries, saturating, ten minutes",
        source="AWS Database Blog, Scaling DynamoDB, part 2 (2023)",
        run=_saturated_by_queries,
        expected=(
            Expected.near("reads/s", 9_000, 0.03),
            Expected.near("read units/s", 4_500, 0.03),
            Expected("minute of the first split", "none within 10", "none", 10),
        ),
        seeds=10,
        limits=0.02,
        quick=0.01,
    ),
)
