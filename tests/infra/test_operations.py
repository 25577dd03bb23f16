"""The operations page: every alarm has its row, and figures and commands are those of the project."""

import re
from typing import Final

from stacks.config import STAGES
from stacks.costs import HOURS_OF_A_MONTH, PRICES, fixed_cost_an_hour
from tests.infra.synthesis import ROOT, Synthesis, of_type

PAGE: Final = (ROOT / "docs" / "operations.md").read_text()


def _rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its head."""
    _, _, below = PAGE.partition(f"\n## {heading}")
    section = below.split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_alarm_has_a_row_that_says_what_it_means_and_what_to_do(synthesis: Synthesis) -> None:
    prefix = f"Spillway-{synthesis.stage.name}-service-"
    alarms = of_type(synthesis.service, "AWS::CloudWatch::Alarm")
    names = [alarm["Properties"]["AlarmName"].removeprefix(prefix) for alarm in alarms]
    rows = _rows("Alarms")
    assert [len(row) for row in rows] == [3] * len(rows)
    assert sorted(name.strip("`") for name, _, _ in rows) == sorted(names)
    assert all(meaning and action for _, meaning, action in rows)


def test_alarms_that_tell_nobody_are_marked_as_the_scalers_own(synthesis: Synthesis) -> None:
    prefix = f"Spillway-{synthesis.stage.name}-service-"
    quiet = {
        alarm["Properties"]["AlarmName"].removeprefix(prefix)
        for alarm in of_type(synthesis.service, "AWS::CloudWatch::Alarm")
        if "OKActions" not in alarm["Properties"]
    }
    marked = {name.strip("`") for name, meaning, _ in _rows("Alarms") if meaning.startswith("⚙")}
    assert marked == quiet


def test_what_dax_costs_is_what_its_prices_make_it() -> None:
    rows = {name.strip("`"): (cluster, cost) for name, cluster, cost in _rows("DAX")}
    cached = {name: stage for name, stage in STAGES.items() if stage.cache is not None}
    assert rows.keys() == cached.keys()
    for name, stage in cached.items():
        assert stage.cache is not None
        cluster = f"{stage.cache.nodes} × `{stage.cache.node_type}`"  # noqa: RUF001  as in the page
        month = fixed_cost_an_hour(stage) * HOURS_OF_A_MONTH
        assert rows[name] == (cluster, f"US${month:.2f}")
    month = fixed_cost_an_hour(STAGES["prod"]) * HOURS_OF_A_MONTH
    units = month / PRICES.million_reads
    assert f"are {round(units, -1):.0f} million" in PAGE
    assert f"{units * 1e6 / HOURS_OF_A_MONTH / 3_600:.0f} a second around the clock" in PAGE


def test_provisioned_capacity_pays_from_the_use_that_is_named() -> None:
    a_million = PRICES.write_hour / 3_600 * 1e6
    assert f"US${a_million:.2f} a million units" in PAGE
    assert f"from {a_million / PRICES.million_writes * 100:.0f} % average use" in PAGE


def test_ttls_of_the_cache_are_those_of_every_stage() -> None:
    kept = {
        (s.cache.item_ttl_seconds, s.cache.query_ttl_seconds) for s in STAGES.values() if s.cache
    }
    ((item, query),) = kept
    assert f"Copies live {item} seconds (layouts) and {query} (ranges)" in PAGE


def test_every_command_named_is_one_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`(?:[A-Z_]+=\S+ )?make ([a-z-]+)", PAGE))
    assert {"deploy", "diff", "destroy", "bootstrap", "bench-cold"} <= named <= targets
