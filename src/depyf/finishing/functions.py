"""The functions of a run: decompiled, with their versions, guards and resume functions in order."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..bytecode.canonical import canonicalise
from ..bytecode.code import Code
from ..bytecode.linetable import Position, positions
from ..bytecode.packed import unpacked
from ..cfg.graph import BRANCH, build
from ..provenance.sources import collect
from ..records import model as records
from ..records.model import (
    Branch,
    Bytecode,
    CacheEntry,
    Capture,
    CompiledFunction,
    EndOfRecording,
    Frame,
    Guard,
    MeantFunction,
    Unwritten,
)
from ..records.naming import function_identifier
from ..torch_text.global_names import is_resume, offset_in, resumed_function
from ..torch_text.guards import GuardReader, unread_guards
from ..torch_text.wrapping import legal_graph
from .frames import make_frame
from .stack_values import expressions_on_stack, operation_at, text_at
from .texts import Attempt, Texts

Progress = Callable[[str, int, int], None]  #: ``progress("functions", 3, 48)``: the fourth of 48 is next.
#: A function: what torch compiled, and what the user means by it (one wrapper can be that of many functions).
Key = tuple[int, int]


def finished(capture: Capture, attempt: Attempt, progress: Progress = lambda what, done, total: None) -> Capture:
    """Return a run with its functions, whose texts are written now.

    Args:
        capture: what was recorded; returned as it is, if nothing is to be written.
        attempt: runs each part; what fails is left out.
        progress: called with what is being made.
    """
    unwritten = capture.unwritten
    if unwritten is None:
        return capture
    recorded = unwritten.recorded
    unsimplified = recorded is not None and EndOfRecording.UNSIMPLIFIED in recorded.options
    number = len(unwritten.bytecodes)
    texts = Texts(_version(capture), unsimplified, attempt, lambda done: progress("functions", done, number))
    attempt(lambda: texts.make(unwritten.bytecodes), None)
    functions = Functions(unwritten, _version(capture), attempt, texts).all()
    graphs = tuple(attempt(lambda: replace(graph, stages=tuple(
        replace(stage, text=legal_graph(stage.text)) if stage.is_python else stage for stage in graph.stages)), graph)
        for graph in capture.graphs)  # (where they are Python at all)
    whole = replace(capture, functions=(*capture.functions, *functions), graphs=graphs, unwritten=None)
    if recorded is None:
        return whole
    known = {source.path for source in capture.sources}
    return replace(whole, sources=attempt(
        lambda: (*capture.sources, *(each for each in collect(whole) if each.path not in known)), ()))


def _version(capture: Capture) -> tuple[int, int]:
    """Return the version of Python that a run took place in."""
    major, minor, *_ = (*capture.environment.get("python", "").split("."), "", "")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)


class Functions:
    """Makes the functions of a run."""

    def __init__(self, unwritten: Unwritten, version: tuple[int, int], attempt: Attempt, texts: Texts) -> None:
        self._unwritten = unwritten  # what they are made of
        self._version = version  # of the Python that the run took place in
        self._attempt = attempt  # as of :func:`finished`
        self._texts = texts  # makes those of transformed code
        recorded = unwritten.recorded
        paths = recorded.full_paths if recorded is not None else {}
        self._guard_reader = GuardReader(lambda shown: paths.get(shown, shown))
        self._guards = {each.compile_id.key: each.text for each in unwritten.guards}
        self._packed = {each.number: each.code for each in unwritten.codes}
        self._codes: dict[int, Code] = {}
        self._orders = {each.code: each for each in unwritten.orders}
        self._of: dict[Key, list[Bytecode]] = {}
        self._meant_by: dict[Key, MeantFunction] = {}
        for each in unwritten.bytecodes:
            key = each.original, each.meant.code
            self._of.setdefault(key, []).append(each)
            self._meant_by.setdefault(key, each.meant)

    def all(self) -> tuple[CompiledFunction, ...]:
        """Return the functions with their resume functions. One that cannot be made is left out and reported."""
        resumed_by: dict[Key, list[records.ResumeOfBytecode]] = {}
        broken_by: dict[int, tuple[Bytecode, str]] = {}
        for key, bytecodes in self._of.items():
            for bytecode in bytecodes:
                for resume in bytecode.resumes:
                    resumed_by.setdefault(key, []).append(resume)
                    broken_by.setdefault(resume.code, (bytecode, resume.shown))
        functions = [
            self._attempt(lambda: self._function(key, resumed_by, broken_by), None)
            for key in self._of if key[0] not in broken_by]
        return tuple(filter(None, functions))

    def _function(
        self, key: Key, resumed_by: dict[Key, list[records.ResumeOfBytecode]],
        broken_by: dict[int, tuple[Bytecode, str]],
    ) -> CompiledFunction:
        frames, pending = [], [key]
        seen: set[Key] = set()
        stacks: dict[int, tuple[str, ...]] = {}
        while pending:
            current = pending.pop(0)
            if current in seen:
                continue
            seen.add(current)
            frame = self._frame(current)
            if current[0] in broken_by:
                broken, name = broken_by[current[0]]
                code, given = self._code(current[0]), stacks.get(broken.original, ())
                nothing: tuple[tuple[str, ...], Branch | None] = (), None
                stack, branch = self._attempt(lambda: self._continued(broken, name, code, given), nothing)
                frame = replace(frame, stack=stack, branch=branch)
                stacks[current[0]] = stack
            frames.append(frame)
            for resume in resumed_by.get(current, ()):
                self._meant_by.setdefault((resume.code, resume.code), MeantFunction(resume.meant, resume.code))
                pending.append((resume.code, resume.code))
        return CompiledFunction(frames[0].name, tuple(frames))

    def _frame(self, key: Key) -> Frame:
        meant = self._meant_by[key]
        order = self._orders.get(key[0])
        places = {compile_id.key: place for compile_id, place in order.tried} if order is not None else {}
        placed = [(places.get(each.compile_id.key), each) for each in self._of.get(key, ())]
        entries = tuple(
            self._entry(bytecode, place)
            for place, bytecode in sorted(placed, key=lambda each: len(places) if each[0] is None else each[0]))
        code = self._code(key[0])
        wrappers = [(name, self._code(number)) for name, number in meant.wrappers]
        frame = make_frame(code, self._name_of(key, meant, code), entries, meant.name, self._code(meant.code), wrappers)
        return replace(frame, asked=bool(entries) or order is not None and order.asked,
                       without_tensors=not entries and order is not None and order.without_tensors)

    def _name_of(self, key: Key, meant: MeantFunction, code: Code) -> str:
        """Return the name by which texts call a function; resume functions go by the name that calls them."""
        if self._of.get(key):
            return self._of[key][0].function_name
        shown = [resume.shown for each in self._unwritten.bytecodes for resume in each.resumes if resume.code == key[0]]
        return shown[0] if shown and is_resume(code.name) else function_identifier(meant.name)

    def _entry(self, bytecode: Bytecode, tried: int | None) -> CacheEntry:
        text = self._guards.get(bytecode.compile_id.key, "")
        guards: tuple[Guard, ...] | None = self._attempt(lambda: self._guard_reader.read(text), None)
        return CacheEntry(
            bytecode.compile_id, unread_guards(text) if guards is None else guards, self._texts.of(bytecode),
            bytecode.graph_names, tuple(resume.shown for resume in bytecode.resumes), tried=tried)

    def _code(self, number: int) -> Code:
        """Return a code object by its number.

        Raises:
            ValueError: the records have none of that number, or it cannot be read.
        """
        if number not in self._codes:
            if number not in self._packed:
                raise ValueError(f"the records have no code object {number}")
            self._codes[number] = unpacked(self._packed[number], self._version)
        return self._codes[number]

    def _continued(
        self, broken: Bytecode, name: str, resume: Code, given: Sequence[str],
    ) -> tuple[tuple[str, ...], Branch | None]:
        """Return the expressions of the stack values that a resume function takes, and the branch it continues.

        Args:
            name: by which its transformed code calls the resume function.
            given: the expressions of the values that the function which broke took from the stack itself.
        """
        traced = broken.traced
        if traced is None or not traced.resumes.get(name):
            return (), None
        code = unpacked(traced.code, self._version)
        after = resumed_function(resume.name)
        branch = branch_condition(code, traced.resumes[name], after[1]) if after else None
        return expressions_on_stack(code, traced.resumes[name], given), Branch(*branch) if branch else None


# --- the branch that a resume function continues -----------------------------------------------------
# After a break at a branch torch calls one of two resume functions, named by the offsets at which they go on::
#
#     36  COMPARE_OP            x.sum() > 0
#     40  POP_JUMP_IF_FALSE     to 96
#     42  LOAD_FAST x           <- __resume_at_42_1: the condition was true
#     96  LOAD_FAST x           <- __resume_at_96_2: it did not
#
# Offsets are those of the code that Dynamo traces. Another break on the line of the condition may go on within a
# branch.
#
# The operation that gave the tested value has the place of the condition (``co_positions``, Python 3.11 and later): of
# ``not (a and b)`` that is ``a`` or ``b``, whichever broke.
def branch_condition(code: Code, resume_name: str, line: int) -> tuple[str, bool] | None:
    """Return the condition and whether it was true: ``("x.sum() > 0", False)``.

    Args:
        code: that broke, as Dynamo traces it.
        resume_name: by which it calls the resume function: ``__resume_at_96_2``.
        line: of the break.

    Returns:
        ``None`` where the function continues after no branch, or where the condition is not known.
    """
    offset = offset_in(resume_name)
    if offset is None or code.version < (3, 11):
        return None
    graph = build(canonicalise(code))
    blocks = graph.blocks.values()
    _, wanted, begins = operation_at(graph, offset)
    if not begins and sum(each.successors.count(wanted) for each in blocks) != 1:
        return None  # (it goes on within a block to which several edges lead)
    places = positions(code)
    branches: set[tuple[str, bool]] = set()
    for block in blocks:
        tested = next((op for op in reversed(block.ops) if op.kind != "COPY"), None) if block.end == BRANCH else None
        if tested is None:
            continue
        place = places[tested.offset // 2]
        if place is None or not place.line <= line <= place.end_line:
            continue
        text, op = _condition(code.filename, place)
        is_contrary = isinstance(op, ast.IsNot) and (tested.kind, tested.arg) == ("IS", False)  # (a jump on ``None``)
        branches |= {(text, was_true is not is_contrary)
                     for successor, was_true in zip(block.successors, (True, False)) if successor == wanted}
    return branches.pop() if len(branches) == 1 and all(text for text, _ in branches) else None


def _condition(filename: str, place: Position) -> tuple[str, ast.cmpop | None]:
    """Return the expression at a place, ``""`` for ``a < b < c``, of which a jump tests a part; and its comparison."""
    text = text_at(filename, place)
    match ast.parse(f"({text or 0})", mode="eval").body:
        case ast.Compare(_, [op]):
            return text, op
        case ast.Compare():
            return "", None
    return text, None
