"""What AWS asks in us-east-1, for estimates: other regions ask more, and prices change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["HOURS_OF_A_MONTH", "PRICES", "Prices"]

HOURS_OF_A_MONTH: Final = 730


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """US dollars.

    Attributes:
        as_of: when these were looked up.
        million_writes, million_reads: on-demand request units.
        write_hour, read_hour: provisioned capacity units.
        dax_hour: a node of each type.
        million_calls, gigabyte_second: of Lambda, on ARM.
        million_requests: of the HTTP API.
    """

    as_of: str
    million_writes: float
    million_reads: float
    write_hour: float
    read_hour: float
    dax_hour: Mapping[str, float] = field(hash=False)
    million_calls: float
    gigabyte_second: float
    million_requests: float

    def dax_month(self, node_type: str, nodes: int) -> float | None:
        """Return what a cluster costs a month whether used or not; None for types that are not listed."""
        hour = self.dax_hour.get(node_type)
        return None if hour is None else hour * nodes * HOURS_OF_A_MONTH


PRICES: Final = Prices(
    as_of="April 2026",
    million_writes=0.625,
    million_reads=0.125,
    write_hour=0.00065,
    read_hour=0.00013,
    dax_hour={"dax.t3.small": 0.04},
    million_calls=0.20,
    gigabyte_second=0.0000133334,
    million_requests=1.00,
)
