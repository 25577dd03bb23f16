import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from dynamoheat.studies.figures.__main__ import main
from dynamoheat.studies.figures.generations import draw_partitions, draw_throttled
from dynamoheat.studies.figures.style import fingerprint, save
from dynamoheat.studies.generations import Generation, Run
from tests.dynamoheat.studies.runs import GROUP, ran, ran_all

pytestmark = pytest.mark.xdist_group(GROUP)

DOCS = Path(__file__).parents[3] / "docs"
FIGURES = sorted((DOCS / "figures").glob("generations-*.svg"))
Draw = Callable[[Sequence[Run]], Figure]
DRAWN: list[Draw] = [draw_partitions, draw_throttled]


def test_the_documentation_shows_every_figure() -> None:
    shown = re.findall(r"\((figures/\S+)\)", (DOCS / "dynamoheat.md").read_text())
    assert FIGURES
    assert {str(path.relative_to(DOCS)) for path in FIGURES} <= set(shown)


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.name)
def test_figures_were_drawn_from_what_the_model_does(path: Path) -> None:
    assert f"<dc:identifier>{fingerprint(ran_all())}<" in path.read_text()


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.name)
def test_figures_are_small_and_undated(path: Path) -> None:
    assert path.stat().st_size < 250_000
    assert "<dc:date>" not in path.read_text()


@pytest.mark.parametrize("draw", DRAWN)
def test_equal_runs_give_equal_files(draw: Draw, tmp_path: Path) -> None:
    runs = [ran(Generation.EQUAL_DIVISION)]
    for name in ("one.svg", "two.svg"):
        save(draw(runs), tmp_path / name, runs, "title")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


@pytest.mark.parametrize("draw", DRAWN)
def test_axes_have_titles_and_units(draw: Draw) -> None:
    figure = draw([ran(Generation.EQUAL_DIVISION)])
    assert figure.axes[0].get_xlabel() == "minutes"
    assert "partitions" in figure.get_supylabel() or "write units" in figure.get_supylabel()
    assert "DynamoDB" in figure.get_suptitle()


def test_the_command_asks_for_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "folder" in capsys.readouterr().err
