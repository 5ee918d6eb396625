"""What the lines of the program's files do, found once for each file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cached_property

from ...advice.recompile_changes import last_part
from ...advice.source import last_name
from ...advice.uses import added_to, attributes_set, branch_tests, lone_tests, read_by_tests, set_by_key
from ...frozen import frozen
from ...records.model import SourceLocation
from ...torch_text.libraries import is_library
from ..user_source import UserSource

#: Files that another than the user wrote.
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")


@frozen
class TestedValue:
    """What a test of the program's reads: a variable, an attribute or an item.

    Attributes:
        node: where it stands.
        text: ``"self.stats['calls']"``.
        last_part: ``"['calls']"``.
    """

    node: ast.expr
    text: str
    last_part: str


class FileLines:
    """What the lines of one file do. Those of a file that cannot be read do nothing."""

    def __init__(self, tree: ast.Module | None) -> None:
        self._tree = tree if tree is not None else ast.Module([], [])

    @cached_property
    def branches(self) -> frozenset[int]:
        """The lines of tests that decide where Python goes on."""
        return _lines_of(branch_tests(self._tree))

    @cached_property
    def lone_tests(self) -> frozenset[int]:
        """The lines of the tests of ``if`` and ``while`` on which nothing else is computed."""
        return _lines_of(lone_tests(self._tree))

    @cached_property
    def tested_values(self) -> list[TestedValue]:
        """What tests read."""
        read = [(each, ast.unparse(each)) for each in read_by_tests(self._tree)]
        return [TestedValue(each, text, last_part(text)) for each, text in read]

    @cached_property
    def filled(self) -> frozenset[str]:
        """The variables and attributes whose items are set by key, and to which nothing is added otherwise."""
        by_key, added = map(last_name, set_by_key(self._tree)), map(last_name, added_to(self._tree))
        return frozenset({*by_key} - {*added} - {""})


class ProgramFiles:
    """The files of a run's program."""

    def __init__(self, source: UserSource) -> None:
        self._source = source
        self._files: dict[str, FileLines] = {}

    def lines_of(self, filename: str) -> FileLines:
        """Return what the lines of a file do."""
        if filename not in self._files:
            self._files[filename] = FileLines(self._source.tree(filename))
        return self._files[filename]

    def branches_at(self, place: SourceLocation | None) -> bool:
        """Return whether the program branches by a line."""
        return place is not None and place.line in self.lines_of(place.filename).branches

    def only_tests_at(self, place: SourceLocation | None) -> bool:
        """Return whether a line is that of the test of an ``if`` or ``while``, and nothing else is computed there."""
        return place is not None and place.line in self.lines_of(place.filename).lone_tests

    @cached_property
    def set_once(self) -> frozenset[str]:
        """The attributes that only an ``__init__`` sets; none where somebody sets one whose name is not known."""
        files = [path for path in self._source.files() if not is_library(path) and not is_installed(path)]
        trees = filter(None, map(self._source.tree, files))
        sets = [each for tree in trees for each in attributes_set(tree)]
        if ("", False) in sets:
            return frozenset()
        return frozenset({name for name, in_init in sets if in_init} - {name for name, in_init in sets if not in_init})


def is_installed(filename: str) -> bool:
    """Return whether a path is of a file of an installed package."""
    return _INSTALLED.search(filename) is not None


def _lines_of(tests: Iterable[ast.expr]) -> frozenset[int]:
    return frozenset(line for test in tests for line in range(test.lineno, (test.end_lineno or test.lineno) + 1))
