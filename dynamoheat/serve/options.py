"""Options of the endpoint, for programs and for command lines: each is a field of a dataclass.

A field's metadata holds its flag and its help text, so command lines are generated from the fields.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, Final, Self

from dynamoheat.parameters import ModelParameters
from dynamoheat.serve.faults import Fault, parse_fault

__all__ = ["HeatOptions", "OptionError", "ServeOptions", "add_arguments", "add_serve_arguments"]

_DEFAULTS: Final = ModelParameters()
_NUMBERS: Final = {
    each.name: type(getattr(_DEFAULTS, each.name)) for each in fields(ModelParameters)
}  # float or int


class OptionError(ValueError):
    """An option that is malformed or out of range. The message is one sentence for a person."""


def _option(default: Any, help_text: str, *, flag: str = "", metavar: str | None = None) -> Any:
    """Return a field with a flag; without `flag` it is the field's name. Tuples may be repeated."""
    return field(default=default, metadata={"flag": flag, "help": help_text, "metavar": metavar})


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatOptions:
    """Limits, seed and faults. The defaults are DynamoDB's own limits, and no faults."""

    enabled: bool = _option(
        True, "throttle as DynamoDB does; faults happen either way (default: yes)", flag="heat"
    )
    partition_wcu: float = _option(
        _DEFAULTS.partition_wcu, "write units a second of one partition", metavar="X"
    )
    partition_rcu: float = _option(
        _DEFAULTS.partition_rcu, "read units a second of one partition", metavar="X"
    )
    time_scale: float = _option(
        _DEFAULTS.time_scale,
        "divide the durations of splits, bursts, peaks and metrics: 60 makes minutes seconds",
        metavar="X",
    )
    seed: int = _option(0, "seed of all randomness", metavar="N")
    faults: tuple[str, ...] = _option(
        (),
        "break calls on purpose, such as BatchWriteItem:500:0.01, *:latency:200ms:0.1 or"
        " PutItem:reset-after:0.05; may be repeated",
        flag="fault",
        metavar="FAULT",
    )
    parameters: tuple[str, ...] = _option(
        (),
        "set another field of dynamoheat.ModelParameters; may be repeated",
        flag="parameter",
        metavar="NAME=VALUE",
    )

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> Self:
        """Return the options that `add_arguments` parsed from a command line."""
        return cls(**_parsed(cls, arguments))

    def to_arguments(self) -> list[str]:
        """Return the command line that gives these options."""
        words: list[str] = []
        for each in fields(self):
            flag, value = _flag(each.name, each.metadata), getattr(self, each.name)
            if isinstance(value, bool):
                words += [] if value else [f"--no-{flag}"]
            else:
                for one in value if isinstance(value, tuple) else (value,):
                    words += [f"--{flag}", str(one)]
        return words

    def validate(self) -> None:
        """Raise OptionError where an option is malformed or out of range."""
        self.to_faults()
        self.to_parameters()

    def to_faults(self) -> list[Fault]:
        """Return the faults. OptionError where one is malformed."""
        try:
            return [parse_fault(text) for text in self.faults]
        except ValueError as error:
            raise OptionError(str(error)) from error

    def to_parameters(self) -> ModelParameters:
        """Return the model's parameters. OptionError where one is unknown or out of range."""
        values = dict(map(_parse_parameter, self.parameters))
        values |= {
            each.name: getattr(self, each.name) for each in fields(self) if each.name in _NUMBERS
        }
        for name, value in values.items():
            if not isfinite(value):
                raise OptionError(f"{name} must be a finite number, not {value}.")
        try:
            return ModelParameters(**values)
        except ValueError as error:
            raise OptionError(f"{error}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Options of `dynamoheat serve`: where the engine is, where to listen, and how to throttle."""

    engine: str = _option("http://127.0.0.1:8000", "address of the engine", metavar="URL")
    port: int = _option(8001, "port of 127.0.0.1 to listen on; 0 takes any free one", metavar="N")
    timeout_seconds: float = _option(
        50.0,
        "wait so long for an answer of the engine, then answer 500",
        flag="timeout",
        metavar="SECONDS",
    )
    heat: HeatOptions = field(default_factory=HeatOptions)

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> Self:
        """Return the options that `add_serve_arguments` parsed from a command line."""
        return cls(**_parsed(cls, arguments), heat=HeatOptions.from_arguments(arguments))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the fields of `HeatOptions` to a command."""
    _add_fields(parser.add_argument_group("throttling and faults"), HeatOptions)


def add_serve_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the fields of `ServeOptions`, those of `HeatOptions` included, to a command."""
    _add_fields(parser, ServeOptions)
    add_arguments(parser)


def _add_fields(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,  # has no other name
    options: type[HeatOptions | ServeOptions],
) -> None:
    for each in fields(options):
        if not each.metadata:
            continue
        flag, help_text = f"--{_flag(each.name, each.metadata)}", each.metadata["help"]
        if isinstance(each.default, bool):
            action = argparse.BooleanOptionalAction
            parser.add_argument(flag, action=action, default=each.default, help=help_text)
            continue
        common: dict[str, Any] = {"metavar": each.metadata["metavar"]}
        if isinstance(each.default, tuple):
            parser.add_argument(flag, action="append", default=[], help=help_text, **common)
        else:
            shown = "%(default)g" if isinstance(each.default, float) else "%(default)s"
            parser.add_argument(
                flag,
                type=type(each.default),
                default=each.default,
                help=f"{help_text} ({shown})",
                **common,
            )


def _parsed(
    options: type[HeatOptions | ServeOptions], arguments: argparse.Namespace
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for each in fields(options):
        if each.metadata:
            value = getattr(arguments, _flag(each.name, each.metadata).replace("-", "_"))
            values[each.name] = tuple(value) if isinstance(each.default, tuple) else value
    return values


def _flag(name: str, metadata: Mapping[str, Any]) -> str:
    return str(metadata["flag"]) or name.replace("_", "-")


def _parse_parameter(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or name not in _NUMBERS:
        known = ", ".join(_NUMBERS)
        raise OptionError(f"{text!r} is not NAME=VALUE with one of these names: {known}.")
    try:
        return name, _NUMBERS[name](value)
    except ValueError as error:
        raise OptionError(f"{value!r} is no value of {name}.") from error
