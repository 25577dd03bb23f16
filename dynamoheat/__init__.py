"""A model of how Amazon DynamoDB's partitions admit, throttle and split.

**The question.** Given these tables, these keys and this traffic: which requests would DynamoDB
throttle, why, and what would the rest cost? The model answers before any of it runs in an account.

    request ─▶ requests ──▶ consumption ─▶ admission ─▶ a verdict an item: admitted, or throttled
               (tables,     (charges)      │            for one of DynamoDB's 16 reasons
                sizes)                     │  1 the table's limits
                                           │  2 its partitions: two token buckets each
                                           │  3 its indexes' buffers of pending updates
    answer ──▶ settlement ────────────────▶│  corrects estimates; a bucket in debt refills first
    time ────▶ resources ─────────────────▶│  peaks grow, partitions split: size, throughput, heat
                                           ▼
               metrics (CloudWatch, Contributor Insights), snapshot (JSON)

    from dynamoheat import Heat, Key, TableSettings

    heat = Heat()
    heat.create_table(TableSettings(name="clicks", key=Key("page", "at")), now=0.0)
    request = {"TableName": "clicks", "Item": {"page": {"S": "/"}, "at": {"N": "1"}}}
    heat.admit("PutItem", request, now=0.1).throttles  # []: admitted

The model is pure: no input or output, the clock is the argument `now`, chance comes from a seed.
Equal calls give equal results. Every assumption is a field of `ModelParameters` with its source.

**In front of an engine.** An endpoint calls `admit` before it forwards a request, then one of:

- `settle` with the engine's answer. What a query reads is unknown before, so reads are charged in
  full only now; their buckets may go into debt, which later requests wait for.
- `fail` if a condition failed. That costs what the write would have, on the table alone.
- `cancel` if the engine refused the request or never saw it. After a lost reply the outcome is
  unknown: let the charge stand.

All calls to the model must come from one thread.

**What a write costs** depends on the item it replaces, which a put does not name. Asking the engine
first would double the load, so the model caches the images of the last 20,000 items written to a
table and takes any other item to be new. That is exact for items written once. For exact costs
everywhere, send the engine `ReturnConsumedCapacity=INDEXES`, `ReturnValues=ALL_OLD` on PutItem and
DeleteItem, and `ALL_NEW` on UpdateItem, and strip from the answer what the client did not ask for.
`dynamoheat.serve` does so. The index entries of an update are charged on settlement.

**Other parts.** `dynamoheat.aggregated` drives the same model by rates a time step, for hours and
days. `dynamoheat.autoscaling` models Application Auto Scaling. `dynamoheat.serve` is the endpoint.
`dynamoheat.studies` validates the model, compares DynamoDB's earlier designs, and draws figures.

**Not modelled.** Latency, and failures for other reasons. Request routers: one bucket stands for
all of them, so throttling starts to the unit, where DynamoDB's is seconds late and uneven.
Replicas, except that they serve eventually consistent reads. Moves of partitions; neighbours on a
machine. Streams, TTL deletes, replication of global tables, PartiQL, index keys of several
attributes, the order of index updates. UpdateTable and warming take effect at once. The 10 GB limit
of an item collection under a local index. A page that spans partitions is charged to its first. An
item larger than a scaled-down bucket is admitted when the bucket is full, and leaves a debt.
"""

from dynamoheat.admission import Admission
from dynamoheat.errors import HeatError, MalformedRequestError, UnknownTableError
from dynamoheat.metrics import Contributor, KeyInsights, Meter, Rule, Slot
from dynamoheat.model import Heat
from dynamoheat.parameters import ModelParameters
from dynamoheat.reasons import Throttle, ThrottleCause, ThrottleReason
from dynamoheat.resources import Resource, Split
from dynamoheat.settings import IndexSettings, Key, TableSettings, ThroughputSettings

__all__ = [
    "Admission",
    "Contributor",
    "Heat",
    "HeatError",
    "IndexSettings",
    "Key",
    "KeyInsights",
    "MalformedRequestError",
    "Meter",
    "ModelParameters",
    "Resource",
    "Rule",
    "Slot",
    "Split",
    "TableSettings",
    "Throttle",
    "ThrottleCause",
    "ThrottleReason",
    "ThroughputSettings",
    "UnknownTableError",
]
