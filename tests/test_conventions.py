"""Conventions of the library and of the functions, held by every module."""

import ast
import doctest
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import spillway

ROOT = Path(spillway.__file__).parent
NAMES = ["spillway", *(found.name for found in pkgutil.walk_packages([str(ROOT)], "spillway."))]


@pytest.fixture(params=NAMES)
def module(request: pytest.FixtureRequest) -> ModuleType:
    return import_module(request.param)


def _defined(module: ModuleType) -> Iterator[str]:
    """Yield the public names that a module's own text gives a meaning."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (each.id for each in node.targets if isinstance(each, ast.Name))


def _public(names: Iterator[str]) -> set[str]:
    # Single letters are type variables.
    return {name for name in names if not name.startswith("_") and len(name) > 1}


def test_modules_export_what_they_define_and_nothing_else(module: ModuleType) -> None:
    exported = set(getattr(module, "__all__", ()))
    assert {name for name in exported if not hasattr(module, name)} == set()
    defined = _public(_defined(module))
    if module.__name__ not in {"spillway", "spillway.cdk"}:  # these re-export
        assert exported <= defined
    assert defined <= exported


def _members(owner: type) -> Iterator[Any]:
    for name, member in vars(owner).items():
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "__func__", function)
        if not name.startswith("_") and inspect.isfunction(function):
            yield function


def test_every_public_name_says_what_it_does(module: ModuleType) -> None:
    assert module.__doc__
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if not inspect.isclass(value) and not inspect.isfunction(value):
            continue
        assert (value.__doc__ or "").strip(), name
        for member in _members(value) if inspect.isclass(value) else ():
            assert (member.__doc__ or "").strip(), f"{name}.{member.__name__}"


def test_modules_and_functions_stay_short(module: ModuleType) -> None:
    source = inspect.getsource(module)
    assert len(source.splitlines()) <= 260
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]
            assert lines <= 40, node.name


def test_the_example_of_the_store_is_written_as_it_runs() -> None:
    text = inspect.getdoc(spillway.EventStore) or ""
    examples = doctest.DocTestParser().get_examples(text)
    assert [example.want for example in examples] == ["", "1\n"]
    for example in examples:
        ast.parse(example.source)
