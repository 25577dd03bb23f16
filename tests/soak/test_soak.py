"""The coverage rule on the real parts, for as long as a test may take."""

import pytest

from tests.soak.run import soak

pytestmark = pytest.mark.cloud

SECONDS = 16


def test_reads_hold_what_was_acknowledged_before_them_whatever_breaks_and_reshards() -> None:
    soaked = soak(SECONDS, seed=7)
    assert soaked.verdict.violations == []
    assert soaked.lacking == []
