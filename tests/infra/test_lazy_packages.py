"""Packages that a bundle imports piece by piece: the same names, later."""

import subprocess
import sys
from pathlib import Path

import pytest

from stacks.lazy_packages import defer_imports


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of two modules, of which its `__init__` takes names, one under another name."""
    folder = tmp_path / "outer" / "inner"
    folder.mkdir(parents=True)
    (tmp_path / "outer" / "__init__.py").touch()
    (folder / "quick.py").write_text("def run():\n    return 'quick'\n")
    (folder / "slow.py").write_text("def run():\n    return 'slow'\n")
    (folder / "__init__.py").write_text(
        '"""What it is."""\n'
        "from outer.inner.quick import run\n"
        "from .slow import run as crawl\n"
        '__all__ = ["crawl", "run"]\n'
    )
    return folder


def _run(folder: Path, program: str) -> list[str]:
    program = f"import sys; sys.path.insert(0, {str(folder)!r})\n{program}"
    command = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_name_imports_its_own_module_only(tmp_path: Path, package: Path) -> None:
    del package
    assert defer_imports(tmp_path, "outer.inner")
    printed = _run(
        tmp_path,
        "from outer.inner import run\n"
        "print(run(), 'outer.inner.slow' in sys.modules)\n"
        "from outer.inner import crawl\n"
        "print(crawl(), 'outer.inner.slow' in sys.modules)",
    )
    assert printed == ["quick", "False", "slow", "True"]


def test_all_names_and_the_documentation_stay(tmp_path: Path, package: Path) -> None:
    del package
    assert defer_imports(tmp_path, "outer.inner")
    program = (
        "import outer.inner\nfrom outer.inner import *\nprint(run(), crawl(), outer.inner.__doc__)"
    )
    assert _run(tmp_path, program) == ["quick", "slow", "What", "it", "is."]


def test_an_unknown_name_is_an_import_error(tmp_path: Path, package: Path) -> None:
    del package
    assert defer_imports(tmp_path, "outer.inner")
    program = (
        "try:\n    from outer.inner import absent\nexcept ImportError as e:\n    print(e.name)"
    )
    assert _run(tmp_path, program) == ["outer.inner"]


@pytest.mark.parametrize("statement", ["print('hello')\n", "import os\n", "LIMIT = 3\n"])
def test_a_package_that_does_more_than_re_export_stays_as_it_is(
    tmp_path: Path, package: Path, statement: str
) -> None:
    file = package / "__init__.py"
    file.write_text(before := file.read_text() + statement)
    assert not defer_imports(tmp_path, "outer.inner")
    assert file.read_text() == before
