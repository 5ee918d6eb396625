"""A module measured: each of its functions, as written or not, and how."""

from __future__ import annotations

import ast
import collections
import copy
import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType

from _shared import TooLong, time_limit

from depyf.bytecode.code import Code
from depyf.decompiler import decompile_code
from depyf.decompiler.proof.recompile import Interpreter

from .classes import difference
from .functions import Pair, functions, paired
from .normalise import Function, normalise
from .stripped import stripped

#: Forms that no text of ours shall have.
UGLY = PASS_ELSE, NOT_IS, NOT_IN = "`if ...: pass` / `else`", "`not x is y`", "`not x in y`"
MODULE_SECONDS = 120
#: A text longer than this is not kept as an example.
EXAMPLE_LINES = 60


@dataclass
class Row:
    """One function. ``kind`` is the class of the first difference, empty if it is as written.

    ``checked`` says whether the source's own text, unparsed and parsed again, is as written: it always must be.
    """

    file: str
    name: str
    line: int
    lines: int
    kind: str
    like: float
    checked: bool
    source: str = ""
    ours: str = ""


@dataclass
class Module:
    """The rows of a module, and how often its text and its source have each form of ``UGLY``."""

    rows: list[Row]
    ugly: dict[str, int] = field(default_factory=dict)
    author_ugly: dict[str, int] = field(default_factory=dict)


def measure(file: str, code: CodeType | Code, text: bytes, mode: str = "whole",
            interpreter: Interpreter | None = None) -> Module:
    """The figures of a module from its code object and the text it was compiled from."""
    tree = ast.parse(text)
    if isinstance(code, CodeType):
        code = Code.of(stripped(code, mode))
    version = code.version
    try:
        with time_limit(MODULE_SECONDS):
            found = decompile_code(code, interpreter=interpreter)
        ours = ast.parse(found.text)
    except (Exception, TooLong) as error:  # whatever goes wrong is counted
        return Module([_lost(file, name, function, version, f"no text: {type(error).__name__}")
                       for name, function in functions(tree)])
    again = unparsed(tree)
    checks = [] if again is None else list(functions(again))
    places = {id(function): at for at, (_, function) in enumerate(functions(tree))}
    rows = []
    for pair in paired(tree, ours, found.parts):
        at = places[id(pair.source)]
        check = checks[at][1] if len(checks) == len(places) else None
        rows.append(row(file, pair, version, check))
    return Module(rows, collections.Counter(ugly(ours)), collections.Counter(ugly(tree)))


def row(file: str, pair: Pair, version: tuple[int, int], check: Function | None) -> Row:
    """The row of one function. ``check``: its own text, unparsed and parsed again."""
    source = normalise(copy.deepcopy(pair.source), version)
    checked = check is not None and ast.dump(normalise(check, version)) == ast.dump(source)
    if pair.ours is None:
        return _lost(file, pair.qualname, pair.source, version, "not in the text")
    ours = normalise(copy.deepcopy(pair.ours), version)
    kind = difference(source, ours)
    left, right = lines(source), lines(ours)
    made = Row(file, pair.qualname, pair.line, len(left), kind, 1.0, checked)
    if kind:
        if pair.fidelity == "fallback":
            made.kind = "fallback"
        made.like = difflib.SequenceMatcher(None, left, right, autojunk=False).ratio()
        if len(left) <= EXAMPLE_LINES:
            made.source, made.ours = "\n".join(left), "\n".join(right)
    return made


def _lost(file: str, name: str, function: Function, version: tuple[int, int], kind: str) -> Row:
    text = lines(normalise(copy.deepcopy(function), version))
    return Row(file, name, function.lineno, len(text), kind, 0.0, True)


def lines(tree: ast.AST) -> list[str]:
    """The lines of a tree's text; of its dump where a version cannot unparse it (f-strings before 3.12)."""
    try:
        return ast.unparse(ast.fix_missing_locations(tree)).splitlines()
    except ValueError:
        return ast.dump(tree, indent=1).splitlines()


def unparsed(tree: ast.Module) -> ast.Module | None:
    """A tree unparsed and parsed again; ``None`` where the version cannot."""
    try:
        return ast.parse(ast.unparse(tree))
    except (ValueError, SyntaxError):
        return None


def ugly(tree: ast.Module) -> Iterator[str]:
    """The forms of ``UGLY`` in a tree, each as often as it is there."""
    for node in ast.walk(tree):
        match node:
            case ast.If(_, [ast.Pass()], [_, *_]):
                yield PASS_ELSE
            case ast.UnaryOp(ast.Not(), ast.Compare(_, [ast.Is()], _)):
                yield NOT_IS
            case ast.UnaryOp(ast.Not(), ast.Compare(_, [ast.In()], _)):
                yield NOT_IN
