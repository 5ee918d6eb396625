"""Benchmarks, scripts and examples, which few run: what they take from the package is there."""

import ast
import importlib
import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FILES = [path for folder in ("benchmarks", "scripts", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]


def taken(tree):
    """``(module, name)`` of what a text imports from the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "depyf":
            for alias in node.names:
                yield node.module, alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "depyf":
                    yield alias.name, ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_imported_is_there(path):
    pytest.importorskip("torch")
    for module, name in taken(ast.parse(path.read_text(encoding="utf-8"))):
        holder = importlib.import_module(module)
        assert not name or hasattr(holder, name) or importlib.util.find_spec(f"{module}.{name}"), f"{module}.{name}"
