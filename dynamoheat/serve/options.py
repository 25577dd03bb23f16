"""What can be chosen about the model and the faults: on a command line, or by a program."""

import argparse
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, Final, Self

from dynamoheat.parameters import ModelParameters
from dynamoheat.serve.faults import Fault, fault

__all__ = ["HeatOptions", "OptionError", "add_arguments"]

_DEFAULTS: Final = ModelParameters()
_NUMBERS: Final = {
    each.name: type(getattr(_DEFAULTS, each.name)) for each in fields(ModelParameters)
}  # float or int


class OptionError(ValueError):
    """An option that can't be understood; the message is one sentence for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatOptions:
    """Limits, chance and faults. The defaults are DynamoDB's own limits, and no fault."""

    enabled: bool = True  # False: nothing throttles, faults still happen
    partition_wcu: float = _DEFAULTS.partition_wcu
    partition_rcu: float = _DEFAULTS.partition_rcu
    time_scale: float = _DEFAULTS.time_scale
    seed: int = 0
    faults: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()  # `name=value` of any other field of `ModelParameters`

    @classmethod
    def from_arguments(cls, given: argparse.Namespace) -> Self:
        """Return what `add_arguments` found on a command line."""
        return cls(
            enabled=given.heat,
            partition_wcu=given.partition_wcu,
            partition_rcu=given.partition_rcu,
            time_scale=given.time_scale,
            seed=given.seed,
            faults=tuple(given.fault),
            parameters=tuple(given.parameter),
        )

    def check(self) -> None:
        """Raise OptionError where any of it can't be understood."""
        self.to_faults()
        self.to_parameters()

    def to_arguments(self) -> list[str]:
        """Return the command line that says the same."""
        words = [] if self.enabled else ["--no-heat"]
        for name in ("partition_wcu", "partition_rcu", "time_scale", "seed"):
            words += [f"--{name.replace('_', '-')}", str(getattr(self, name))]
        for text in self.faults:
            words += ["--fault", text]
        for text in self.parameters:
            words += ["--parameter", text]
        return words

    def to_faults(self) -> list[Fault]:
        """Return the faults. OptionError where one is malformed."""
        try:
            return [fault(text) for text in self.faults]
        except ValueError as error:
            raise OptionError(str(error)) from error

    def to_parameters(self) -> ModelParameters:
        """Return the model's parameters. OptionError where one is unknown or out of range."""
        chosen = dict(map(_parameter, self.parameters))
        chosen |= {
            name: getattr(self, name) for name in ("partition_wcu", "partition_rcu", "time_scale")
        }
        for name, value in chosen.items():
            if not isfinite(value):
                raise OptionError(f"{name} must be a finite number, not {value}.")
        try:
            return ModelParameters(**chosen)
        except ValueError as error:
            raise OptionError(f"{error}.") from error


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    group = parser.add_argument_group("throttling and faults")
    group.add_argument(
        "--heat",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="throttle as DynamoDB does (default: yes)",
    )
    for name, help_ in (
        ("partition_wcu", "write units a second of one partition"),
        ("partition_rcu", "read units a second of one partition"),
        ("time_scale", "divides the minutes of splits, bursts, peaks and metrics"),
    ):
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=float,
            default=getattr(_DEFAULTS, name),
            metavar="X",
            help=f"{help_} (%(default)g)",
        )
    group.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of all chance (%(default)s)"
    )
    group.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="FAULT",
        help="break calls on purpose, such as BatchWriteItem:500:0.01, *:latency:200ms:0.1 or"
        " PutItem:reset-after:0.05; may be repeated",
    )
    group.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another assumption of the model (heat.Parameters); may be repeated",
    )


def _parameter(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or name not in _NUMBERS:
        known = ", ".join(_NUMBERS)
        raise OptionError(f"{text!r} is not NAME=VALUE with one of these names: {known}.")
    try:
        return name, _NUMBERS[name](value)
    except ValueError as error:
        raise OptionError(f"{value!r} is no value of {name}.") from error
