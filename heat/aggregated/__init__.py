"""The model driven by rates a time step instead of single requests."""

from heat.aggregated.keys import Keys, Sorts
from heat.aggregated.model import AggregatedHeat
from heat.aggregated.outcome import Loads, Outcome, Tally
from heat.aggregated.traffic import Entries, Reads, Traffic, Writes

__all__ = [
    "AggregatedHeat",
    "Entries",
    "Keys",
    "Loads",
    "Outcome",
    "Reads",
    "Sorts",
    "Tally",
    "Traffic",
    "Writes",
]
