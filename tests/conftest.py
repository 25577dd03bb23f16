"""What all tests share: how long hypothesis may look for counterexamples, and one engine a run."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from local.engine import EngineProcess, running_engine

# No deadlines: a busy machine is no fault of the code.
_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("quick", deadline=None, max_examples=60, suppress_health_check=_QUIET)
settings.register_profile(
    "ci", deadline=None, max_examples=60, derandomize=True, suppress_health_check=_QUIET
)
settings.register_profile("long", deadline=None, max_examples=2_000, suppress_health_check=_QUIET)
# The same examples at every run of continuous integration: new ones are for people who look at them.
settings.load_profile("ci" if os.environ.get("CI") else "quick")

TESTS = Path(__file__).parent
_SPREAD = {"model"}  # folders whose tests share nothing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a folder's tests on one worker, where they share what takes long to start."""
    for item in items:
        folder = item.path.parent.relative_to(TESTS).as_posix()
        if folder not in _SPREAD and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(folder))


@pytest.fixture(scope="session")
def engine() -> Iterator[EngineProcess]:
    """The DynamoDB engine by itself, on a free port."""
    with running_engine() as running:
        yield running
