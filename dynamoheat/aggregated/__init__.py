"""The same model driven by rates a time step instead of single requests: days in seconds.

**The question.** What of this traffic would be accepted, what throttled and why, and how would the partitions
split, over hours and days, where nobody needs to know about each request?

    Writes, Reads ──▶ demand ──▶ admission ──▶ consumption ──▶ StepOutcome: units accepted, throttled by reason,
    (keys, units/s)   (spots,    one share of   takes from       by traffic and by partition
                       routes)   all, one cap   the event
                                 a partition    mode's objects
    time ─────────────────────────────────────▶ Heat.advance: peaks grow, partitions split

Tables, partitions, buckets, limits, peaks, splits, meters and the snapshot are `heat`'s own objects; only
admission differs: it asks for amounts. So both modes agree whatever the parameters are.

**What is taken to be so.** Within a step rates are constant, requests come evenly and well mixed. A table's
limit then refuses all keys the same share; a partition refuses the same share of each of its keys (a hot key and
its neighbours are throttled in proportion to what they ask); a full index refuses all writes alike. Units are
divisible. Index keys are drawn apart from table keys within one `Writes`. Retries come once a step, so how
often one unit is throttled depends on the step; what is accepted does not.

**Not modelled**, beyond `heat`'s own list: transactions, settlement (say what requests cost), single keys within
one `Writes` (make one for each key that you want to see), Contributor Insights, ThrottledRequests,
local indexes' own units (add them to the rate).
"""

from dynamoheat.aggregated.keys import Keys, Sorts
from dynamoheat.aggregated.model import AggregatedHeat
from dynamoheat.aggregated.outcome import Loads, StepOutcome, StepTally
from dynamoheat.aggregated.traffic import Entries, Reads, Traffic, Writes

__all__ = [
    "AggregatedHeat",
    "Entries",
    "Keys",
    "Loads",
    "Reads",
    "Sorts",
    "StepOutcome",
    "StepTally",
    "Traffic",
    "Writes",
]
