"""Stages: which there are, and settings that are refused before anything is deployed."""

from dataclasses import replace
from typing import Any

import pytest

from spillway.cdk.settings import ALARMS, EVENTS, FUNCTIONS, GROWTH, ScaledUnits
from stacks.config import STAGES, UnknownStageError, stage_named

UNITS = ScaledUnits(minimum=5, maximum=50)


def test_there_are_three_stages_that_know_their_names() -> None:
    assert {name: stage.name for name, stage in STAGES.items()} == {
        "local": "local",
        "dev": "dev",
        "prod": "prod",
    }


@pytest.mark.parametrize("name", ["", "production", "DEV", None, 3])
def test_an_unknown_stage_is_refused_with_the_names_there_are(name: object) -> None:
    with pytest.raises(UnknownStageError, match="choose one of local, dev, prod") as caught:
        stage_named(name)
    assert caught.value.name == name


def test_only_the_local_stage_has_an_endpoint_of_its_own_and_no_authorizer() -> None:
    for stage in STAGES.values():
        local = stage.name == "local"
        assert stage.authorizer is not local
        assert (stage.functions.endpoint is not None) is local
        assert stage.bundle_for_this_machine is local


@pytest.mark.parametrize(
    "setting",
    [
        {"functions": replace(FUNCTIONS, timeout_seconds=30)},
        {"functions": replace(FUNCTIONS, timeout_seconds=0)},
    ],
)
def test_settings_that_could_not_work_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="dev"):
        replace(STAGES["dev"], **setting)


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        (EVENTS, {"shards": 0}),
        (EVENTS, {"shards": 3}),
        (EVENTS, {"index_shards": 12}),
        (EVENTS, {"mode": "random", "shards": 0}),
        (GROWTH, {"shrink_window_hours": 49}),
        (GROWTH, {"max_shards": 257}),
        (ALARMS.hot, {"period": 10}),
        (ALARMS.hot, {"datapoints": 2}),
        (UNITS, {"minimum": 0}),
        (UNITS, {"maximum": 4}),
        (UNITS, {"target": 91}),
    ],
)
def test_settings_of_parts_that_could_not_work_are_refused(
    settings: Any, setting: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=rf"{next(iter(setting.values()))}|powers of two"):
        replace(settings, **setting)


def test_random_sharding_takes_any_count() -> None:
    assert replace(EVENTS, mode="random", shards=10).shards == 10
