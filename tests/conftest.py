"""What all tests share: the quick run, effort of property tests, workers, and one engine a run."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from local.engine import EngineProcess, running_engine

# No deadlines: a busy machine is no fault of the code.
_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large)
for _name, _examples in {"quick": 10, "local": 60, "long": 2_000}.items():
    settings.register_profile(
        _name, deadline=None, max_examples=_examples, suppress_health_check=_QUIET
    )
# The same examples at every run of continuous integration: new ones are for people who look.
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

TESTS = Path(__file__).parent
_SPREAD = {"model"}  # folders whose tests share nothing
_NOT_QUICK = ("cloud", "engine", "slow")  # markers
# Left out of a quick run as a whole: even importing some of these takes seconds.
_NOT_QUICK_FOLDERS = {
    TESTS / folder
    for folder in (
        *("deploy", "infra"),  # synthesis, by Node
        *("e2e", "soak"),  # a deployed local cloud
        *("model", "dynamoheat/studies", "dynamoheat/aggregated"),  # long simulations
    )
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="only tests without engine, cloud, synthesis and long simulations; few examples",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        settings.load_profile("quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the slow folders of a quick run; None lets pytest decide."""
    is_left_out = config.getoption("--quick") and collection_path in _NOT_QUICK_FOLDERS
    return True if is_left_out else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a folder's tests on one worker, where they share what takes long to start."""
    if config.getoption("--quick"):
        slow = [item for item in items if any(map(item.get_closest_marker, _NOT_QUICK))]
        config.hook.pytest_deselected(items=slow)
        left_out = set(slow)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        folder = item.path.parent.relative_to(TESTS).as_posix()
        if folder not in _SPREAD and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(folder))


@pytest.fixture(scope="session")
def engine() -> Iterator[EngineProcess]:
    """The DynamoDB engine by itself, on a free port."""
    with running_engine() as running:
        yield running
