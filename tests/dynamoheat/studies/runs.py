"""The skewed workload on each generation: it takes seconds, so once for all tests of a process."""

from functools import cache

from dynamoheat.studies.generations import Generation, Run, run

GROUP = "generations"


@cache
def ran(generation: Generation) -> Run:
    """Return the run that the documentation shows."""
    return run(generation)


def ran_all() -> list[Run]:
    """Return the runs of all generations."""
    return [ran(generation) for generation in Generation]
