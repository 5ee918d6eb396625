"""The transformed codes of a session: the function of each, and the order in which torch tries them.

Facts about a code are recorded when Dynamo makes it; its text is written when the program's work is done, or
elsewhere (:mod:`depyf.finishing`).
"""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any

from ..bytecode.packed import packed
from ..records import model as records
from ..records.naming import FileNames, FunctionNames, function_identifier
from ..records.store import Recorded, RecordLog
from ..torch_text.events import EventReader
from ..torch_text.global_names import without_ids
from .torch_private import cache_entries, current_compilation, resume_code
from .torch_private.guards import with_lengths, with_objects
from .user_function import Meant, meant_by_frame

#: A function: what torch compiled, and what the user means by it (one wrapper can be that of many functions), by id.
#: Code objects with a dictionary among the constants (Dynamo makes such) cannot be hashed.
Key = tuple[int, int]


@dataclass(slots=True, eq=False)
class CodeBuilder:
    """One transformed code."""

    ids: records.CompileId
    original: CodeType
    # what torch runs. Torch frees a graph when the last reference to this code is gone (torch/_dynamo/utils.py,
    # `CleanupManager`): we must not keep one
    running: weakref.ref[CodeType]
    recorded: Recorded[records.Bytecode]


class Codes:
    """All transformed codes of a session; ``log``, ``attempt`` and ``note`` are the session's, ``files`` its names."""

    def __init__(
        self, log: RecordLog, files: FileNames, events: EventReader,
        attempt: Callable[[Callable[[], Any], Any], Any], note: Callable[[str], None],
    ) -> None:
        self._log = log
        self._files = files
        self._events = events
        self._attempt = attempt
        self._note = note
        self._of: dict[Key, list[CodeBuilder]] = {}
        self._names = FunctionNames()
        self._guards: dict[tuple[int, int, int], Recorded[records.GuardsOfEntry]] = {}
        self._resume_names: dict[int, tuple[CodeType, str]] = {}
        #: Code objects by id, with their numbers and records: as long as they are here, no other has the id.
        self._numbered: dict[int, tuple[CodeType, int, Recorded[records.CodeObject]]] = {}
        self._traced: dict[int, tuple[CodeType, dict[int, int]] | None] = {}  # by id of what was traced
        self._orders: list[Recorded[records.OrderOfEntries]] = []
        #: Of resume functions that torch was to compile, by id: whether it found tensors. (It forgets which they were
        #: when it is reset.)
        self._asked: dict[int, bool] = {}

    # --- names ------------------------------------------------------------------------------------
    def shown_resumes(self, resumes: dict[str, Any]) -> dict[str, str]:
        """Return ``{name of a resume function: the name that is shown}``.

        Each compilation gives it a new name, but its code is the same: the first name is shown.
        """
        for name, resume in resumes.items():
            self._resume_names.setdefault(id(resume.code), (resume.code, name))
        return {name: self._resume_names[id(resume.code)][1] for name, resume in resumes.items()}

    def asked(self, code: CodeType, has_tensors: bool) -> None:
        """Note that torch is to compile a frame, and whether it found tensors there."""
        if id(code) in self._resume_names:  # (with a reference to the code)
            self._asked[id(code)] = has_tensors

    def known_files(self) -> list[Any]:
        """Return the names of files that guards may mean."""
        # (Not an attribute of the module: one that has none may make it, at the user's cost.)
        return [*self.own_files(), *(vars(module).get("__file__") for module in list(sys.modules.values())
                                     if isinstance(module, ModuleType))]

    def own_files(self) -> list[str]:
        """Return the files of the functions that were compiled."""
        return [builders[0].original.co_filename for builders in self._of.values()]

    def count(self) -> int:
        """Return the number of transformed codes so far."""
        return sum(map(len, self._of.values()))

    # --- what is known ----------------------------------------------------------------------------
    def add(
        self, ids: records.CompileId, original: CodeType, transformed: CodeType, meant: Meant,
        graph_names: tuple[str, ...], resumes: dict[str, resume_code.Resume], shown: dict[str, str], facts: str,
    ) -> tuple[CodeBuilder, records.Bytecode]:
        """Record transformed code (the parameters are as in :class:`Bytecode`)."""
        _, resume_name = self._resume_names.get(id(original), (original, ""))
        name = resume_name or function_identifier(meant.name)
        text_name = self._names.transformed(original.co_name if resume_name else meant.name)
        wrappers = tuple((wrapper, self._number(code)) for wrapper, code in meant.wrappers)
        if resumes and id(original) not in self._traced:
            self._traced[id(original)] = self._attempt(lambda: resume_code.traced_code(original), None)
        traced = self._traced.get(id(original)) if resumes else None
        bytecode = records.Bytecode(
            ids, name, text_name, self._files.transformed_file(text_name, ids, name), self._number(original),
            records.MeantFunction(meant.name, self._number(meant.code), wrappers), packed(transformed), shown,
            graph_names, tuple(
                records.ResumeOfBytecode(called, shown.get(called, called), self._number(resume.code),
                                         resume.parameters, meant_by_frame(resume.code, {}, {}).name)
                for called, resume in resumes.items()),
            facts, records.TracedCode(packed(traced[0]), {
                shown.get(called, called): resume_code.traced_name(called, traced[1]) for called in resumes})
            if traced else None)
        builder = CodeBuilder(ids, original, weakref.ref(transformed), bytecode)
        self._of.setdefault((id(original), id(meant.code)), []).append(builder)
        builder.recorded = self._log.append(bytecode)
        return builder, bytecode

    def _number(self, code: CodeType) -> int:
        """Return the number of a code object, which is recorded the first time."""
        known = self._numbered.get(id(code))
        if known is None:
            number = len(self._numbered)
            record = self._log.append(records.CodeObject(number, packed(code)))
            known = self._numbered[id(code)] = code, number, record
        return known[1]

    def guarded_by(self, ids: records.CompileId, text: str) -> None:
        """Record torch's printed guard tree, while the frame is being compiled."""
        named = self._attempt(lambda: _named(text), text)
        self._guards[ids.key] = self._log.append(records.GuardsOfEntry(ids, named))

    # --- the end ----------------------------------------------------------------------------------
    def end(self) -> None:
        """Record in which order torch tries the versions."""
        originals = {id(builders[0].original): builders[0].original for builders in self._of.values()}
        originals.update((id(code), code) for code, _ in self._resume_names.values())
        for code in originals.values():
            self._attempt(lambda: self._end_of(code), None)

    def _end_of(self, code: CodeType) -> None:
        order = self._entry_order(code)
        builders = [each for (original, _), known in self._of.items() if original == id(code) for each in known]
        placed = [(each.ids, order.get(id(each.running() or each))) for each in builders]
        asked = bool(builders) or id(code) in self._asked or self._attempt(lambda: cache_entries.was_asked(code), False)
        self._orders.append(self._log.append(records.OrderOfEntries(
            self._number(code), tuple((ids, place) for ids, place in placed if place is not None), asked,
            self._asked.get(id(code)) is False)))

    def _entry_order(self, code: CodeType) -> dict[int, int]:
        """Return the places of codes, by id, in the order in which torch tries them; note guard trees not known yet."""
        order: dict[int, int] = {}
        try:
            for index, entry in enumerate(cache_entries.entries(code)):
                if not entry.given_up:
                    order[id(entry.code)] = index
                known = self._events.compile_id(*entry.compile_id) if entry.compile_id is not None else None
                if known is not None and known.key not in self._guards:
                    text = without_ids(str(entry.guard_manager), {}, {})
                    self._guards[known.key] = self._log.append(records.GuardsOfEntry(known, text))
        except Exception as error:
            self._note(f"cache entries of {code.co_name} could not be read ({type(error).__name__}: {error})")
        return order

    def unwritten(self, recorded: records.EndOfRecording | None) -> records.Unwritten:
        """Return all that functions are made of."""
        read = self._log.read
        bytecodes = [self._attempt(lambda: read(builder.recorded), None)
                     for builders in self._of.values() for builder in builders]
        return records.Unwritten(
            tuple(read(record) for _, _, record in self._numbered.values()), tuple(filter(None, bytecodes)),
            tuple(map(read, self._guards.values())), tuple(map(read, self._orders)), recorded)


# --- Names of torch's own globals as texts show them -------------------------------------------------
def _named(text: str) -> str:
    frame = current_compilation.compiled_frame()
    values, namespace = (frame.values, frame.namespace) if frame is not None else ({}, {})
    return without_ids(with_objects(with_lengths(text, values, namespace), values, namespace), namespace, values)


#: Torch puts an object into the user's globals under a name with its id and the compile id
#: (torch/_dynamo/output_graph.py, ``install_global_by_id``).
_NAME_WITH_ID = re.compile(r"(?P<name>.*[^\W\d_])_\d{9,}_c\w+")


def names_without_ids(code: CodeType) -> dict[str, str]:
    """Return ``{global name with an id, which differs from run to run: the name without it}``."""
    taken = {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    shown = {}
    for name in code.co_names:
        match = _NAME_WITH_ID.fullmatch(name) if "_c" in name else None
        if match is not None and match["name"] not in taken:
            shown[name] = match["name"]
            taken.add(match["name"])
    return shown
