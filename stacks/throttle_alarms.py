"""What is watched on tables: throttling by its reason, each table and each index by itself.

`TableName` alone never includes what an index refused, so every index has alarms of its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_dynamodb as dynamodb

from spillway import keys
from stacks.alarms import AlarmSpec, Audience
from stacks.settings import AlarmRule, AlarmSettings
from stacks.sharded_event_table import ShardedEventTable

__all__ = ["throttle_alarms"]

_SCALER: Final = frozenset({Audience.SCALER})
_PEOPLE: Final = frozenset({Audience.PEOPLE})
_BOTH: Final = _SCALER | _PEOPLE


@dataclass(frozen=True, slots=True)
class _Watched:
    """A table or an index: how its alarms are named, in names and in sentences."""

    name: str
    words: str
    dimensions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _ThrottleRow:
    name: str
    metric: str
    rule: AlarmRule
    told: frozenset[Audience]
    description: str  # `{it}` is the table or the index


def throttle_alarms(tables: ShardedEventTable, rules: AlarmSettings) -> Iterator[AlarmSpec]:
    """Yield the alarms of all three tables and their indexes."""
    of_events = _event_rows(rules)
    for watched, rows in (
        (_watched("Events", tables.events), of_events),
        (
            _watched("Events", tables.events, keys.INDEX_NAME),
            (*of_events, _back_pressure_row(rules)),
        ),
        (_watched("Layouts", tables.layouts), _own_rows(rules, _BOTH, "All else waits")),
        (
            _watched("Layouts", tables.layouts, keys.LAYOUT_INDEX_NAME),
            _own_rows(rules, _BOTH, "Changes of layouts wait"),
        ),
        (_watched("Usage", tables.usage), _own_rows(rules, _PEOPLE, "Growth acts late")),
    ):
        yield from _specs(watched, rows)


def _watched(name: str, table: dynamodb.ITableV2, index: str | None = None) -> _Watched:
    of_table = {"TableName": table.table_name}
    words = f"the {name.lower()} table"
    if index is None:
        return _Watched(name, words, of_table)
    of_index = {**of_table, "GlobalSecondaryIndexName": index}
    return _Watched(f"{name}Index", f"{words}'s index {index}", of_index)


def _specs(watched: _Watched, rows: tuple[_ThrottleRow, ...]) -> Iterator[AlarmSpec]:
    for row in rows:
        yield AlarmSpec(
            name=f"{watched.name}-{row.name}",
            namespace="AWS/DynamoDB",
            metric=row.metric,
            dimensions=watched.dimensions,
            statistic="Sum",
            rule=row.rule,
            told=row.told,
            description=row.description.format(it=watched.words),
        )


def _event_rows(rules: AlarmSettings) -> tuple[_ThrottleRow, ...]:
    return (
        _ThrottleRow(
            "HotWrites",
            "WriteKeyRangeThroughputThrottleEvents",
            rules.hot,
            _SCALER,
            "Writes to a key range of {it} throttle. The scaler finds the series and grows its layout; nothing to do.",
        ),
        _ThrottleRow(
            "StillHotWrites",
            "WriteKeyRangeThroughputThrottleEvents",
            rules.still_hot,
            _PEOPLE,
            "Writes to a key range of {it} go on throttling although layouts grow. Read the scaler's log: it names the series and "
            "why growth stopped (one hot sharding key, too few partitions, a bound that is reached).",
        ),
        _ThrottleRow(
            "HotReads",
            "ReadKeyRangeThroughputThrottleEvents",
            rules.reads,
            _BOTH,
            "Reads of a key range of {it} throttle. More shards do not help reads: let DAX serve them, spread them over time, "
            "or read a copy of the index.",
        ),
        *_rows_of_limits("Write", "Writes to", rules),
        *_rows_of_limits("Read", "Reads of", rules),
    )


def _rows_of_limits(kind: str, action: str, rules: AlarmSettings) -> tuple[_ThrottleRow, ...]:
    return (
        _ThrottleRow(
            f"Provisioned{kind}s",
            f"{kind}ProvisionedThroughputThrottleEvents",
            rules.capacity,
            _BOTH,
            f"{action} {{it}} exceed its provisioned capacity. Raise the maximum of auto scaling, or go on demand; layouts stay.",
        ),
        _ThrottleRow(
            f"Maximum{kind}s",
            f"{kind}MaxOnDemandThroughputThrottleEvents",
            rules.capacity,
            _BOTH,
            f"{action} {{it}} exceed the on-demand maximum that the stage sets. Raise it, or slow the traffic; layouts stay.",
        ),
        _ThrottleRow(
            f"Account{kind}s",
            f"{kind}AccountLimitThrottleEvents",
            rules.account,
            _BOTH,
            f"{action} {{it}} exceed what the account may use in this region. Ask AWS for a higher quota; layouts stay.",
        ),
    )


def _back_pressure_row(rules: AlarmSettings) -> _ThrottleRow:
    return _ThrottleRow(
        "BackPressure",
        "WriteThrottleEvents",
        rules.back_pressure,
        _PEOPLE,
        "DynamoDB refuses writes to the table, of all series, because {it} cannot keep up. See which alarm of the index fires with "
        "this one: its key ranges (the scaler grows index shards) or its capacity.",
    )


def _own_rows(
    rules: AlarmSettings, told: frozenset[Audience], effect: str
) -> tuple[_ThrottleRow, ...]:
    return tuple(
        _ThrottleRow(
            f"Throttled{kind}s",
            f"{kind}ThrottleEvents",
            rules.own_tables,
            told,
            f"{kind}s of {{it}} throttle. {effect}: look for a function that asks far more often than others.",
        )
        for kind in ("Write", "Read")
    )
