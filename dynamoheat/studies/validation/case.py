"""A published case, and one trial of it: the model's parameters at a scale, and a seed.

Cases are written in published units: a partition serves 1,000 writes a second, a minute has 60
seconds. A trial turns them into the model's. With `limit_scale` 0.02 every limit and every offered
rate is a fiftieth, so ten minutes of 9,000 reads a second are 108,000 reads. With `time_scale` 20
every duration is a twentieth, the depths of token buckets included.
"""

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
    limit_scale: float = 1.0
    time_scale: float = 1.0

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
        return None if rate is None else rate * self.limit_scale

    def _scaled(self) -> ModelParameters:
        parameters = self.parameters
        return replace(
            parameters,
            partition_wcu=parameters.partition_wcu * self.limit_scale,
            partition_rcu=parameters.partition_rcu * self.limit_scale,
            quota_wcu=parameters.quota_wcu * self.limit_scale,
            quota_rcu=parameters.quota_rcu * self.limit_scale,
            partition_bucket_seconds=parameters.partition_bucket_seconds / self.time_scale,
            rate_bucket_seconds=parameters.rate_bucket_seconds / self.time_scale,
            time_scale=parameters.time_scale * self.time_scale,
        )


@dataclass(frozen=True, slots=True)
class ExpectedFigure:
    """One published figure, and the range that the model's figure must be in."""

    name: str
    published: str
    tolerance: str
    min_value: float = -inf
    max_value: float = inf

    @classmethod
    def near(cls, what: str, value: float, share: float, published: str = "") -> Self:
        """Return a figure that may differ by a share of itself."""
        least, most = value * (1 - share), value * (1 + share)
        return cls(what, published or f"{value:,g}", f"±{share:.0%}", least, most)

    @classmethod
    def exactly(cls, what: str, value: float) -> Self:
        """Return a figure that must match."""
        return cls(what, f"{value:,g}", "exact", value, value)

    @classmethod
    def without_tolerance(cls, what: str, published: str) -> Self:
        """Return a figure that was published without a tolerance: reported, never out of range."""
        return cls(what, published, "not given")

    def is_met_by(self, figure: float) -> bool:
        """Return whether the model's figure is within the tolerance."""
        if self.min_value == self.max_value:
            return isclose(figure, self.min_value, rel_tol=1e-9)
        return self.min_value <= figure <= self.max_value


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCase:
    """A published case. `run` gives the model's figures of one trial, in the order of `expected`.

    `limit_scale` and `time_scale` shorten cases that would take hours: see `Trial`. A case in which
    chance decides has `seeds` trials. With limits at `quick_limits` it takes a second or two.
    """

    number: str
    scenario: str
    source: str
    run: Callable[[Trial], Figures]
    expected: tuple[ExpectedFigure, ...]
    seeds: int = 1
    limit_scale: float = 1.0
    time_scale: float = 1.0
    quick_limits: float = 0.1

    def quick_variant(self) -> "PublishedCase":
        """Return the same at its quick scale."""
        return replace(self, limit_scale=min(self.limit_scale, self.quick_limits))

    def trial(self, parameters: ModelParameters, seed: int) -> Trial:
        """Return a trial at this case's scale."""
        return Trial(parameters, seed, self.limit_scale, self.time_scale)
