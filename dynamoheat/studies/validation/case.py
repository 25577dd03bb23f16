"""Case"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isclose
from random import Random
from typing import Self

from dynamoheat.model import Heat
from dynamoheat.parameters import ModelParameters
from dynamoheat.settings import Key, TableSettings, ThroughputSettings

__all__ = ["TABLE", "ExpectedFigure", "Figures", "PublishedCase", "Trial", "table"]

TABLE = "events"


Figures = tuple[float, ...]


def table(
    *, write: float | None = None, read: float | None = None, sort_key: bool = True
) -> TableSettings:
    """Return a table's settings: provisioned where rates are given, else on demand."""
    return TableSettings(
        name=TABLE,
        key=Key("pk", "sk" if sort_key else None),
        provisioned=write is not None,
        throughput=ThroughputSettings(provisioned_write=write, provisioned_read=read),
    )


@dataclass(frozen=True, slots=True)
class Trial:
    """The scales and the seed of a run. `parameters` are unscaled."""

    parameters: ModelParameters
    seed: int = 0
    limits: float = 1.0
    time: float = 1.0

    def random(self) -> Random:
        """Return this trial's chance, from the start."""
        return Random(self.seed)  # noqa: S311  # a simulation's, not a secret

    def model(self, settings: TableSettings) -> Heat:
        """Return a model with one table, created at time 0."""
        heat = Heat(self._scaled(), seed=self.seed)
        heat.create_table(self.settings(settings), 0.0)
        return heat

    def settings(self, settings: TableSettings) -> TableSettings:
        """Return a table's settings with its rates scaled."""
        throughput = settings.throughput
        scaled = replace(
            throughput,
            provisioned_write=self._rate(throughput.provisioned_write),
            provisioned_read=self._rate(throughput.provisioned_read),
        )
        return replace(settings, throughput=scaled)

    def _rate(self, rate: float | None) -> float | None:
        return None if rate is None else rate * self.limits

    def _scaled(self) -> ModelParameters:
        parameters = self.parameters
        return replace(
            parameters,
            partition_wcu=parameters.partition_wcu * self.limits,
            partition_rcu=parameters.partition_rcu * self.limits,
            quota_wcu=parameters.quota_wcu * self.limits,
            quota_rcu=parameters.quota_rcu * self.limits,
            partition_bucket_seconds=parameters.partition_bucket_seconds / self.time,
            rate_bucket_seconds=parameters.rate_bucket_seconds / self.time,
            time_scale=parameters.time_scale * self.time,
        )


@dataclass(frozen=True, slots=True)
class ExpectedFigure:
    """One published figure: what it is of, what was published, and the range that the model may give."""

    what: str
    published: str
    tolerance: str
    least: float = -inf
    most: float = inf

    @classmethod
    def near(cls, what: str, value: float, share: float, published: str = "") -> Self:
        """Return a figure that may be off by a share of itself."""
        least, most = value * (1 - share), value * (1 + share)
        return cls(what, published or f"{value:,g}", f"±{share:.0%}", least, most)

    @classmethod
    def exactly(cls, what: str, value: float) -> Self:
        """Return a figure that must come out as it is."""
        return cls(what, f"{value:,g}", "exact", value, value)

    @classmethod
    def noted(cls, what: str, published: str) -> Self:
        """Return a figure that was published without saying how far it may be off: shown, never out."""
        return cls(what, published, "not given")

    def holds(self, figure: float) -> bool:
        """Say whether the model's figure is within the tolerance."""
        if self.least == self.most:
            return isclose(figure, self.least, rel_tol=1e-9)
        return self.least <= figure <= self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCase:
    """A published case. `run` gives the model's figures of one trial, in the order of `expected`.

    `limits` and `time` scale a case that would take hours: see `Trial`. A case in which chance decides
    has `seeds` trials. With the limits at `quick` it takes a second or two.
    """

    number: str
    given: str
    source: str
    run: Callable[[Trial], Figures]
    expected: tuple[ExpectedFigure, ...]
    seeds: int = 1
    limits: float = 1.0
    time: float = 1.0
    quick: float = 0.1

    def quickly(self) -> "PublishedCase":
        """Return the same at its quick scale."""
        return replace(self, limits=min(self.limits, self.quick))

    def trial(self, parameters: ModelParameters, seed: int) -> Trial:
        """Return a trial at this case's scale."""
        return Trial(parameters, seed, self.limits, self.time)
