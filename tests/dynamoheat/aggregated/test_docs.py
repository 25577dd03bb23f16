"""The page for users says what is so."""

import re

import pytest

from benchmarks.modes.workloads import workloads
from dynamoheat import ModelParameters
from local.state import ROOT

PAGE = (ROOT / "docs" / "dynamoheat.md").read_text()
SECTION = PAGE.partition("\n## Aggregated mode\n")[2].partition("\n## ")[0]


def test_the_ten_lines_print_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = re.findall(r"```(?:python|text)\n(.*?)```", SECTION, re.DOTALL)[:2]
    assert len(code.strip().replace("\n\n", "\n").splitlines()) <= 10
    exec(code, {})  # noqa: S102
    assert capsys.readouterr().out == shown


def test_every_workload_of_the_comparison_is_in_the_table_and_agrees_within_two_percent() -> None:
    rows = re.findall(r"^\| (.*) \|$", SECTION, re.MULTILINE)[1:]
    cells = [row.split(" | ") for row in rows if not row.startswith("-")]
    for workload, row in zip(workloads(ModelParameters()), cells, strict=True):
        assert row[0].startswith(workload.name)
        for difference in (row[2], row[4]):
            assert abs(float(difference.rstrip("%"))) <= 2
        assert abs(int(row[5]) - int(row[6])) <= 0.02 * int(row[5])
