"""The start of a function's process: no garbage is looked for while nothing but imports happens."""

import gc
from collections.abc import Iterator

import pytest

from lambdas.start import begin_start, finish_start


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    assert gc.isenabled()
    yield
    gc.unfreeze()
    gc.enable()


def test_a_function_collects_nothing_until_it_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "ingest")
    begin_start()
    assert not gc.isenabled()
    finish_start()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


def test_whoever_imports_a_function_elsewhere_keeps_the_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME", raising=False)
    begin_start()
    assert gc.isenabled()
    finish_start()
    assert gc.get_freeze_count() == 0
