"""The pages hold together: their links lead somewhere, and what they name exists."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from spillway.aggregating.functions import AggregateFunction

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
RECORDS = sorted(DOCS.glob("decisions/[0-9]*.md"))
PACKAGES = ("spillway", "stacks", "lambdas", "dynamoheat", "local", "deploy")
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)

# These name modules and files that are gone, too.
HISTORY = {ROOT / "CHANGELOG.md", *RECORDS}

pages = pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])


def _prose(page: Path) -> str:
    """Return the text of a page without its blocks of code."""
    return FENCE.sub("", page.read_text())


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {each.strip().replace(" ", "-") for each in words}


@pages
def test_every_link_leads_to_a_page_and_to_a_heading(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = page if not path else (page.parent / path).resolve()
        assert target.exists(), link
        if anchor:
            assert anchor in _anchors(target), link


@pages
def test_lines_end_at_100_columns(page: Path) -> None:
    if page.name == "dynamoheat.md":
        pytest.skip("its lines are still wider")
    output = re.compile(r"^```text\n.*?^```", re.DOTALL | re.MULTILINE)  # as a program prints it
    text = output.sub(lambda block: "\n" * block[0].count("\n"), page.read_text())
    for number, line in enumerate(text.splitlines(), 1):
        rest = line.strip().removeprefix("- ")
        fixed = rest.startswith("|") or " " not in rest  # a row of a table, or a lone link
        assert len(line) <= 100 or fixed, f"line {number}: {line}"


def test_the_index_names_every_page() -> None:
    linked = re.findall(r"\]\(([^)#]+)\)", (DOCS / "README.md").read_text())
    there = {(DOCS / link).resolve() for link in linked}
    assert {*DOCS.glob("*.md")} - {DOCS / "README.md"} <= there
    assert DOCS / "decisions" / "README.md" in there


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 100


def _functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pages
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    for name, link in re.findall(r"\[(test_\w+)\]\(([^)]+)\)", page.read_text()):
        assert name in _functions((page.parent / link).resolve()), link


def test_a_sentence_of_the_semantics_names_its_test() -> None:
    """Sentences on what is decided but not merged yet may lack one."""
    sentences = re.findall(r"^- .*(?:\n  .*)*", (DOCS / "semantics.md").read_text(), re.MULTILINE)
    assert len(sentences) > 50
    without = [each for each in sentences if "[test_" not in each]
    assert len(without) <= 4, without


def _exists(module: str) -> bool:
    path = ROOT.joinpath(*module.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


@pages
def test_every_module_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text() if page.name == "architecture.md" else ""
    text += " ".join(re.findall(r"`([^`\n]+)`", _prose(page)))
    named = re.findall(rf"(?<![\w./-])((?:{'|'.join(PACKAGES)})(?:\.[a-z]\w*)+)(?![\w(])", text)
    modules = {module for module in named if not module.endswith((".md", ".json", ".py"))}
    gone = {module for module in modules if not _exists(module) and not _is_member(module)}
    assert gone == set() or page in HISTORY


def _is_member(name: str) -> bool:
    """Return whether the last part of a dotted name is defined in the module before it."""
    module, _, member = name.rpartition(".")
    path = ROOT.joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file() and re.search(rf"\b{member}\b", candidate.read_text()):
            return True
    return False


@pages
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    folders = (*PACKAGES, "tests", "docs", "benchmarks")
    named = re.findall(rf"`((?:{'|'.join(folders)})/[\w./-]*)`", _prose(page))
    gone = [path for path in named if not (ROOT / path).exists()]
    assert gone == [] or page in HISTORY


def test_every_package_of_the_library_is_in_the_architecture() -> None:
    page = (DOCS / "architecture.md").read_text()
    packages = {path.parent.name for path in (ROOT / "spillway").glob("*/__init__.py")}
    assert {name for name in packages if not re.search(rf"\b{name}\b", page)} == set()


def test_records_are_numbered_without_gaps_and_stand_in_the_index() -> None:
    numbers = [int(record.name.partition("-")[0]) for record in RECORDS]
    assert numbers[0] == 1
    assert all(after == before + 1 for before, after in pairwise(numbers))
    index = (DOCS / "decisions" / "README.md").read_text()
    assert [record.name for record in RECORDS if f"({record.name})" not in index] == []


@pytest.mark.parametrize("record", RECORDS, ids=[record.stem for record in RECORDS])
def test_a_record_has_a_date_a_status_its_context_and_its_decision(record: Path) -> None:
    text = record.read_text()
    assert text.startswith(f"# {record.name[:4]}. ")
    assert re.search(r"^20\d\d-\d\d-\d\d · ", text, re.MULTILINE)
    assert re.search(r"^Status: (accepted|superseded by \[)", text, re.MULTILINE)
    assert "\n## Context\n" in text
    assert "\n## Decision\n" in text


def test_the_api_page_lists_every_aggregate_function() -> None:
    (row,) = re.findall(r"^\| `functions` \|.*$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert {each.value for each in AggregateFunction} <= set(re.findall(r"`(\w+)`", row))
