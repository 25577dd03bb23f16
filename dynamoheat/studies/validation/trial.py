"""One run of a published case: the model's parameters at a scale, and a seed.

Cases are written in published units: a partition takes 1,000 writes a second, a minute has 60 seconds. A
trial turns them into the model's. With `limits` 0.02 every limit and every rate offered is a fiftieth, so
that ten minutes of 9,000 reads a second are 108,000 reads; with `time` 20 every duration is a twentieth,
the depths of buckets included.
"""

from dataclasses import dataclass, replace
from random import Random

from dynamoheat.model import Heat
from dynamoheat.parameters import ModelParameters
from dynamoheat.settings import Key, ProvisionedThroughput, TableSettings

__all__ = ["TABLE", "Trial", "table"]

TABLE = "events"


def table(
    *, write: float | None = None, read: float | None = None, sort_key: bool = True
) -> TableSettings:
    """Return a table's settings: provisioned where rates are given, else on demand."""
    return TableSettings(
        name=TABLE,
        key=Key("pk", "sk" if sort_key else None),
        provisioned=write is not None,
        throughput=ProvisionedThroughput(provisioned_write=write, provisioned_read=read),
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
