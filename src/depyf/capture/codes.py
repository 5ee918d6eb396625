"""The transformed codes of a session: which function each is of, and in which order torch tries them.

What is known of a code is recorded when Dynamo makes it; functions, with their resume functions, are put together when
the run ends.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

from ..records.log import Recorded
from ..records.model import (
    Branch,
    CacheEntry,
    CompiledCode,
    CompiledFunction,
    CompileId,
    Frame,
    GraphBreak,
    Guard,
    GuardsOfEntry,
    TransformedCode,
)
from ..records.naming import function_identifier, legal_identifier
from ..torch_text.events import EventReader
from ..torch_text.global_names import without_ids
from ..torch_text.guards import GuardReader, unread_guards
from ..torch_text.resumes import resumed_function
from .branch_conditions import branch_condition
from .frames import location, make_frame, user_function
from .recorder import Recorder
from .stack_values import expressions_on_stack
from .torch_private import hooks, private_api
from .user_function import Meant, of_frame

#: A function: what torch compiled, and what the user means by it (one wrapper can be that of many functions), by id.
#: Code objects that hold a dictionary (Dynamo makes such) cannot be hashed.
Key = tuple[int, int]


@dataclass(eq=False)
class CodeBuilder:
    """One transformed code.

    Attributes:
        running: what torch runs. Torch lets go of a graph when nobody holds this code any more
            (torch/_dynamo/utils.py, ``CleanupManager``): we must not.
        resumes: the resume functions that it calls, by their shown names.
        meant: the function that the user means.
        recorded: its record.
    """

    __slots__ = ("ids", "original", "running", "resumes", "meant", "recorded")

    ids: CompileId
    original: CodeType
    running: weakref.ref[CodeType]
    resumes: tuple[tuple[str, CodeType], ...]
    meant: Meant
    recorded: Recorded[CompiledCode]


class Codes:
    """All transformed codes of a session.

    Args:
        recorder: takes each code and each guard tree.
        events: says of which compilation since which reset torch's numbers are.
        attempt: what an action makes; an error of it is reported (``Session.attempt``).
        note: takes what could not be had.
    """

    def __init__(
        self, recorder: Recorder, events: EventReader, full_path: Callable[[str], str],
        attempt: Callable[[Callable[[], Any], Any], Any], note: Callable[[str], None],
    ) -> None:
        self._recorder = recorder
        self._events = events
        self._attempt = attempt
        self._note = note
        self._guard_reader = GuardReader(full_path)
        self._of: dict[Key, list[CodeBuilder]] = {}
        self._files: tuple[tuple[int, int], list[Any]] = (0, 0), []
        self._versions: dict[int, int] = {}  # of each original by its id: how many
        self._guards: dict[tuple[int, int, int], Recorded[GuardsOfEntry]] = {}
        self._resume_names: dict[int, tuple[CodeType, str]] = {}

    # --- names ------------------------------------------------------------------------------------
    def name_of(self, code: CodeType, meant: Meant) -> str:
        """Return the name by which texts call a function."""
        known = self._resume_names.get(id(code))
        return known[1] if known is not None else function_identifier(meant.name)

    def transformed_name(self, original: CodeType, meant: Meant) -> str:
        """Return the name of the next transformed code of a function."""
        number = len(self._of.get(_key(original, meant), ()))
        return f"__transformed_code_{number}_for_{legal_identifier(self.name_of(original, meant))}"

    def old_name(self, original: CodeType) -> str:
        """Return that name as depyf up to 0.20 made it: by torch's, and counted for all functions of a wrapper."""
        known = self._resume_names.get(id(original))
        name = legal_identifier(known[1] if known is not None else original.co_name)
        return f"__transformed_code_{self._versions.get(id(original), 0)}_for_{name}"

    def shown_resumes(self, resumes: dict[str, Any]) -> dict[str, str]:
        """Return ``{name of a resume function: the name it is shown by}``.

        Each compilation gives it a new name, but its code is the same: it is shown by the first.
        """
        for name, resume in resumes.items():
            self._resume_names.setdefault(id(resume.code), (resume.code, name))
        return {name: self._resume_names[id(resume.code)][1] for name, resume in resumes.items()}

    def known_files(self) -> list[Any]:
        """Return the names of files that guards may mean; the same list until there may be more."""
        number = len(self._of), len(sys.modules)
        if self._files[0] != number:
            files: list[Any] = [builders[0].original.co_filename for builders in self._of.values()]
            files += [getattr(module, "__file__", None) for module in list(sys.modules.values())]
            self._files = number, files
        return self._files[1]

    def count(self) -> int:
        """Return the number of transformed codes so far."""
        return sum(map(len, self._of.values()))

    # --- what is known ----------------------------------------------------------------------------
    def add(
        self, original: CodeType, transformed: CodeType, text: TransformedCode, graph_names: tuple[str, ...],
        resumes: tuple[tuple[str, CodeType], ...], meant: Meant, breaks: Sequence[GraphBreak],
    ) -> tuple[CodeBuilder, tuple[str, int, str] | None]:
        """Record a code; return with it the place of its text, if that was written (``DumpWriter.transformed``).

        Args:
            original: what torch compiled.
            transformed: what it made of that.
            text: as it stands in a record.
            graph_names: the graphs that it calls.
            resumes: the resume functions that it calls, by their shown names.
            meant: the function that the user means.
            breaks: where its graph ends before the function does.
        """
        text = replace(text, file=self._recorder.names.of_transformed(text))
        code = CompiledCode(
            self.name_of(original, meant), original.co_name, location(meant.code), text, graph_names,
            tuple(name for name, _ in resumes), "", meant.name, user_function(meant).wrappers)
        builder = CodeBuilder(text.compile_id, original, weakref.ref(transformed), resumes, meant, code)
        self._of.setdefault(_key(original, meant), []).append(builder)
        self._versions[id(original)] = self._versions.get(id(original), 0) + 1
        builder.recorded, place = self._recorder.code(code, breaks, self.branch_of(original))
        return builder, place

    def guarded_by(self, ids: CompileId, text: str) -> None:
        """Record torch's printed guard tree, while the frame is being compiled."""
        named = self._attempt(lambda: self._named(text), text)
        self._guards[ids.key] = self._recorder.append(GuardsOfEntry(ids, named))

    def _named(self, text: str) -> str:
        frame = hooks.compiled_frame()
        return without_ids(text, {}, {}) if frame is None else without_ids(text, frame.namespace, frame.values)

    def branch_of(self, resume: CodeType) -> Branch | None:
        """Return the branch that a function continues; ``None`` where it is no resume function of one."""
        for builders in list(self._of.values()) if id(resume) in self._resume_names else ():
            for builder in builders:
                for name, code in builder.resumes:
                    if code is resume:
                        return self._attempt(lambda: _continued(builder.original, name, resume), _NOTHING)[1]
        return None

    # --- records ----------------------------------------------------------------------------------
    def functions(self) -> tuple[CompiledFunction, ...]:
        """Return the functions with their resume functions. One that cannot be made is left out and reported."""
        resumed_by: dict[Key, list[CodeType]] = {}
        children: dict[int, tuple[CodeType, str]] = {}
        for key, builders in self._of.items():
            for builder in builders:
                for name, code in builder.resumes:
                    resumed_by.setdefault(key, []).append(code)
                    children.setdefault(id(code), (builder.original, name))
        functions: list[CompiledFunction | None] = [
            self._attempt(lambda: self._function(builders[0], resumed_by, children), None)
            for builders in list(self._of.values()) if id(builders[0].original) not in children]
        return tuple(filter(None, functions))

    def _function(
        self, builder: CodeBuilder, resumed_by: dict[Key, list[CodeType]], children: dict[int, tuple[CodeType, str]]
    ) -> CompiledFunction:
        frames, pending = [], [(builder.original, builder.meant)]
        seen: set[Key] = set()
        while pending:
            code, meant = pending.pop(0)
            key = _key(code, meant)
            if key in seen:
                continue
            seen.add(key)
            frame = self._frame(code, meant)
            if id(code) in children:
                broken, name = children[id(code)]
                stack, branch = self._attempt(lambda: _continued(broken, name, code), _NOTHING)
                frame = replace(frame, stack=stack, branch=branch)
            frames.append(frame)
            pending += [(resume, self._resumed(resume)) for resume in resumed_by.get(key, ())]
        return CompiledFunction(frames[0].name, tuple(frames))

    def _resumed(self, code: CodeType) -> Meant:
        """Return the function that a resume function means (it may never have been compiled)."""
        builders = self._of.get((id(code), id(code)))
        return builders[0].meant if builders else of_frame(code, {}, {})

    def _frame(self, code: CodeType, meant: Meant) -> Frame:
        order = self._entry_order(code)
        mine = self._of.get(_key(code, meant), [])
        placed = [(order.get(id(builder.running() or builder)), builder) for builder in mine]
        entries = [
            self._entry(builder, place)
            for place, builder in sorted(placed, key=lambda each: len(order) if each[0] is None else each[0])]
        frame = make_frame(code, self.name_of(code, meant), tuple(entries), meant)
        return replace(frame, asked=bool(entries) or self._attempt(lambda: hooks.was_asked(code), False))

    def _entry(self, builder: CodeBuilder, tried: int | None) -> CacheEntry:
        code = self._recorder.read(builder.recorded)
        return CacheEntry(builder.ids, self._read_guards(builder.ids), code.transformed, code.graph_names,
                          code.resume_names, tried=tried)

    def _entry_order(self, code: CodeType) -> dict[int, int]:
        """Return the places of transformed codes, by id, in the order in which torch tries them.

        Guard trees that are not known yet are read from the cache entries on the way.
        """
        order: dict[int, int] = {}
        try:
            for index, entry in enumerate(hooks.cache_entries(code)):
                running, ids, print_guards = hooks.entry_facts(entry)
                if not hooks.is_given_up(entry):
                    order[id(running)] = index
                known = self._events.compile_id(*ids) if ids is not None else None
                if known is not None and known.key not in self._guards:
                    self._guards[known.key] = GuardsOfEntry(known, without_ids(print_guards(), {}, {}))
        except Exception as error:
            self._note(f"cache entries of {code.co_name} could not be read ({type(error).__name__}: {error})")
        return order

    def _read_guards(self, ids: CompileId) -> tuple[Guard, ...]:
        text = self._recorder.read(self._guards[ids.key]).text if ids.key in self._guards else ""
        guards: tuple[Guard, ...] | None = self._attempt(lambda: self._guard_reader.read(text), None)
        return unread_guards(text) if guards is None else guards


_NOTHING: tuple[tuple[str, ...], Branch | None] = (), None


def _continued(broken: CodeType, name: str, resume: CodeType) -> tuple[tuple[str, ...], Branch | None]:
    """Return the expressions of the values on the stack that a resume function takes, and the branch it continues.

    Args:
        broken: the function that broke.
        name: by which its transformed code calls the resume function.
        resume: that function.
    """
    try:
        traced = hooks.traced_code(broken)
    except private_api.MissingPrivateApi:
        return _NOTHING
    name, after = traced.name(name), resumed_function(resume.co_name)
    branch = branch_condition(traced.code, name, after[1]) if after else None
    return expressions_on_stack(traced.code, name), Branch(*branch) if branch else None


def _key(original: CodeType, meant: Meant) -> Key:
    return id(original), id(meant.code)
