"""How DynamoDB came to behave as it does: its own earlier designs as modes, each adding one thing.

    1 equal division      a table's throughput is divided between its partitions    division, allowances
    2 bursting            a partition may spend what it left unused, if its nodes
                          have tokens left                                           allowances, nodes
    3 adaptive capacity   what others leave unused goes to throttled partitions,
                          which move to nodes with room                              boosts, nodes
    4 global admission    request routers spend the table's tokens on any partition  routers
    5 split for heat      a partition that is hot is cut where its traffic is        heat.Heat
    6 on-demand           nothing is provisioned: today's DynamoDB                   heat.Heat

`storage` puts 1 to 3 together, `current` runs 4 to 6 on `dynamoheat.Heat` itself, `open_table` returns any of
them, `run` drives one through `workload`. It is pure, like all of the model: the clock is an argument, chance
comes from a seed.

The source is "Amazon DynamoDB: a scalable, predictably performant, and fully managed NoSQL database
service" (USENIX ATC 2022), section 4, where it says anything; all else is a field of `Assumptions`.

**Not modelled.** The minutes that moves and splits for size take. Balancing of nodes by consumption
(section 4.3): neighbours are constant. Deferred work of followers. Indexes, and reads but for admission by
storage nodes. Retries: what is refused is gone.
"""

from dynamoheat.studies.generations.assumptions import Assumptions, Neighbours
from dynamoheat.studies.generations.division import (
    equal_shares,
    initial_partitions,
    partitions_after,
)
from dynamoheat.studies.generations.generation import Generation, GenerationTable, open_table
from dynamoheat.studies.generations.routers import GlobalAdmission
from dynamoheat.studies.generations.running import Run, run, run_all
from dynamoheat.studies.generations.settings import Ask, Opening
from dynamoheat.studies.generations.storage import StorageTable
from dynamoheat.studies.generations.workload import SKEWED, Workload

__all__ = [
    "SKEWED",
    "Ask",
    "Assumptions",
    "Generation",
    "GenerationTable",
    "GlobalAdmission",
    "Neighbours",
    "Opening",
    "Run",
    "StorageTable",
    "Workload",
    "equal_shares",
    "initial_partitions",
    "open_table",
    "partitions_after",
    "run",
    "run_all",
]
