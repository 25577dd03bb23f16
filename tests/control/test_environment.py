from datetime import timedelta

import msgspec
import pytest

from lambdas.environment import ScalerEnvironment, read_environment, read_environment_as
from spillway.settings import GrowthPolicy
from tests.api.conftest import ENVIRONMENT

SCALER = {
    **ENVIRONMENT,
    "SPILLWAY_ALARM_PREFIX": "Spillway-dev-",
    "SPILLWAY_DRY_RUN": "true",
    "SPILLWAY_SHRINK_WINDOW_HOURS": "36",
    "SPILLWAY_MAX_WARM_WRITE_UNITS": "0",
    "SPILLWAY_MAX_PROVISIONED_WRITE_UNITS": "2000",
}


def test_the_environment_says_how_layouts_grow() -> None:
    config = read_environment(
        {
            **ENVIRONMENT,
            "SPILLWAY_MAX_SHARDS": "64",
            "SPILLWAY_COOLDOWN_SECONDS": "120",
            "SPILLWAY_PARTITION_WCU": "50",
        }
    )
    growth = config.settings().growth
    assert (growth.max_shards, growth.cooldown_seconds, growth.partition_wcu) == (64, 120, 50)
    assert growth.policy is GrowthPolicy.DEMAND


def test_writers_that_shall_not_grow_leave_it_to_the_scaler() -> None:
    switched_off = {**SCALER, "SPILLWAY_GROW": "false"}
    assert read_environment(switched_off).settings().growth.policy is None
    scaler = read_environment_as(ScalerEnvironment, switched_off)
    assert scaler.settings().growth.policy is GrowthPolicy.DEMAND


def test_the_environment_has_the_scalers_bounds() -> None:
    config = read_environment_as(ScalerEnvironment, SCALER)
    assert (config.dry_run, config.max_warm_write_units) == (True, 0)
    assert timedelta(hours=config.shrink_window_hours) == timedelta(hours=36)


@pytest.mark.parametrize("name", sorted(SCALER.keys() - ENVIRONMENT.keys()))
def test_a_missing_variable_of_the_scaler_is_named(name: str) -> None:
    config = {key: value for key, value in SCALER.items() if key != name}
    with pytest.raises(msgspec.ValidationError, match=name.removeprefix("SPILLWAY_").lower()):
        read_environment_as(ScalerEnvironment, config)
