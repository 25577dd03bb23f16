"""One synthesis a stage and session: the templates that its tests read."""

import os

import pytest

from stacks.interpreters import find_node

_NODE = find_node()
if _NODE is not None:
    os.environ.setdefault("JSII_NODE", str(_NODE))

# Importing aws_cdk starts Node, so the choice of Node stands above.
from tests.infra.synthesis import STAGE_NAMES, Synthesis, synthesise  # noqa: E402


@pytest.fixture(scope="session", params=STAGE_NAMES)
def synthesis(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Synthesis:
    return synthesise(request.param, tmp_path_factory.mktemp(request.param))
