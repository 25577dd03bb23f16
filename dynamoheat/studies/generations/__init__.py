"""DynamoDB's earlier designs as modes: how it came to behave as it does. Each adds one thing.

    1 equal division      a table's throughput is divided among its partitions     storage
    2 bursting            a partition may spend what it left unused, if its
                          storage nodes have tokens left                            storage, nodes
    3 adaptive capacity   throttled partitions get what others leave unused, and
                          move to nodes with room                                   storage, nodes
    4 global admission    request routers spend the table's tokens on any
                          partition                                                 global_admission
    5 split for heat      a hot partition is cut where its traffic is               dynamoheat.Heat
    6 on-demand           nothing is provisioned: today's DynamoDB                  dynamoheat.Heat

`open_table` returns a table of any design, `run` offers it a workload. All is pure: the clock is an
argument, chance comes from a seed.

The source is "Amazon DynamoDB: a scalable, predictably performant, and fully managed NoSQL database
service" (USENIX ATC 2022), section 4. Whatever it leaves open is a field of `DesignAssumptions`.

**Not modelled.** The minutes that moves and splits for size take. Balancing of nodes by consumption
(section 4.3): neighbours are constant. Deferred work of followers. Indexes, and reads except for
admission by storage nodes. Retries: throttled requests are lost.
"""

from dynamoheat.studies.generations.assumptions import (
    DesignAssumptions,
    ItemRequest,
    Neighbours,
    NewTable,
)
from dynamoheat.studies.generations.generation import Generation, GenerationTable, open_table
from dynamoheat.studies.generations.global_admission import GlobalAdmission
from dynamoheat.studies.generations.runs import GenerationRun, run, run_all
from dynamoheat.studies.generations.storage import (
    StorageTable,
    equal_shares,
    initial_partitions,
    partitions_after,
)
from dynamoheat.studies.generations.workload import SKEWED, Workload

__all__ = [
    "SKEWED",
    "DesignAssumptions",
    "Generation",
    "GenerationRun",
    "GenerationTable",
    "GlobalAdmission",
    "ItemRequest",
    "Neighbours",
    "NewTable",
    "StorageTable",
    "Workload",
    "equal_shares",
    "initial_partitions",
    "open_table",
    "partitions_after",
    "run",
    "run_all",
]
