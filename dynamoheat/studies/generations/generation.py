"""The generations of DynamoDB's design as modes, in the order in which each was added."""

from enum import Enum
from typing import Final, Protocol

from dynamoheat.partitions import Partitions
from dynamoheat.studies.generations.assumptions import DesignAssumptions, ItemRequest, NewTable
from dynamoheat.studies.generations.global_admission import HeatTable
from dynamoheat.studies.generations.storage import StorageTable

__all__ = ["Generation", "GenerationTable", "open_table"]


class Generation(Enum):
    """What was added.

    The last is today's DynamoDB, and the default of everything else in `heat`.
    """

    EQUAL_DIVISION = "equal division"
    BURSTING = "bursting"
    ADAPTIVE_CAPACITY = "adaptive capacity"
    GLOBAL_ADMISSION = "global admission control"
    SPLIT_FOR_CONSUMPTION = "split for consumption"
    ON_DEMAND = "on-demand"

    @property
    def addition(self) -> str:
        """What is new in it, in a few words."""
        return _ADDS[self]

    def includes(self, other: "Generation") -> bool:
        """Return whether this design came with or after another."""
        order = list(Generation)
        return order.index(self) >= order.index(other)


_ADDS: Final = {
    Generation.EQUAL_DIVISION: "each partition has its share of the table's throughput",
    Generation.BURSTING: "a partition spends what it left unused, up to five minutes of it",
    Generation.ADAPTIVE_CAPACITY: "throttled partitions get what the others leave unused",
    Generation.GLOBAL_ADMISSION: "any partition spends the whole table's tokens",
    Generation.SPLIT_FOR_CONSUMPTION: "hot partitions are split where the traffic is",
    Generation.ON_DEMAND: "nothing is provisioned: today's DynamoDB",
}


class GenerationTable(Protocol):
    """One table under some generation."""

    @property
    def partitions(self) -> Partitions:
        """The table's partitions as they are."""

    def put(self, ask: ItemRequest, now: float) -> bool:
        """Admit a write or refuse it whole."""

    def advance(self, now: float) -> None:
        """Let time pass; call it at least once a minute."""


def open_table(
    generation: Generation,
    opening: NewTable,
    *,
    assumptions: DesignAssumptions | None = None,
    seed: int = 0,
) -> GenerationTable:
    """Return a new table as a generation would serve it.

    On demand, `opening`'s throughput is ignored.
    """
    if generation.includes(Generation.GLOBAL_ADMISSION):
        return HeatTable(
            opening,
            splits=generation.includes(Generation.SPLIT_FOR_CONSUMPTION),
            on_demand=generation is Generation.ON_DEMAND,
            assumptions=assumptions,
            seed=seed,
        )
    return StorageTable(
        opening,
        bursts=generation.includes(Generation.BURSTING),
        adapts=generation.includes(Generation.ADAPTIVE_CAPACITY),
        assumptions=assumptions,
    )
