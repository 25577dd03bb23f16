"""A model of how Amazon DynamoDB's partitions admit, throttle and split.

**The question.** Which of my requests would DynamoDB throttle, why, and what would it cost, given these
tables, these keys and this traffic, before any of it runs in an account?

    request ──▶ requests ──▶ charges ──▶ admission ──▶ verdict an item: admitted, or one of 16 reasons
                (queries,    (items,     │  1 the table's rate    rates: provisioned + burst, on demand
                 tables)      units)     │  2 its partitions      partitions: two buckets each
                                         │  3 its indexes' buffers
    answer ───▶ settlement ─────────────▶│  corrects what was guessed; debts are paid by waiting
    time ─────▶ resources ──────────────▶│  peaks grow, partitions split: size, throughput, heat
                                         ▼
                meters (CloudWatch's figures), insights (keys), snapshot (JSON)

It is pure: no input or output, the clock is the argument `now`, chance comes from a seed, and equal calls
give equal results. Every assumption that AWS does not document is a field of `ModelParameters`.

**In front of an engine.** An endpoint calls `admit` before it forwards a request, on one thread, so that
nothing lies between two requests' admissions; then one of:

- `settle` with the engine's answer. Reads are charged in full only now, since nobody knows what a query
  reads before it reads it; their buckets go into debt, which later requests wait for.
- `fail` where a condition failed: that costs what the write would have, on the table alone.
- `cancel` where the engine refused the request or surely never saw it. After a lost reply nobody knows: let
  what was taken stand.

What a write costs depends on the image it replaces, which a put does not name. Asking the engine first would
double the load, so the model remembers the last images of some 20,000 items a table and takes any other
item to be new: exact for events that are written once, and corrected by `settle` otherwise. To be exact
for all, an endpoint asks the engine for `ReturnConsumedCapacity=INDEXES` (a cross-check that also finds
replaced items), for `ReturnValues=ALL_OLD` on PutItem and DeleteItem and `ALL_NEW` on UpdateItem, where the client
asked for `NONE`, and strips them from the answer. An update's index entries are charged on settlement.

**Beside it.** `generations`: DynamoDB's earlier designs as modes, and what each cured. `autoscaling`: Application
Auto Scaling of provisioned tables. `figures` draws; nothing else here imports it.

**For hours and days** `dynamoheat.aggregated` drives the same model by rates a time step.

**Not modelled.** Latency, and requests that fail for other reasons. Request routers: one bucket a limit
stands for all of them, so throttling starts to the unit where DynamoDB's is some seconds late and uneven.
Replicas but for their effect on eventually consistent reads. Moves of partitions, and neighbours on the
same machine. Streams, TTL deletes, global tables' replication, PartiQL, index keys of several attributes.
The order of index updates. Time that UpdateTable and warm-up take: both work at once. The 10 GB limit of a
collection under a local index. A page that spans partitions is charged to its first. An item larger than
a scaled-down bucket passes when the bucket is full and leaves a debt.
"""

from dynamoheat.errors import HeatError, MalformedRequestError, UnknownTableError
from dynamoheat.insights import Contributor, KeyInsights, Rule
from dynamoheat.meters import Meter, Slot
from dynamoheat.model import Heat
from dynamoheat.outcome import Admission
from dynamoheat.parameters import ModelParameters
from dynamoheat.reasons import Throttle, ThrottleCause, ThrottleReason
from dynamoheat.resources import Resource, Split
from dynamoheat.settings import IndexSettings, Key, ProvisionedThroughput, TableSettings

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
    "ProvisionedThroughput",
    "Resource",
    "Rule",
    "Slot",
    "Split",
    "TableSettings",
    "Throttle",
    "ThrottleCause",
    "ThrottleReason",
    "UnknownTableError",
]
