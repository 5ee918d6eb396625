"""The rooms of the package in order: each imports only from those before it, and only some may know torch.

(That private names of torch stand in one room alone is checked by tests/capture/test_private_api.py.)
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "depyf"
#: Ground floor first; those on one line are siblings, which do not import each other.
FLOORS = (
    "values",
    "budgets | harmless",
    "guarded | reading",
    "bytecode",
    "cfg",
    "decompiler",
    "records",
    "torch_text | termination",
    "model",
    "provenance",
    "finishing",
    "advice",
    "views | capture",
    "fitting",
    "link",
    "watch",
    "comparing",
    "run_files",
    # what people import
    "source | page | logs | optimization | pausing | recorded_runs",
    "backends | debugging | report | prepare",
    "old_names",
    "notebook",
    "explain",
    "fixing",
    # what people start
    "program",
    "cli | pytest_plugin",
    "__main__",
)
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS) for room in floor.split(" | ")}
#: These work where no torch is installed, and never load one that is.
WITHOUT_TORCH = (
    "bytecode", "cfg", "decompiler", "records", "torch_text", "model", "provenance", "finishing", "advice", "views",
    "fitting", "run_files")


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if "site" not in path.parts}


def imports(module: str) -> Iterator[str]:
    """Yield the full names of what a module imports anywhere in it: also in functions and for types only."""
    path = MODULES[module]
    package = ["depyf", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            yield from (".".join([*above, *filter(None, [node.module]), alias.name]) for alias in node.names)


def imported_modules(module: str) -> Iterator[str]:
    """Yield the modules of ours among them; the package itself (for its version) is none."""
    for name in imports(module):
        if name.startswith("depyf."):
            name = name.removeprefix("depyf.")
            name_of_module = name if name in MODULES else name.rpartition(".")[0]
            if name_of_module:
                yield name_of_module


def arrows_up() -> set[tuple[str, str]]:
    arrows = set()
    for module in MODULES:
        for imported in imported_modules(module) if module else ():  # (the package itself is a door to all rooms)
            room, other = module.partition(".")[0], imported.partition(".")[0]
            if room != other and FLOOR_OF[other] >= FLOOR_OF[room]:
                arrows.add((module, imported))
    return arrows


def test_every_room_has_its_floor():
    assert {module.partition(".")[0] for module in MODULES if module} == set(FLOOR_OF)


def test_imports_run_down():
    assert not arrows_up(), "these imports run up: (importing module, imported module)"


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_no_torch(room):
    assert not [
        (module, name) for module in MODULES if module.partition(".")[0] == room
        for name in imports(module) if name.partition(".")[0] == "torch"]


#: Packages that use typed values: texts of torch's are read in `torch_text` and `model`.
ON_VALUES = ("provenance", "views", "advice", "fitting", "comparing")
#: Their modules that may use regular expressions, with what they match.
USE_REGULAR_EXPRESSIONS = {
    "views.markdown": "Markdown", "views.page": "pages that depyf made",
    "views.dump.guards.functions": "Python that depyf wrote: the helpers that a file of guards calls",
    "fitting.written": "arguments that the user writes",
    "comparing.outcome": "what the program prints",
}
#: Words of torch's by which a text may be told from others.
WORDS_OF_TORCH = re.compile(
    r"___|__compiled_fn|__resume_at|torch_dynamo_resume|[LG]\[|GLOBAL_STATE|Sym\(|Eq\(|mismatch|^tensor '|graph break",
    re.IGNORECASE)


def modules_on_values() -> list[str]:
    return [module for module in MODULES if module.partition(".")[0] in ON_VALUES]


def test_texts_of_torch_are_matched_in_one_place():
    users = {module for module in modules_on_values() if "re" in imports(module)}
    assert users <= USE_REGULAR_EXPRESSIONS.keys()


def test_no_pattern_of_another_module_is_used():
    found = []
    for module in modules_on_values():
        tree = ast.parse(MODULES[module].read_bytes())
        imported = {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
                    for alias in node.names}
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(ast.Name(name), "sub" | "match" | "fullmatch" | "search" | "findall" | "finditer") if (
                        name in imported and name.isupper()):
                    found.append((module, name))
    assert not found


def test_no_text_of_torch_is_told_by_its_beginning():
    found = []
    for module in modules_on_values():
        for node in ast.walk(ast.parse(MODULES[module].read_bytes())):
            match node:
                case ast.Call(ast.Attribute(_, "startswith" | "endswith" | "removeprefix" | "removesuffix"), texts):
                    found += [(module, each.value) for text in texts for each in ast.walk(text)
                              if isinstance(each, ast.Constant) and WORDS_OF_TORCH.search(str(each.value))]
    assert not found


#: They compare or show the text of a guard, or evaluate it over a frame.
USE_TEXTS_OF_GUARDS = {
    "views.repro", "fitting.changes", "fitting.conditions", "fitting.given", "fitting.oracle"}


def test_what_a_guard_says_is_read_in_one_place():
    """Views, advice and fits use the conditions of `depyf.model`."""
    readers = set()
    for module in MODULES:
        if module.startswith(("views.", "advice.", "fitting.")):
            for node in ast.walk(ast.parse(MODULES[module].read_bytes())):
                match node:
                    case ast.Attribute(ast.Name("guard") | ast.Attribute(_, "guard"), "expression" | "raw"):
                        readers.add(module)
    assert readers == USE_TEXTS_OF_GUARDS
