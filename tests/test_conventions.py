"""Conventions of the library and of the functions, held by every module."""

import ast
import doctest
import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

import spillway

ROOT = Path(spillway.__file__).parent
NAMES = ["spillway", *(found.name for found in pkgutil.walk_packages([str(ROOT)], "spillway."))]

REEXPORTING = {"spillway", "spillway.cdk", "spillway.control"}


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
    if module.__name__ not in REEXPORTING:
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


def _annotations(owner: type) -> Iterator[ast.expr]:
    """Yield the annotations of a class' fields and public methods, the constructor included."""
    (body,) = ast.parse(dedent(inspect.getsource(owner))).body
    assert isinstance(body, ast.ClassDef)
    names = {name for name in vars(owner) if not name.startswith("_")}
    if owner is spillway.EventStore:
        names.add("__init__")
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_"):
            yield node.annotation
        elif isinstance(node, ast.FunctionDef) and node.name in names:
            arguments = [*node.args.args, *node.args.kwonlyargs]
            yield from (each.annotation for each in arguments if each.annotation is not None)
            if node.returns is not None:
                yield node.returns


def _named_types(owner: type) -> set[str]:
    """Return the names of the library that a class' annotations use, also within quotes."""
    found = set()
    for annotation in _annotations(owner):
        text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
        found |= set(re.findall(r"[A-Z]\w+", str(text)))
    module = import_module(owner.__module__)
    own = {
        node.name
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef)
    }
    imported = {
        alias.name
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("spillway")
        for alias in node.names
    }
    return found & (own | imported)


def _public_types() -> list[type]:
    classes = (getattr(spillway, name) for name in spillway.__all__)
    own = [each for each in classes if inspect.isclass(each)]
    mixins = [each for each in spillway.EventStore.__mro__[1:] if each is not object]
    return [*own, *mixins]


@pytest.mark.parametrize("owner", _public_types(), ids=lambda owner: owner.__name__)
def test_every_type_that_a_public_signature_names_is_exported(owner: type) -> None:
    assert _named_types(owner) - set(spillway.__all__) == set()


def test_the_example_of_the_store_is_written_as_it_runs() -> None:
    text = inspect.getdoc(spillway.EventStore) or ""
    examples = doctest.DocTestParser().get_examples(text)
    assert [example.want for example in examples] == ["", "1\n"]
    for example in examples:
        ast.parse(example.source)
