"""One synthesis a stage and session: the templates that its tests read."""

from collections.abc import Callable
from functools import cache

import pytest

from toolchain.node import use_pinned_node

use_pinned_node()  # importing aws_cdk starts Node
from stacks.config import STAGES  # noqa: E402
from tests.infra.synthesis import STAGE_NAMES, Synthesis, synthesise  # noqa: E402

Synthesised = Callable[[str], Synthesis]


@pytest.fixture(scope="session")
def synthesised(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return cache(lambda name: synthesise(name, tmp_path_factory.mktemp(name)))


@pytest.fixture(params=STAGE_NAMES)
def synthesis(request: pytest.FixtureRequest, synthesised: Synthesised) -> Synthesis:
    return synthesised(request.param)


@pytest.fixture(params=[name for name in STAGE_NAMES if STAGES[name].cache is not None])
def cached(request: pytest.FixtureRequest, synthesised: Synthesised) -> Synthesis:
    """A stage that has a cache."""
    return synthesised(request.param)
