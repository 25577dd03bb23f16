"""What all tests share: how long hypothesis may look for counterexamples, and one engine a run."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from local.engine import Engine, running_engine

# No deadlines: a busy machine is no fault of the code.
_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile("quick", deadline=None, max_examples=60, suppress_health_check=_QUIET)
settings.register_profile(
    "ci", deadline=None, max_examples=60, derandomize=True, suppress_health_check=_QUIET
)
settings.register_profile("long", deadline=None, max_examples=2_000, suppress_health_check=_QUIET)
settings.load_profile("quick")


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The DynamoDB engine by itself, on a free port."""
    with running_engine() as running:
        yield running
