"""The changes at a recompile: argument, from, to.

Torch names for each version the first guard that failed. Those that failed for the same thing belong together, and the
thing that most versions failed for is what changed::

    [0/6]  table is None            for [0/5], [0/1], [0/0]     -> `table`: None -> a dict
           mode == 'mean'           for [0/4]                      (older versions)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..advice.recompiles import NUMBER
from ..records.model import Compilation, GuardFailure
from ..torch_text.guard_failures import NOT_EVALUATED, SAME_CODE, comparison
from ..torch_text.parsed import parsed_expression
from ..torch_text.user_expressions import user_expression
from .markdown import code, one_line, prose, some

_SIZE = re.compile(r"\.(?P<method>size|stride)\(\)\[(?P<index>\d+)\]")
_STACK_VALUE = re.compile(r"___stack\d+")
_STACK = re.compile(r"\b(?P<place>___stack\d+)\b(?:\[(?P<index>\d+)\])?")
#: What stands before and behind an expression that is part of no larger one than a call, or of a row in words.
_OPENED, _CLOSED = re.compile(r"(?:^|[(\[{,:]|->)\s*$"), re.compile(r"\s*(?:$|[)\]},:]|->)")
#: What a wrapper of the user's function takes by name.
_KEYWORD = re.compile(r"(?<![\w.\])])kwargs\['(?P<name>[A-Za-z_]\w*)'\]")
CLOSURE_HINT = re.compile(r'guard on "(?P<name>[^"]+)"[^,\s]*(?:, )?')
#: An expectation that is no single value.
_RANGE = re.compile(r"^\d+ or more$|^at most |^more than |^less than |^-?\d+ to -?\d+$|^not ")
_WITHOUT_TENSOR = re.compile(rf"{NOT_EVALUATED}'NoneType' object has no attribute '(?:size|stride|storage_offset)'")
#: Things that changed at once that one row tells.
_MOST = 3
#: Types of objects that Python makes anew each time that an attribute is read.
_BOUND = ("builtin_function_or_method", "method", "method-wrapper")


def is_without_tensor(subject: str) -> bool:
    """Return whether a guard could not read the sizes of a tensor, as there was none."""
    return _WITHOUT_TENSOR.match(subject) is not None


def viewed(subjects: Iterable[str]) -> set[str]:
    """Return the values of which conditions look at the tensor that they are a view of: ``x`` of ``x._base``."""
    split = (f"{subject}.".partition("._base.") for subject in subjects)
    return {view for view, found, _ in split if found}


def is_made_anew(failure: GuardFailure) -> bool:
    """Return whether a value failed to be a certain object that Python makes anew each time: a bound method."""
    return failure.expected == "the same object" and (
        failure.seen == "gone" or any(failure.seen.endswith(f" {kind}") for kind in _BOUND))


def made_anew_on_stack(compilations: Iterable[Compilation]) -> set[str]:
    """Return the values on the stack at a graph break that are another object at each call, ``___stack0``.

    The recompiles for them tell. A version that wants one of them serves no call but the one that it was compiled for.
    """
    return {name[0] for compilation in compilations for failure in compilation.guard_failures
            if is_made_anew(failure) and (name := _STACK_VALUE.fullmatch(user_expression(failure.source)))}


@dataclass(frozen=True)
class Change:
    """A change that one recompile was for.

    Attributes:
        subject: in the user's words: ``x.shape[0]``.
        was: what the versions expected, that of the version used last first: ``"4"``, ``"2 or more"``.
        now: what this call had; ``""`` where unknown.
        failures: torch's accounts of it.
        others: of the versions that failed for another thing.
        on_stack: the subject is a value that was on the stack at a graph break.
        keywords: where the number of keyword arguments changed, which ones, and whether this call has them.
        holder: where ``self`` is of the closure of another function, such as a hook, what holds that function:
            ``"self.block._forward_hooks"``.
    """

    subject: str
    was: tuple[str, ...]
    now: str
    failures: tuple[GuardFailure, ...]
    others: tuple[GuardFailure, ...] = ()
    on_stack: bool = False
    keywords: tuple[tuple[str, bool], ...] = ()
    holder: str = ""

    @property
    def before(self) -> str:
        """What the version used last expected; of a number, rather a number than ``None``. ``""`` where unknown."""
        first = self.was[0] if self.was else ""
        if first != "None" or not NUMBER.fullmatch(self.now):
            return first
        return next((was for was in self.was if NUMBER.fullmatch(was)), first)

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
        told = [(f"{value(was)} in " if was and was != self.before else "of ") + some(list(entries), 3)
                for was, entries in by_value.items()]
        return "; ".join(told[:_MOST]) + (f"; and {len(told) - _MOST} more" if len(told) > _MOST else "")

    @property
    def lasts(self) -> bool:
        """Return whether another call can match the version at all: a bound method is another object each time."""
        return not (self.on_stack and is_made_anew(self.failures[0]))

    def row(self) -> str:
        """Return ``x.shape[0]``: 4 → 6, as Markdown."""
        if not self.lasts:
            of = self.entries or "a version"
            return f"{code(self.subject)} is a new bound method at each call, so {of} could serve one call only"
        if self.subject.startswith(NOT_EVALUATED):
            return prose(self.subject)
        if self.keywords:
            return ", ".join(f"{code(name)} is passed: {'no → yes' if given else 'yes → no'}"
                             for name, given in self.keywords)
        was, now = value(self.before) if self.before else "", value(self.now)
        if was == "the same object":
            now = "" if now == "another object" else f" ({now.removeprefix('an object ')})"
            return f"{code(self.subject)} is another object{now} than when the version was compiled"
        if was == SAME_CODE:
            return f"{code(self.subject)} is another function{f' ({prose(self.now)})' if self.now else ''}"
        if was and now:
            return f"{self.subject_text()}: {was} → {now}"
        return f"{self.subject_text()}: no longer {was}" if was else f"{self.subject_text()} changed"

    def sentence(self) -> str:
        """Return the change as a clause: "`x.shape[0]` was 4 and is 6"."""
        was, now = value(self.before) if self.before else "", value(self.now)
        if not self.lasts:
            return f"{code(self.subject)} is a new bound method at each call, so no version lasts longer than its call"
        if self.keywords:
            return " and ".join(f"{code(name)} was {'not ' if given else ''}passed and is {'' if given else 'not '}now"
                                for name, given in self.keywords)
        if was in ("the same object", SAME_CODE) or self.subject.startswith(NOT_EVALUATED):
            return self.row()
        if _RANGE.search(was) and now:
            return f"{self.subject_text()} had to be {was} and is {now}"
        if was and now:
            return f"{self.subject_text()} was {was} and is {now}"
        return f"{self.subject_text()} is no longer {was}" if was else f"{self.subject_text()} changed"

    def subject_text(self) -> str:
        """Return the subject as Markdown."""
        text = code(self.subject) if _is_python(self.subject) else prose(self.subject)
        return f"{text} ({code('self')} as a function in {code(self.holder)} holds it)" if self.holder else text


def row(changed: Sequence[Change]) -> str:
    """Return the changes as Markdown: where versions failed for different things, each of them with its versions."""
    if len(changed) < 2 or not changed[0].lasts:
        return changed[0].row() if changed else ""
    rows = [change.row() + (f" ({versions})" if change.lasts and (versions := change.versions) else "")
            for change in changed]
    return "; ".join(rows[:_MOST]) + (f"; and {len(rows) - _MOST} more" if len(rows) > _MOST else "")


def changes(
    compilation: Compilation, names: Mapping[str, str], known: set[tuple[str, str]] | None = None
) -> tuple[Change, ...]:
    """Return the changes since each version was compiled, the most telling first; one at least for a recompile.

    Most telling is what no earlier version of the function met; then what most versions failed for; then what the
    version failed for that was used last.

    Args:
        compilation: a recompile, or one that reached the limit.
        names: expressions of values that torch names by place: ``{"___stack0": "self.log.append"}``.
        known: ``(subject, value)`` that earlier versions of the function expect; what this one tells is added.
    """
    known = set() if known is None else known
    groups: dict[str, list[GuardFailure]] = {}
    for failure in compilation.guard_failures:
        groups.setdefault(_subject(failure, names), []).append(failure)

    def weight(subject: str) -> tuple[bool, int]:
        return (subject, groups[subject][0].seen) in known, -len(groups[subject])

    order = sorted(groups, key=weight)  # (stable: the version used last comes first in torch's list)
    for subject, members in groups.items():
        known.update((subject, value) for failure in members for value in (failure.expected, failure.seen) if value)
    return tuple(
        Change(subject, tuple(failure.expected for failure in groups[subject]), groups[subject][0].seen,
               tuple(groups[subject]),
               tuple(failure for failure in compilation.guard_failures if failure not in groups[subject]),
               any(_STACK.search(failure.subject) for failure in groups[subject]),
               holder=_holder(groups[subject][0]))
        for subject in order)


def _subject(failure: GuardFailure, names: Mapping[str, str]) -> str:
    subject = failure.subject if failure.subject != failure.text else ""
    subject = subject or comparison(failure.text, lambda expression: "").subject  # (of an older dump)
    closure = CLOSURE_HINT.search(failure.hint)
    if closure is not None:
        subject = _with_variable(subject, closure["name"])
    return in_words(subject, names)


def _with_variable(subject: str, name: str) -> str:
    """Return an expression with the name of a variable in the place of the cell that holds it."""
    cell = _cell(subject)
    text = ast.get_source_segment(subject, cell) if cell is not None else None
    return subject.replace(text, name) if text else subject


def _holder(failure: GuardFailure) -> str:
    """Return what holds a function in whose closure a ``self`` is that a subject begins with; ``""`` for none."""
    closure, cell = CLOSURE_HINT.search(failure.hint), _cell(failure.subject)
    if closure is None or closure["name"] != "self":
        return ""
    match cell:
        case ast.Attribute(ast.Subscript(ast.Attribute(ast.Subscript(held)))):
            return in_words(ast.unparse(held), {})
    return ""


def _cell(subject: str) -> ast.expr | None:
    """Return the contents of a cell of a closure that an expression reads: ``hook.__closure__[0].cell_contents``."""
    for node in ast.walk(parsed_expression(subject) or ast.Pass()):
        match node:
            case ast.Attribute(ast.Subscript(ast.Attribute(_, "__closure__")), "cell_contents"):
                return node
    return None


def in_words(expression: str, names: Mapping[str, str]) -> str:
    """Return an expression of torch's in the user's words, ``___stack0`` and sizes included."""
    text = _KEYWORD.sub(r"\g<name>", one_line(user_expression(expression)))
    text = _SIZE.sub(lambda m: f".shape[{m['index']}]" if m["method"] == "size" else f".stride({m['index']})", text)

    text = with_stack_names(text, names)
    for known in names.values():
        if f"{known}.__self__" in text and isinstance(parsed_expression(known), ast.Attribute):
            text = text.replace(f"{known}.__self__", known.rpartition(".")[0])  # (what a bound method is of)
    return text


def with_stack_names(text: str, names: Mapping[str, str]) -> str:
    """Return a text with the user's expressions in place of ``___stack0``, in parentheses where Python wants them.

    ``___stack0[1]`` of a tuple or list that the user's line makes is its element.
    """
    def named(match: re.Match[str]) -> str:
        known, behind = names.get(match["place"], ""), text[match.end():]
        if not known:
            return match[0]
        if match["index"] is None:
            return _as_part(known, text[: match.start()], behind)
        element = _element(known, int(match["index"]))
        index = f"[{match['index']}]"
        return _as_part(element, text[: match.start()], behind) if element else (
            _as_part(known, text[: match.start()], index) + index)

    return _STACK.sub(named, text)


def _element(display: str, index: int) -> str:
    """Return an element of a tuple or list; ``""`` where the text is none, or the element is not known."""
    node = parsed_expression(display)
    if not isinstance(node, (ast.Tuple, ast.List)) or index >= len(node.elts) or any(
            isinstance(each, ast.Starred) for each in node.elts):
        return ""
    return ast.get_source_segment(display, node.elts[index]) or ""


def _as_part(expression: str, before: str, behind: str) -> str:
    """Return an expression as it stands between two texts: in parentheses where it would read otherwise."""
    if _is_atom(expression):
        return expression
    alone = _OPENED.search(before) is not None and _CLOSED.match(behind) is not None
    loose = isinstance(parsed_expression(expression), (ast.Tuple, ast.NamedExpr))
    return expression if alone and not loose else f"({expression})"


def value(text: str) -> str:
    """Return a value in Markdown: code where it is Python, else words."""
    text = one_line(text).removeprefix("__main__.")
    if not text:
        return ""
    if text == "any" or _RANGE.search(text) or re.fullmatch(r"-?\d+(\.\d+)?", text):
        return text
    return code(text) if _is_python(text) else prose(text)


def _is_python(text: str) -> bool:
    node = parsed_expression(text)
    if node is None:
        return False
    return not isinstance(node, ast.Name) or text in ("True", "False", "None") or text.isidentifier() and text not in (
        "there", "missing", "gone")


def _is_atom(text: str) -> bool:
    """Return whether an expression is whole in front of a dot."""
    node, longer = parsed_expression(text), parsed_expression(f"{text}.part")
    return node is not None and isinstance(longer, ast.Attribute) and ast.dump(longer.value) == ast.dump(node)
