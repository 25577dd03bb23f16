"""Published and modelled outcomes side by side, as a table of text."""

from collections.abc import Iterable

from rich.table import Table

from dynamoheat.studies.validation.outcomes import CaseOutcome

__all__ = ["number_text", "report"]


def report(found: Iterable[CaseOutcome]) -> Table:
    """Return the table: a heading a case, a row a figure."""
    table = Table(box=None, pad_edge=False, header_style="")
    for column in ("case", "figure", "published", "tolerance", "model", "seeds", ""):
        table.add_column(column, no_wrap=column != "figure")
    for outcome in found:
        case = outcome.case
        table.add_row(case.number, f"{case.given}\n({case.source})")
        for at in range(len(case.expected)):
            table.add_row(*_row(outcome, at))
    return table


def _row(outcome: CaseOutcome, at: int) -> tuple[str, ...]:
    expected = outcome.case.expected[at]
    seeds, within = len(outcome.figures), outcome.within(at)
    return (
        "",
        f"  {expected.what}",
        expected.published,
        expected.tolerance,
        _shown(outcome, at),
        f"{within} of {seeds}" if seeds > 1 else "",
        "ok" if within == seeds else "out",
    )


def _shown(outcome: CaseOutcome, at: int) -> str:
    """Return a figure: the median and, where they differ, the least and the greatest of the seeds."""
    least, most = (number_text(figure) for figure in outcome.spread(at))
    middle = number_text(outcome.middle(at))
    return middle if least == most else f"{middle} ({least} to {most})"


def number_text(figure: float) -> str:
    """Return a figure to read: whole from 100 up, else with a decimal where it has one."""
    rounded = round(figure, 0 if abs(figure) >= 100 else 1)
    return f"{rounded:,.0f}" if rounded == int(rounded) else f"{rounded:,.1f}"
