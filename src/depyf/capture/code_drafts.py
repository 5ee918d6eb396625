"""The transformed codes of a session, until they are records: which function each is of, and in which order torch
tries them."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

from ..records.model import Branch, CacheEntry, CompiledFunction, CompileId, Frame, Guard, TransformedCode
from ..records.naming import function_identifier, legal_identifier
from ..records.store import CompiledCode
from ..torch_text.events import EventReader
from ..torch_text.global_names import without_ids
from ..torch_text.guards import GuardReader, unread_guards
from ..torch_text.resumes import resumed_function
from .branch_conditions import branch_condition
from .frames import location, make_frame, user_function
from .shelf import Kept, Shelf
from .stack_values import expressions_on_stack
from .torch_private import hooks, touchpoints
from .user_function import Meant, of_frame

#: A function: what torch compiled, and what the user means by it (one wrapper can be that of many functions), by id.
#: Code objects that hold a dictionary (Dynamo makes such) cannot be hashed.
Key = tuple[int, int]


@dataclass(eq=False)
class CodeDraft:
    """One transformed code.

    Attributes:
        number: of the transformed codes of the session.
        running: what torch runs. Torch lets go of a graph when nobody holds this code any more
            (torch/_dynamo/utils.py, ``CleanupManager``): we must not.
        resumes: the resume functions that it calls, by their shown names.
        meant: the function that the user means.
    """

    __slots__ = ("number", "ids", "original", "running", "graph_names", "resumes", "meant")

    number: int
    ids: CompileId
    original: CodeType
    running: weakref.ref[CodeType]
    graph_names: tuple[str, ...]
    resumes: tuple[tuple[str, CodeType], ...]
    meant: Meant


class CodeDrafts:
    """All transformed codes of a session.

    Args:
        shelf: where texts lie that are written.
        events: says of which compilation since which reset torch's numbers are.
        attempt: what an action makes; an error of it is reported (``Session.attempt``).
        note: takes what could not be had.
    """

    def __init__(
        self, shelf: Shelf, events: EventReader, full_path: Callable[[str], str],
        attempt: Callable[[Callable[[], Any], Any], Any], note: Callable[[str], None],
    ) -> None:
        self._events = events
        self._attempt = attempt
        self._note = note
        self._guard_reader = GuardReader(full_path)
        self._of: dict[Key, list[CodeDraft]] = {}
        self._files: tuple[tuple[int, int], list[Any]] = (0, 0), []
        self._versions: dict[int, int] = {}  # of each original by its id: how many
        self._texts: Kept[int, TransformedCode] = Kept(shelf)
        self._guards: Kept[tuple[int, int, int], str] = Kept(shelf)
        #: Those that the sink has no record of, by ``CompileId.key``.
        self._not_handed_on: dict[tuple[int, int, int], list[CodeDraft]] = {}
        self._resume_names: dict[int, tuple[CodeType, str]] = {}

    # --- names ------------------------------------------------------------------------------------
    def name_of(self, code: CodeType, meant: Meant) -> str:
        """By which name texts call a function."""
        known = self._resume_names.get(id(code))
        return known[1] if known is not None else function_identifier(meant.name)

    def transformed_name(self, original: CodeType, meant: Meant) -> str:
        """The name of the next transformed code of a function."""
        number = len(self._of.get(_key(original, meant), ()))
        return f"__transformed_code_{number}_for_{legal_identifier(self.name_of(original, meant))}"

    def old_name(self, original: CodeType) -> str:
        """The same as depyf up to 0.20 makes it: by torch's name, versions of all functions of a wrapper together."""
        known = self._resume_names.get(id(original))
        name = legal_identifier(known[1] if known is not None else original.co_name)
        return f"__transformed_code_{self._versions.get(id(original), 0)}_for_{name}"

    def shown_resumes(self, resumes: dict[str, Any]) -> dict[str, str]:
        """``{name of a resume function: the name it is shown by}``. Each compilation gives it a new name, but its
        code is the same."""
        for name, resume in resumes.items():
            self._resume_names.setdefault(id(resume.code), (resume.code, name))
        return {name: self._resume_names[id(resume.code)][1] for name, resume in resumes.items()}

    def known_files(self) -> list[Any]:
        """Names of files that guards may mean; the same list until there may be more."""
        number = len(self._of), len(sys.modules)
        if self._files[0] != number:
            files: list[Any] = [drafts[0].original.co_filename for drafts in self._of.values()]
            files += [getattr(module, "__file__", None) for module in list(sys.modules.values())]
            self._files = number, files
        return self._files[1]

    def count(self) -> int:
        return len(self._texts)

    # --- what is known ----------------------------------------------------------------------------
    def add(
        self, original: CodeType, transformed: CodeType, text: TransformedCode, graph_names: tuple[str, ...],
        resumes: tuple[tuple[str, CodeType], ...], meant: Meant,
    ) -> CodeDraft:
        draft = CodeDraft(
            len(self._texts), text.compile_id, original, weakref.ref(transformed), graph_names, resumes, meant)
        self._texts[draft.number] = text
        self._of.setdefault(_key(original, meant), []).append(draft)
        self._versions[id(original)] = self._versions.get(id(original), 0) + 1
        self._not_handed_on.setdefault(draft.ids.key, []).append(draft)
        return draft

    def written(self, draft: CodeDraft, path: str) -> None:
        """Its text stands in this file."""
        self._texts[draft.number] = replace(self._texts[draft.number], file=os.path.basename(path))

    def guarded_by(self, ids: CompileId, text: str) -> None:
        """Takes torch's printed guard tree, while the frame is being compiled."""
        self._guards[ids.key] = self._attempt(lambda: self._named(text), text)

    def _named(self, text: str) -> str:
        frame = hooks.compiled_frame()
        return without_ids(text, {}, {}) if frame is None else without_ids(text, frame.namespace, frame.values)

    def branch_of(self, resume: CodeType) -> Branch | None:
        """The branch that a function continues; ``None`` where it is no resume function of one."""
        for drafts in list(self._of.values()) if id(resume) in self._resume_names else ():
            for draft in drafts:
                for name, code in draft.resumes:
                    if code is resume:
                        return self._attempt(lambda: _continued(draft.original, name, resume), _NOTHING)[1]
        return None

    # --- records ----------------------------------------------------------------------------------
    def complete(self, ids: CompileId) -> list[CompiledCode]:
        """A compilation is over: what is known of its code and was not asked for."""
        return [
            CompiledCode(
                self.name_of(found.original, found.meant), found.original.co_name, location(found.meant.code),
                self._texts[found.number], found.graph_names, tuple(name for name, _ in found.resumes),
                self._guards.get(ids.key, ""), found.meant.name, user_function(found.meant).wrappers)
            for found in self._not_handed_on.pop(ids.key, ())]

    def functions(self) -> tuple[CompiledFunction, ...]:
        """Functions with their resume functions. One that cannot be made is not there, and that is reported."""
        resumed_by: dict[Key, list[CodeType]] = {}
        children: dict[int, tuple[CodeType, str]] = {}
        for key, drafts in self._of.items():
            for draft in drafts:
                for name, code in draft.resumes:
                    resumed_by.setdefault(key, []).append(code)
                    children.setdefault(id(code), (draft.original, name))
        found: list[CompiledFunction | None] = [
            self._attempt(lambda: self._function(drafts[0], resumed_by, children), None)
            for drafts in list(self._of.values()) if id(drafts[0].original) not in children]
        return tuple(filter(None, found))

    def _function(
        self, draft: CodeDraft, resumed_by: dict[Key, list[CodeType]], children: dict[int, tuple[CodeType, str]]
    ) -> CompiledFunction:
        frames, pending = [], [(draft.original, draft.meant)]
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
        drafts = self._of.get((id(code), id(code)))
        return drafts[0].meant if drafts else of_frame(code, {}, {})

    def _frame(self, code: CodeType, meant: Meant) -> Frame:
        order = self._entry_order(code)
        mine = self._of.get(_key(code, meant), [])
        placed = [(order.get(id(draft.running() or draft)), draft) for draft in mine]
        entries = [
            CacheEntry(draft.ids, self._read_guards(draft.ids), self._texts.looked_at(draft.number), draft.graph_names,
                       tuple(name for name, _ in draft.resumes), tried=place)
            for place, draft in sorted(placed, key=lambda each: len(order) if each[0] is None else each[0])]
        frame = make_frame(code, self.name_of(code, meant), tuple(entries), meant)
        return replace(frame, asked=bool(entries) or self._attempt(lambda: hooks.was_asked(code), False))

    def _entry_order(self, code: CodeType) -> dict[int, int]:
        """The places of transformed codes, by id, in the order in which torch tries them."""
        order: dict[int, int] = {}
        try:
            for index, entry in enumerate(hooks.cache_entries(code)):
                running, ids, print_guards = hooks.entry_facts(entry)
                if not hooks.is_given_up(entry):
                    order[id(running)] = index
                key = self._events.compile_id(*ids).key if ids is not None else None
                if key is not None and key not in self._guards:
                    self._guards[key] = without_ids(print_guards(), {}, {})
        except Exception as error:
            self._note(f"cache entries of {code.co_name} could not be read ({type(error).__name__}: {error})")
        return order

    def _read_guards(self, ids: CompileId) -> tuple[Guard, ...]:
        text = self._guards.looked_at(ids.key) if ids.key in self._guards else ""
        found: tuple[Guard, ...] | None = self._attempt(lambda: self._guard_reader.read(text), None)
        return unread_guards(text) if found is None else found


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
    except touchpoints.MissingTouchpoint:
        return _NOTHING
    name, after = traced.name(name), resumed_function(resume.co_name)
    found = branch_condition(traced.code, name, after[1]) if after else None
    return expressions_on_stack(traced.code, name), Branch(*found) if found else None


def _key(original: CodeType, meant: Meant) -> Key:
    return id(original), id(meant.code)
