"""The same model driven by rates a time step instead of single requests: days in seconds.

**The question.** Over hours and days, what of this traffic would be admitted, what throttled and
why, and how would partitions split? No single request matters.

    Writes, Reads ─▶ flows ─────▶ admission ────▶ step ──▶ StepOutcome: units admitted, and
    (keys, units/s)  (keys to     one share for            throttled by reason, by traffic and
                     partitions)  all, one cap             by partition
                                  a partition
    time ────────────────────────────────────────▶ Heat.advance: peaks grow, partitions split

Tables, partitions, token buckets, limits, splits, metrics and the snapshot are the objects of
`dynamoheat.Heat`. Only admission differs, since it is asked for amounts. So both modes agree
whatever the parameters are.

**Assumptions.** Within a step rates are constant and requests come evenly, well mixed. A table's
limit then refuses all keys the same share. A partition refuses each of its keys the same share, so
a hot key and its neighbours throttle in proportion to their traffic. A full index refuses all
writes alike. Units are divisible. Index keys are drawn independently of table keys within one
`Writes`. Retries come once a step, so how often a unit is throttled depends on the step; what is
admitted does not.

**Not modelled**, beyond `dynamoheat`'s own list: transactions, settlement (state what requests
cost), single keys within one `Writes` (make one for each key of interest), Contributor Insights,
ThrottledRequests, and units of local indexes (add them to the rate).
"""

from dynamoheat.aggregated.key_distribution import KeyDistribution, SortKeyPattern
from dynamoheat.aggregated.model import AggregatedHeat
from dynamoheat.aggregated.outcome import PartitionLoads, StepOutcome, StepTally
from dynamoheat.aggregated.traffic import IndexEntries, Reads, Traffic, Writes

__all__ = [
    "AggregatedHeat",
    "IndexEntries",
    "KeyDistribution",
    "PartitionLoads",
    "Reads",
    "SortKeyPattern",
    "StepOutcome",
    "StepTally",
    "Traffic",
    "Writes",
]
