"""How outcomes react to the parameters that nobody outside AWS knows: each halved and doubled."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from rich.table import Table

from dynamoheat.parameters import ModelParameters
from dynamoheat.studies.validation.cases import CASES
from dynamoheat.studies.validation.outcomes import CaseOutcome, Job
from dynamoheat.studies.validation.report import number_text

__all__ = ["VARIANTS", "Variant", "jobs", "report"]

_SEEDS: Final = 3
_COLUMNS: Final = (  # case, figure, heading
    ("5", 2, "5: first split, min"),
    ("8", 0, "8: at first"),
    ("8", 1, "8: rise, min"),
    ("10", 3, "10: after 1 h"),
    ("10", 4, "10: partitions"),
    ("10", 5, "10: 256 threads"),
)


@dataclass(frozen=True, slots=True)
class Variant:
    """The defaults but for one assumption."""

    name: str
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> ModelParameters:
        """The parameters with the changes."""
        return replace(ModelParameters(), **self.changes)


def _of(name: str, *values: float) -> list[Variant]:
    return [Variant(f"{name} {value:g}", {name: value}) for value in values]


def _lasting(least: float, most: float) -> Variant:
    return Variant(
        f"splits of {least:g} to {most:g} s",
        {"split_minimum_seconds": least, "split_maximum_seconds": most},
    )


VARIANTS: Final = (
    Variant("the defaults"),
    *_of("split_threshold", 0.3, 0.45, 0.75, 0.9),
    *_of("split_detection_seconds", 150, 600),
    _lasting(150, 240),
    _lasting(600, 960),
    *_of("splits_at_once", 1, 4, 16),
    *_of("split_min_share", 0.05, 0.2),
    *_of("heat_window_seconds", 30, 120),
    *_of("growth_seconds", 450, 1_800),
    *_of("partition_bucket_seconds", 0.5, 2),
    *_of("rate_bucket_seconds", 0.5, 2),
    *_of("initial_burst_seconds", 60, 300),
    *_of("index_buffer_seconds", 0.5, 2),
    Variant(
        "0.85 for 60 s, then 540 to 720 s",
        {
            "split_threshold": 0.85,
            "split_detection_seconds": 60,
            "split_minimum_seconds": 540,
            "split_maximum_seconds": 720,
        },
    ),
    Variant(
        "0.9, and 5 to 20 min in all",
        {
            "split_threshold": 0.9,
            "split_detection_seconds": 0,
            "split_minimum_seconds": 300,
            "split_maximum_seconds": 1_200,
        },
    ),
)


def jobs() -> list[Job]:
    """Return every case with every variant, variant by variant."""
    return [
        Job(case.quickly(), variant.parameters, min(case.seeds, _SEEDS))
        for variant in VARIANTS
        for case in CASES
    ]


def report(found: list[CaseOutcome]) -> Table:
    """Return the table: a row a variant, medians; `*` where a seed is out of the tolerance."""
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("with", no_wrap=True)
    for *_, heading in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("others out", no_wrap=True)
    for row, variant in enumerate(VARIANTS):
        of_variant = found[row * len(CASES) : (row + 1) * len(CASES)]
        table.add_row(variant.name, *_cells(of_variant), _others(of_variant))
    return table


def _cells(found: list[CaseOutcome]) -> list[str]:
    cells = []
    for number, at, _ in _COLUMNS:
        (outcome,) = (outcome for outcome in found if outcome.case.number == number)
        out = outcome.within(at) < len(outcome.figures)
        cells.append(number_text(outcome.middle(at)) + ("*" if out else ""))
    return cells


def _others(found: list[CaseOutcome]) -> str:
    columns = {number for number, *_ in _COLUMNS}
    out = {each.case.number for each in found if not each.holds} - columns
    return ", ".join(sorted(out)) or "none"
