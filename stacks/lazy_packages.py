"""Packages whose `__init__` only re-exports, made to import what is asked for when it is asked for.

`from aws_lambda_powertools.event_handler import Response` imports resolvers for six services, and asyncio with them.
The packages themselves stay as they are for everybody else: only a bundle's copy changes.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["PACKAGES", "defer_imports"]

PACKAGES: Final = (
    "aws_lambda_powertools.event_handler",
    "aws_lambda_powertools.utilities.data_classes",
)

_TEMPLATE: Final = """{documentation}

from importlib import import_module

{exported}

_HOMES = {homes!r}


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    home, original = _HOMES[name]
    value = globals()[name] = getattr(import_module(home), original)
    return value
"""


def defer_imports(folder: Path, package: str) -> bool:
    """Rewrite the package's `__init__.py` below `folder`; False, and nothing, where it does more than re-export."""
    file = folder.joinpath(*package.split("."), "__init__.py")
    tree = ast.parse(file.read_text())
    documentation = ast.get_docstring(tree, clean=False)
    body = tree.body[1:] if documentation is not None else tree.body
    imports = [node for node in body if isinstance(node, ast.ImportFrom)]
    exported = [node for node in body if _names_exports(node)]
    if len(imports) + len(exported) != len(body) or not imports:
        return False
    file.write_text(
        _TEMPLATE.format(
            documentation=repr(documentation or ""),
            exported="\n".join(ast.unparse(node) for node in exported),
            homes=dict(_homes(package, imports)),
        )
    )
    return True


def _names_exports(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def _homes(package: str, imports: list[ast.ImportFrom]) -> Iterator[tuple[str, tuple[str, str]]]:
    for node in imports:
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        home = ".".join([*above, *filter(None, [node.module])])
        for alias in node.names:
            yield alias.asname or alias.name, (home, alias.name)
