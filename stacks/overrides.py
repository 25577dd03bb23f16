"""Settings of the local stage that `-c name=value` changes, for tests in the local cloud.

| name | sets |
|---|---|
| endpoint | URL of DynamoDB and CloudWatch |
| partition_wcu | write units of a partition, where they are smaller than DynamoDB's |
| writers_grow | `false`: layouts follow heat by the scaler alone |
| dry_run | `true`: the scaler says what it would do |
| alarm_threshold | throttled events of a period that start an alarm |
| alarm_periods | consecutive periods at the threshold or above |
| shrink_window_hours | of low usage before a layout shrinks; 0 never |
| provisioned_write_units | of the events' table and its index, with plenty of read units |
| maximum_write_units | the on-demand maximum of both |
| max_warm_write_units, max_provisioned_write_units | bounds of what the scaler raises |

Other stages change by their settings in `stacks.config`, under version control.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from spillway.cdk.settings import (
    AlarmRule,
    AlarmSettings,
    OnDemand,
    Provisioned,
    ScaledUnits,
    Units,
)
from stacks.config import Stage

__all__ = ["OVERRIDES", "Context", "OverrideError", "overridden"]

Context = Callable[[str], object]
"""Returns a value of the app's context, None where there is none."""


class OverrideError(ValueError):
    """The setting can't have that value, or the stage takes no overrides."""


def overridden(stage: Stage, context: Context) -> Stage:
    """Return the stage with the overrides of the context.

    Raises:
        OverrideError: A value is wrong, or the stage is not the local one.
    """
    for name, change in OVERRIDES.items():
        value = context(name)
        if value is None:
            continue
        if stage.name != "local":
            raise OverrideError(
                f"-c {name}=… is for the local stage: stacks/config.py has {stage.name}'s"
            )
        try:
            stage = change(stage, str(value))
        except ValueError as error:
            raise OverrideError(f"-c {name}={value}: {error}") from error
    return stage


def _with_endpoint(stage: Stage, value: str) -> Stage:
    return replace(stage, functions=replace(stage.functions, endpoint=value))


def _growth(name: str, read: Callable[[str], Any]) -> Callable[[Stage, str], Stage]:
    def change(stage: Stage, value: str) -> Stage:
        return replace(stage, growth=replace(stage.growth, **{name: read(value)}))

    return change


def _alarms(change_rule: Callable[[AlarmRule, int], AlarmRule]) -> Callable[[Stage, str], Stage]:
    def change(stage: Stage, value: str) -> Stage:
        rules = {name: change_rule(getattr(stage.alarms, name), int(value)) for name in _THROTTLING}
        return replace(stage, alarms=replace(stage.alarms, **rules))

    return change


def _with_provisioned(stage: Stage, value: str) -> Stage:
    write, read = (ScaledUnits(minimum=units, maximum=units) for units in (int(value), _PLENTY))
    capacity = Provisioned(read=read, write=write, index_read=read, index_write=write)
    return replace(stage, capacity=capacity)


def _with_maximum(stage: Stage, value: str) -> Stage:
    return replace(stage, capacity=OnDemand(maximum=Units(write=int(value))))


def _boolean(value: str) -> bool:
    if value not in ("true", "false"):
        raise ValueError("true or false")
    return value == "true"


_PLENTY: Final = 1_000  # read units a second
_NOT_THROTTLING: Final = ("errors", "throttles", "server_errors", "latency")
_THROTTLING: Final = [
    field.name for field in fields(AlarmSettings) if field.name not in _NOT_THROTTLING
]

OVERRIDES: Final[Mapping[str, Callable[[Stage, str], Stage]]] = {
    "endpoint": _with_endpoint,
    "partition_wcu": _growth("partition_wcu", int),
    "writers_grow": _growth("writers", _boolean),
    "dry_run": _growth("dry_run", _boolean),
    "alarm_threshold": _alarms(lambda rule, value: replace(rule, threshold=value)),
    "alarm_periods": _alarms(lambda rule, value: replace(rule, periods=value, datapoints=value)),
    "shrink_window_hours": _growth("shrink_window_hours", int),
    "provisioned_write_units": _with_provisioned,
    "maximum_write_units": _with_maximum,
    "max_warm_write_units": _growth("max_warm_write_units", int),
    "max_provisioned_write_units": _growth("max_provisioned_write_units", int),
}
