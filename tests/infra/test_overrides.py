"""What `-c name=value` changes of the local stage, and of no other."""

from collections.abc import Callable
from typing import Any

import pytest

from spillway.cdk.settings import Capacity, OnDemand, Units
from stacks.config import STAGES, Stage
from stacks.overrides import OVERRIDES, OverrideError, overridden

LOCAL = STAGES["local"]

CHANGES: dict[str, tuple[str, Callable[[Stage], Any], Any]] = {
    "endpoint": (
        "http://127.0.0.1:9",
        lambda stage: stage.functions.endpoint,
        "http://127.0.0.1:9",
    ),
    "partition_wcu": ("50", lambda stage: stage.growth.partition_wcu, 50),
    "writers_grow": ("false", lambda stage: stage.growth.writers, False),
    "dry_run": ("true", lambda stage: stage.growth.dry_run, True),
    "alarm_threshold": ("3", lambda stage: stage.alarms.capacity.threshold, 3),
    "alarm_periods": (
        "2",
        lambda stage: (stage.alarms.hot.periods, stage.alarms.still_hot.datapoints),
        (2, 2),
    ),
    "shrink_window_hours": ("0", lambda stage: stage.growth.shrink_window_hours, 0),
    "provisioned_write_units": (
        "20",
        lambda stage: _write_units(stage.capacity),
        [(20, 20), (20, 20)],
    ),
    "maximum_write_units": (
        "30",
        lambda stage: stage.capacity,
        OnDemand(maximum=Units(write=30)),
    ),
    "max_warm_write_units": ("9", lambda stage: stage.growth.max_warm_write_units, 9),
    "max_provisioned_write_units": (
        "8",
        lambda stage: stage.growth.max_provisioned_write_units,
        8,
    ),
}


def _write_units(capacity: Capacity) -> list[tuple[int, int]]:
    if isinstance(capacity, OnDemand):
        return []
    return [(each.minimum, each.maximum) for each in (capacity.write, capacity.index_write)]


def test_each_override_is_tried_here() -> None:
    assert set(CHANGES) == set(OVERRIDES)


@pytest.mark.parametrize("name", CHANGES)
def test_an_override_changes_its_setting_of_the_local_stage(name: str) -> None:
    value, read, expected = CHANGES[name]
    assert read(LOCAL) != expected
    assert read(overridden(LOCAL, {name: value}.get)) == expected


def test_without_context_a_stage_stays_as_it_is() -> None:
    nothing: dict[str, str] = {}
    for stage in STAGES.values():
        assert overridden(stage, nothing.get) == stage


def test_alarms_of_functions_and_the_api_keep_their_rules() -> None:
    changed = overridden(LOCAL, {"alarm_threshold": "3", "alarm_periods": "2"}.get)
    assert changed.alarms.latency == LOCAL.alarms.latency
    assert changed.alarms.errors == LOCAL.alarms.errors


@pytest.mark.parametrize("stage", [STAGES["dev"], STAGES["prod"]], ids=lambda stage: stage.name)
def test_other_stages_take_no_overrides(stage: Stage) -> None:
    with pytest.raises(OverrideError, match="for the local stage"):
        overridden(stage, {"dry_run": "true"}.get)


@pytest.mark.parametrize(
    ("name", "value"),
    [("dry_run", "yes"), ("partition_wcu", "many"), ("shrink_window_hours", "49")],
)
def test_a_value_that_a_setting_cannot_have_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(OverrideError, match=f"-c {name}={value}: "):
        overridden(LOCAL, {name: value}.get)
