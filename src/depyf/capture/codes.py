"""The transformed codes of a session: which function each is of, and in which order torch tries them.

What is known of a code is recorded when Dynamo makes it, as it is: its text is written when the program's work is done,
or elsewhere (:mod:`depyf.finishing`).
"""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType
from typing import Any

from ..bytecode.packed import packed
from ..records.log import Recorded
from ..records.model import (
    Bytecode,
    CodeObject,
    CompileId,
    EndOfRecording,
    GraphBreak,
    GuardsOfEntry,
    MeantFunction,
    OrderOfEntries,
    ResumeOfBytecode,
    TracedCode,
    TransformedCode,
    Unwritten,
    UserFunction,
)
from ..records.naming import FunctionNames, function_identifier
from ..torch_text.events import EventReader
from ..torch_text.global_names import without_ids
from .recorder import DumpWriter, Linker, Recorder
from .torch_private import cache_entries, current_compilation, private_api, resume_code
from .torch_private.guard_print import with_objects
from .user_function import Meant, of_frame

#: A function: what torch compiled, and what the user means by it (one wrapper can be that of many functions), by id.
#: Code objects that hold a dictionary (Dynamo makes such) cannot be hashed.
Key = tuple[int, int]


class CodeBuilder:
    """One transformed code.

    Attributes:
        running: what torch runs. Torch lets go of a graph when nobody holds this code any more
            (torch/_dynamo/utils.py, ``CleanupManager``): we must not.
        recorded: its record.
    """

    __slots__ = ("ids", "original", "running", "recorded")

    def __init__(
        self, ids: CompileId, original: CodeType, running: weakref.ref[CodeType], recorded: Recorded[Bytecode],
    ) -> None:
        self.ids = ids
        self.original = original
        self.running = running
        self.recorded = recorded


class Codes:
    """All transformed codes of a session.

    Args:
        recorder: takes each code and each guard tree.
        events: says of which compilation since which reset torch's numbers are.
        attempt: what an action makes; an error of it is reported (``Session.attempt``).
        note: takes what could not be had.
    """

    def __init__(
        self, recorder: Recorder, events: EventReader,
        attempt: Callable[[Callable[[], Any], Any], Any], note: Callable[[str], None],
    ) -> None:
        self._recorder = recorder
        self._events = events
        self._attempt = attempt
        self._note = note
        self._of: dict[Key, list[CodeBuilder]] = {}
        self._files: tuple[tuple[int, int], list[Any]] = (0, 0), []
        self._names = FunctionNames()
        self._guards: dict[tuple[int, int, int], Recorded[GuardsOfEntry]] = {}
        self._resume_names: dict[int, tuple[CodeType, str]] = {}
        #: Code objects by id, with their numbers and records: as long as they are here, no other has the id.
        self._numbered: dict[int, tuple[CodeType, int, Recorded[CodeObject]]] = {}
        self._traced: dict[int, resume_code.TracedCode | None] = {}  # by id of what was traced
        self._orders: list[Recorded[OrderOfEntries]] = []
        #: Of resume functions that torch was to compile, by id: whether it found tensors. (It forgets which they were
        #: when it is reset.)
        self._asked: dict[int, bool] = {}

    # --- names ------------------------------------------------------------------------------------
    def name_of(self, code: CodeType, meant: Meant) -> str:
        """Return the name by which texts call a function."""
        known = self._resume_names.get(id(code))
        return known[1] if known is not None else function_identifier(meant.name)

    def _text_name(self, original: CodeType, meant: Meant) -> str:
        """Return the name of the next transformed code of a function; of a resume function by torch's name for it."""
        return self._names.transformed(original.co_name if id(original) in self._resume_names else meant.name)

    def shown_resumes(self, resumes: dict[str, Any]) -> dict[str, str]:
        """Return ``{name of a resume function: the name it is shown by}``.

        Each compilation gives it a new name, but its code is the same: it is shown by the first.
        """
        for name, resume in resumes.items():
            self._resume_names.setdefault(id(resume.code), (resume.code, name))
        return {name: self._resume_names[id(resume.code)][1] for name, resume in resumes.items()}

    def asked(self, code: CodeType, has_tensors: bool) -> None:
        """Note that torch is to compile a frame, and whether it found tensors there."""
        if id(code) in self._resume_names:  # (which keeps the code)
            self._asked[id(code)] = has_tensors

    def known_files(self) -> list[Any]:
        """Return the names of files that guards may mean; the same list until there may be more."""
        number = len(self._of), len(sys.modules)
        if self._files[0] != number:
            files: list[Any] = self.own_files()
            # (Not an attribute of the module: one that has none may make it, at the user's cost.)
            files += [vars(module).get("__file__") for module in list(sys.modules.values())
                      if isinstance(module, ModuleType)]
            self._files = number, files
        return self._files[1]

    def own_files(self) -> list[str]:
        """Return the files of the functions that were compiled."""
        return [builders[0].original.co_filename for builders in self._of.values()]

    def count(self) -> int:
        """Return the number of transformed codes so far."""
        return sum(map(len, self._of.values()))

    # --- what is known ----------------------------------------------------------------------------
    def add(
        self, ids: CompileId, original: CodeType, transformed: CodeType, meant: Meant, graph_names: tuple[str, ...],
        resumes: dict[str, resume_code.Resume], shown: dict[str, str], facts: str,
    ) -> tuple[CodeBuilder, Bytecode]:
        """Record a code.

        Args:
            ids: of its compilation.
            original: what torch compiled.
            transformed: what it made of that.
            meant: the function that the user means.
            graph_names: the graphs that it calls.
            resumes: the resume functions that it calls.
            shown: global names that texts show differently.
            facts: what is known of the objects that it was compiled for.
        """
        name, text_name = self.name_of(original, meant), self._text_name(original, meant)
        bytecode = Bytecode(
            ids, name, text_name, self._recorder.names.of_transformed(text_name, ids, name),
            self._number(original), self._meant(meant), packed(transformed), shown, graph_names,
            tuple(ResumeOfBytecode(called, shown.get(called, called), self._number(resume.code), resume.parameters,
                                   of_frame(resume.code, {}, {}).name) for called, resume in resumes.items()),
            facts, self._traced_code(original, [shown.get(called, called) for called in resumes]))
        builder = CodeBuilder(ids, original, weakref.ref(transformed), bytecode)
        self._of.setdefault(_key(original, meant), []).append(builder)
        builder.recorded = self._recorder.append(bytecode)
        return builder, bytecode

    def _meant(self, meant: Meant) -> MeantFunction:
        return MeantFunction(meant.name, self._number(meant.code),
                             tuple((name, self._number(code)) for name, code in meant.wrappers))

    def _number(self, code: CodeType) -> int:
        """Return the number of a code object, which is recorded when it is asked for the first time."""
        known = self._numbered.get(id(code))
        if known is None:
            number = len(self._numbered)
            record = self._recorder.append(CodeObject(number, packed(code)))
            known = self._numbered[id(code)] = code, number, record
        return known[1]

    def _traced_code(self, original: CodeType, resumes: list[str]) -> TracedCode | None:
        """Return what Dynamo traced of a function in which graphs break."""
        if not resumes:
            return None
        if id(original) not in self._traced:
            self._traced[id(original)] = self._attempt(lambda: _traced(original), None)
        traced = self._traced[id(original)]
        if traced is None:
            return None
        return TracedCode(packed(traced.code), {name: traced.name(name) for name in resumes})

    def guarded_by(self, ids: CompileId, text: str) -> None:
        """Record torch's printed guard tree, while the frame is being compiled."""
        named = self._attempt(lambda: self._named(text), text)
        self._guards[ids.key] = self._recorder.append(GuardsOfEntry(ids, named))

    def _named(self, text: str) -> str:
        frame = current_compilation.compiled_frame()
        if frame is None:
            return without_ids(with_objects(text, {}, {}), {}, {})
        if "DictGuardManager" in text:  # (few programs have one)
            from .torch_private.guard_print import with_lengths

            text = with_lengths(text, frame.values, frame.namespace)
        text = with_objects(text, frame.values, frame.namespace)
        return without_ids(text, frame.namespace, frame.values)

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
        tried = tuple((ids, place) for ids, place in placed if place is not None)
        asked = bool(builders) or id(code) in self._asked or self._attempt(
            lambda: cache_entries.was_asked(code), False)
        self._orders.append(self._recorder.append(OrderOfEntries(
            self._number(code), tried, asked, self._asked.get(id(code)) is False)))

    def _entry_order(self, code: CodeType) -> dict[int, int]:
        """Return the places of transformed codes, by id, in the order in which torch tries them.

        Guard trees that are not known yet are read from the cache entries on the way.
        """
        order: dict[int, int] = {}
        try:
            for index, entry in enumerate(cache_entries.cache_entries(code)):
                running, ids, print_guards = cache_entries.entry_facts(entry)
                if not cache_entries.is_given_up(entry):
                    order[id(running)] = index
                known = self._events.compile_id(*ids) if ids is not None else None
                if known is not None and known.key not in self._guards:
                    text = without_ids(print_guards(), {}, {})
                    self._guards[known.key] = self._recorder.append(GuardsOfEntry(known, text))
        except Exception as error:
            self._note(f"cache entries of {code.co_name} could not be read ({type(error).__name__}: {error})")
        return order

    def unwritten(self, recorded: EndOfRecording) -> Unwritten:
        """Return all that functions are made of."""
        read = self._recorder.read
        bytecodes = [self._attempt(lambda: read(builder.recorded), None)
                     for builders in self._of.values() for builder in builders]
        return Unwritten(
            tuple(read(record) for _, _, record in self._numbered.values()), tuple(filter(None, bytecodes)),
            tuple(map(read, self._guards.values())), tuple(map(read, self._orders)), recorded)


def _traced(original: CodeType) -> resume_code.TracedCode | None:
    try:
        return resume_code.traced_code(original)
    except private_api.MissingPrivateApi:
        return None


def _key(original: CodeType, meant: Meant) -> Key:
    return id(original), id(meant.code)


# --- written and linked at once ----------------------------------------------------------------------
def write_and_link(
    original: CodeType, transformed: CodeType, bytecode: Bytecode, function: UserFunction,
    breaks: Sequence[GraphBreak], writer: DumpWriter, linker: Linker | None,
    attempt: Callable[[Callable[[], Any], Any], Any], code_objects: bool,
) -> CodeType | None:
    """Write transformed code, and link it to its file; return what is to run for it, unless that is torch's own.

    Args:
        original: what torch compiled.
        transformed: what it made of that.
        bytecode: the record of that.
        function: that the user means.
        breaks: where its graph ends before the function does.
        writer, linker, attempt: of the session.
        code_objects: write code objects, too.
    """
    from ..decompiler.dynamo.facts import RecordedFacts  # (with files="later" nothing is decompiled)
    from ..finishing.frames import code_text
    from ..finishing.texts import decompiled_bytecode

    decompiled = decompiled_bytecode(bytecode, transformed, attempt)
    arguments = transformed.co_varnames[: transformed.co_argcount + transformed.co_kwonlyargcount]
    text = TransformedCode(
        bytecode.compile_id, bytecode.function_name, code_text(decompiled), None, arguments, bytecode.file)
    place = attempt(lambda: writer.transformed(text, function, breaks), None)
    linked = None
    if place is not None and linker is not None:
        facts = attempt(lambda: RecordedFacts(bytecode.facts), None) if bytecode.facts else None
        linked = linker.link_transformed(original, transformed, decompiled, place, bytecode.shown, facts)
    if code_objects:
        kinds = ("original", original), ("transformed", transformed), ("recompiled", linked or transformed)
        for kind, code in kinds:
            writer.code_object(os.path.basename(bytecode.file), kind, code)
    return linked


# --- Names of torch's own globals as texts show them -------------------------------------------------
#: Torch puts an object into the user's globals under a name with its id and the compile id
#: (torch/_dynamo/output_graph.py, ``install_global_by_id``).
_NAME_WITH_ID = re.compile(r"(?P<name>.*[^\W\d_])_\d{9,}_c\w+")


def names_without_ids(code: CodeType) -> dict[str, str]:
    """``{global name with an id that differs from run to run: the name without it}``."""
    taken = {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    shown = {}
    for name in code.co_names:
        match = _NAME_WITH_ID.fullmatch(name) if "_c" in name else None
        if match is not None and match["name"] not in taken:
            shown[name] = match["name"]
            taken.add(match["name"])
    return shown
