"""The changes at a recompile: argument, from, to.

Torch names for each version the first guard that failed. Those that failed for the same thing belong together, and what
no version takes is what changed::

    [0/6]  table is None            for [0/5], [0/1], [0/0]     -> `mode`: 'mean' -> 'sum'
           mode == 'mean'           for [0/4]                      (which takes a table)
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ..model.arithmetic import plain_sizes
from ..model.folding import fold
from ..records.model import Compilation, GuardFailure
from ..torch_text import guard_failures
from ..torch_text.parsed import parsed_expression
from ..torch_text.user_expressions import in_words as in_words_of_frame
from ..torch_text.user_expressions import reads_stack, user_expression
from ..values import frozen
from .markdown import code, one_line, prose, some

_MOST = 3  #: Things that changed at once that are in one row.
#: What became of a value that is the same, but no longer where a version looks for it.
ELSEWHERE = "in another dictionary of its object (`__dict__`, `_modules`, ...)"


@frozen
class Change:
    """A change that one recompile was for."""

    subject: str  # in the user's words: `x.shape[0]`
    was: tuple[str, ...]  # what the versions expected, that of the version used last first: `"4"`, `"2 or more"`
    now: str  # what this call had; `""` where unknown
    failures: tuple[GuardFailure, ...]
    on_stack: bool = False  # the subject is a value that was on the stack at a graph break
    # where the number of keyword arguments changed, which ones, and whether this call has them
    keywords: tuple[tuple[str, bool], ...] = ()

    @property
    def before(self) -> str:
        """What the version used last expected; of a number, rather a number than ``None``. ``""`` where unknown."""
        first = self.was[0] if self.was else ""
        if first != "None" or guard_failures.number(self.now) is None:
            return first
        return next((was for was in self.was if guard_failures.number(was) is not None), first)

    @property
    def entries(self) -> str:
        """The versions that failed for it, as Markdown."""
        return some(list(dict.fromkeys(code(str(failure.entry)) for failure in self.failures if failure.entry)), 3)

    @property
    def versions(self) -> str:
        """The versions that failed for it, as Markdown, with what others expected than the one used last."""
        by_value: dict[str, dict[str, None]] = {}
        for was, failure in zip(self.was, self.failures):
            if failure.entry:
                by_value.setdefault(was, {})[code(str(failure.entry))] = None
        shown = [(f"{value(was)} in " if was and was != self.before else "of ") + some(list(entries), 3)
                for was, entries in sorted(by_value.items(), key=lambda each: each[0] not in ("", self.before))]
        return "; ".join(shown[:_MOST]) + (f"; and {len(shown) - _MOST} more" if len(shown) > _MOST else "")

    @property
    def lasts(self) -> bool:
        """Return whether another call can match the version at all: a bound method is another object each time."""
        return not (self.on_stack and guard_failures.is_made_anew(self.failures[0]))

    def row(self) -> str:
        """Return ``x.shape[0]``: 4 → 6, as Markdown."""
        if not self.lasts:
            of = self.entries or "a version"
            return f"{code(self.subject)} is a new bound method at each call, so {of} could serve one call only"
        if guard_failures.is_sentence(self.subject):
            return prose(self.subject)
        if self.keywords:
            return ", ".join(f"{code(name)} is passed: {'no → yes' if given else 'yes → no'}"
                             for name, given in self.keywords)
        was, now = value(self.before) if self.before else "", value(self.now)
        if was == guard_failures.SAME_OBJECT:
            of_type = guard_failures.object_type(self.now)
            now = f" (of type {prose(of_type)})" if of_type else f" ({now})" * (now != guard_failures.ANOTHER_OBJECT)
            return f"{code(self.subject)} is another object{now} than when the version was compiled"
        if was == guard_failures.SAME_CODE:
            return f"{code(self.subject)} is another function{f' ({prose(self.now)})' if self.now else ''}"
        if self.now == ELSEWHERE:
            return f"{self.subject_text()} is {ELSEWHERE} than when the version was compiled"
        if was == "there" and now == "missing" and "." in self.subject:  # (torch reads one of its places)
            return f"{self.subject_text()} is not where the version reads it"
        if was and now:
            return f"{self.subject_text()}: {was} → {now}"
        return f"{self.subject_text()}: no longer {was}" if was else f"{self.subject_text()} changed"

    def subject_text(self) -> str:
        """Return the subject as Markdown; of a ``self`` that is no argument, with the object that refers to it."""
        text = code(self.subject) if _is_python(self.subject) else prose(self.subject)
        if guard_failures.closure_variable(self.failures[0]) == "self":
            match _cell(self.failures[0].subject):
                case ast.Attribute(ast.Subscript(ast.Attribute(ast.Subscript(container)))):
                    owner = in_words(ast.unparse(container), {})
                    return f"{text} ({code('self')} is that of a function in {code(owner)})"
        return text


def row(changed: Sequence[Change]) -> str:
    """Return the changes as Markdown: where versions failed for different things, each of them with its versions."""
    if len(changed) < 2 or not changed[0].lasts:
        return changed[0].row() if changed else ""
    rows = [change.row() + (f" ({versions})" if change.lasts and (versions := change.versions) else "")
            for change in changed]
    return "; ".join(rows[:_MOST]) + (f"; and {len(rows) - _MOST} more" if len(rows) > _MOST else "")


def changes(
    compilation: Compilation, names: Mapping[str, str], known: dict[tuple[int, int, int], dict[str, str]],
) -> tuple[Change, ...]:
    """Return the changes since each version was compiled, the most informative first; one at least for a recompile.

    First comes what no earlier version takes; then that of the version which takes most of the others, what versions
    leave open, what most versions failed for, and what the last used one failed for. That no guard failed is the last.

    Args:
        compilation: a recompile, or one that reached the limit.
        names: expressions of values that torch names by place: ``{"___stack0": "self.log.append"}``.
        known: by the ``key`` of each version what it is for, ``""`` for what it leaves open; this one is added.
    """
    groups = fold(compilation.guard_failures, lambda failure: _subject(failure, names))
    seen = {subject: _values(subject, members[0].seen) for subject, members in groups.items()}
    failed: dict[str, list[dict[str, str]]] = {subject: [] for subject in groups}
    for subject, members in groups.items():
        for failure in members:
            failed[subject].append(version := known.setdefault(failure.entry.key, {}) if failure.entry else {})
            for name, value in _values(subject, failure.expected):
                version.setdefault(name, value)

    def weight(subject: str) -> tuple[bool, int, int, bool, int]:
        expected, failing = [failure.expected for failure in groups[subject]], {*map(id, failed[subject])}
        others = [(version.get(name), value) for version in known.values() if id(version) not in failing
                  for name, value in seen[subject]]
        is_open = guard_failures.are_numbers(expected) and any(taken == "" for taken, _ in others)
        is_taken = guard_failures.SAME_OBJECT not in expected and any(
            taken is not None and _is_for(taken, value) for taken, value in others)
        refused = [sum(bool(wanted := version.get(name, "")) and not _is_for(wanted, value) for other in seen
                       if other != subject for name, value in seen[other]) for version in failed[subject]]
        # (A version that failed for another thing than the function is mostly one of that function.)
        kind = 2 if guard_failures.SAME_CODE in expected else is_taken or is_open
        return subject == guard_failures.ALL_HOLD, kind, min(refused), not is_open, -len(groups[subject])

    order = sorted(groups, key=weight)  # (stable: the version used last comes first in torch's list)
    known[compilation.compile_id.key] = dict(each for values in seen.values() for each in values)
    return tuple(
        Change(subject, tuple(_expected(failure, subject, known) for failure in groups[subject]),
               groups[subject][0].seen, tuple(groups[subject]),
               any(reads_stack(failure.subject) for failure in groups[subject]))
        for subject in order)


def _expected(failure: GuardFailure, subject: str, known: Mapping[tuple[int, int, int], Mapping[str, str]]) -> str:
    """Return what a version expected: of a tensor of a certain class this, which torch does not say."""
    wanted = known.get(failure.entry.key, {}).get(subject, "") if failure.entry else ""
    return wanted if failure.expected == "a tensor" and wanted not in ("", "Tensor") else failure.expected


def _is_for(wanted: str, value: str) -> bool:
    """Return whether a version that is for one value is for another: of a type torch may give the last name alone."""
    return wanted == value or value.isidentifier() and wanted.endswith(f".{value}")


def _values(subject: str, value: str) -> list[tuple[str, str]]:
    """Return what has which value: the type of what is ``None`` or an object, each of several states."""
    if value == "None" or guard_failures.object_type(value):
        return [(f"type({subject})", guard_failures.object_type(value) or "NoneType")]
    names, values = subject.split(", "), value.replace("a tensor", "Tensor").split(", ")
    return list(zip(names, values) if len(names) == len(values) else [(subject, value)]) if value else []


def _subject(failure: GuardFailure, names: Mapping[str, str]) -> str:
    """Return what failed in the user's words; a variable of a closure by its name, not by its cell."""
    subject = failure.subject
    variable, cell = guard_failures.closure_variable(failure), _cell(subject)
    if variable and cell is not None and (text := ast.get_source_segment(subject, cell)):
        subject = subject.replace(text, variable)
    return in_words(subject, names)


def _cell(subject: str) -> ast.expr | None:
    """Return the contents of a cell of a closure that an expression reads: ``hook.__closure__[0].cell_contents``."""
    for node in ast.walk(parsed_expression(subject) or ast.Pass()):
        match node:
            case ast.Attribute(ast.Subscript(ast.Attribute(_, "__closure__")), "cell_contents"):
                return node
    return None


def in_words(expression: str, names: Mapping[str, str]) -> str:
    """Return an expression of torch's in the user's words; what torch has is on one line."""
    text = one_line(expression)
    return in_words_of_frame(plain_sizes(user_expression(text)) if ".size()" in text else text, names)


def value(text: str) -> str:
    """Return a value in Markdown: code where it is Python, else words."""
    text = one_line(text).removeprefix("__main__.")
    if not text:
        return ""
    if text == "any" or guard_failures.is_range(text) or guard_failures.number(text) is not None:
        return text
    return code(text) if _is_python(text) else prose(text)


def _is_python(text: str) -> bool:
    node = parsed_expression(text)
    if node is None:
        return False
    return not isinstance(node, ast.Name) or text in ("True", "False", "None") or text.isidentifier() and text not in (
        "there", "missing", "gone")
