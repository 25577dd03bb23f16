"""The published measurements of the real DynamoDB, with the defaults: scaled down, few seeds.

`make validate-heat` is the same with more seeds and greater limits.
"""

import re
from dataclasses import fields, replace
from itertools import count
from random import Random
from statistics import mean

import pytest

from dynamoheat import ModelParameters
from dynamoheat.studies.validation import __main__, sensitivity
from dynamoheat.studies.validation.case import TABLE, ExpectedFigure, PublishedCase, Trial, table
from dynamoheat.studies.validation.cases import CASES
from dynamoheat.studies.validation.loads import (
    Clients,
    item,
    offer_load,
    put_sender,
    query_sender,
    run_clients,
)
from dynamoheat.studies.validation.outcomes import CaseOutcome
from dynamoheat.studies.validation.throughput_limits import address_queries
from local.state import ROOT

pytestmark = pytest.mark.slow

DEFAULTS = ModelParameters()
PAGE = (ROOT / "docs" / "dynamoheat.md").read_text()


def named(number: str) -> PublishedCase:
    return next(case for case in CASES if case.number == number)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}: {case.scenario[:40]}")
def test_the_model_gives_what_was_published(case: PublishedCase) -> None:
    quick = case.quick_variant()
    figures = quick.run(quick.trial(DEFAULTS, 100))
    out = {
        each.name: figure
        for each, figure in zip(case.expected, figures, strict=True)
        if not each.is_met_by(figure)
    }
    assert out == {}


def test_every_published_case_is_there() -> None:
    assert {case.number for case in CASES} >= {
        "1", "4", "5", "7", "8", "10", "11", "14", "15", "16", "DG",
    }  # fmt: skip


def test_the_scale_of_limits_does_not_change_when_and_how_far_reads_rise() -> None:
    case = named("8")
    small, large = (
        case.run(replace(case, limit_scale=limits).trial(DEFAULTS, 3)) for limits in (0.01, 0.02)
    )
    assert small == pytest.approx(large, rel=0.05)


def test_the_scale_of_limits_does_not_change_what_a_partition_takes() -> None:
    def rate(limits: float) -> float:
        trial = Trial(DEFAULTS, 0, limits)
        requests = address_queries(trial.random())
        units = offer_load(trial, query_sender(trial.model(table()), requests), 12_000, 6)
        return sum(units[3:]) / 3

    assert rate(0.01) == pytest.approx(rate(1.0), rel=0.01)


def test_the_scale_of_time_does_not_change_when_splits_happen() -> None:
    def minutes(time: float) -> list[float]:
        trial = Trial(DEFAULTS, 5, 0.01, time)
        heat = trial.model(table())
        random = Random(1)
        items = (item(f"k{n % 4}", f"{random.random():.9f}") for n in count())
        offer_load(trial, put_sender(heat, items), 5_000, 20 * 60, slot=60)
        return [split.at * time / 60 for split in heat.resource(TABLE).splits]

    assert len(minutes(1)) >= 2
    assert minutes(20) == pytest.approx(minutes(1), abs=1)


def test_neither_scale_changes_what_waiting_clients_get_through() -> None:
    def early_and_late(limits: float, time: float) -> list[float]:
        trial = Trial(DEFAULTS, 2, limits, time)
        random = trial.random()
        items = (item(f"key{n % 10}", f"{random.random():.9f}") for n in count())
        who = Clients(threads=128, latency_seconds=0.0063)
        flows = run_clients(trial, trial.model(table()), items, who, 24 * 60)
        return [mean(flow.accepted for flow in flows[at : at + 8]) for at in (1, 16)]

    scaled = early_and_late(0.1, 20)
    assert scaled == pytest.approx(early_and_late(0.2, 20), rel=0.1)
    assert scaled == pytest.approx(early_and_late(0.1, 10), rel=0.1)


@pytest.mark.parametrize(
    ("expected", "within", "out"),
    [
        (ExpectedFigure.near("x", 1_000, 0.02), [980, 1_020], [979, 1_021]),
        (ExpectedFigure.exactly("x", 3), [3], [2.99, 3.01]),
        (ExpectedFigure("x", "none within 10", "none", 10), [10, 999], [9.9]),
        (ExpectedFigure.without_tolerance("x", "56"), [0, 1e9], []),
    ],
)
def test_a_figure_is_held_to_its_tolerance(
    expected: ExpectedFigure, within: list[float], out: list[float]
) -> None:
    assert all(expected.is_met_by(figure) for figure in within)
    assert not any(expected.is_met_by(figure) for figure in out)


def test_one_seed_out_of_tolerance_is_out() -> None:
    case = replace(named("DG"), expected=(ExpectedFigure.near("x", 100, 0.1),))
    outcome = CaseOutcome(case, ((95.0,), (100.0,), (120.0,)))
    assert outcome.seeds_within(0) == 2
    assert not outcome.is_within_tolerance
    assert outcome.median(0) == 100
    assert outcome.extremes(0) == (95, 120)


def test_the_command_fails_where_a_case_is_out_and_says_which(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = named("14")
    monkeypatch.setattr(__main__, "CASES", (right,))
    assert __main__.main(["--processes", "1"]) == 0
    assert "all within tolerance" in capsys.readouterr().out
    wrong = replace(right, expected=(ExpectedFigure.exactly("x", 1), *right.expected[1:]))
    monkeypatch.setattr(__main__, "CASES", (wrong, named("7")))
    assert __main__.main(["--processes", "1"]) == 1
    assert "out of tolerance: cases 14" in capsys.readouterr().out


def test_every_unknown_parameter_is_varied() -> None:
    rows = re.findall(r"^\| `(\w+)` \| \S+ \|(.*)", PAGE, re.MULTILINE)
    unknown = {name for name, meaning in rows if "[U]" in meaning}
    varied = {name for variant in sensitivity.VARIANTS for name in variant.changes}
    assert unknown <= varied
    assert varied <= {each.name for each in fields(ModelParameters)}
