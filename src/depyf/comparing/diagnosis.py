"""Which part of a compiled version is at fault: parts are run apart, beside what they stand for.

fresh graphs, as captured, wrong?   yes -> capture: a node, else the frame whose compiled version does it
fresh, by the program's backend?    yes -> backend: a graph, and in it a node or kernel
all that is fresh is right          -> the version is used where it should not be: its guards allow it
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

from ..capture.apart import ChildFailed, in_child
from ..capture.torch_private import (
    cache_entries,
    compiled_callables,
    graph_modules,
    loaded,
    pipeline,
    resume_code,
)
from ..records.model import Guard
from ..torch_text.guards import parse_guards
from ..watch.origins import UserLine
from .graph_check import GraphFault, GraphsBeside
from .locating import Located
from .outcome import Disagreement, Outcome
from .results import Difference, Fault
from .runs import JudgedCall, Loaded, Served, VersionFacts

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")
_KERNEL = re.compile(r"kernel (\w+) uses")
_MARKS = re.compile(r"#.*|0x[0-9a-f]+|\b\d{9,}\b|(?<=__builtins_dict___)\d+|(?<=___)\d+\b|_[0-9a-f]{8}_.*?(?=\W)")


@dataclass
class Fresh:
    """What is said of a compilation made afresh.

    Attributes:
        guards: of each function, by its name.
        graphs: as they are loaded, of each function.
        faults: graphs that gave another value than the captured graph with the same inputs.
        kernel: the first kernel that wrote something else than its nodes give.
    """

    guards: dict[str, tuple[Guard, ...]] = field(default_factory=dict)
    graphs: dict[str, list[loaded.LoadedGraph]] = field(default_factory=dict)
    faults: list[GraphFault] = field(default_factory=list)
    kernel: Difference | None = None


class Diagnosis:
    """Looks for the part at fault.

    Args:
        call: the call, whose versions leave something else than eager Python.
        found: what they leave otherwise.
        own_random: the random numbers that compiled code draws in its own way.
        settings: makes the context in which parts are compiled.
    """

    def __init__(
        self, call: JudgedCall, found: Sequence[Disagreement], own_random: frozenset[str],
        settings: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> None:
        self.call, self.found, self.own_random, self._settings = call, found, own_random, settings
        self._trouble = ""
        self.ran: Loaded = call.as_loaded(facts=True).extra

    def fault(self) -> Fault:
        """Return the part at fault."""
        captured = self._try(lambda: self._fresh(_as_captured))
        if captured is None:
            return self._of_frame(f"it could not be compiled afresh to try its parts ({self._trouble})")
        if self._wrong(captured):
            return self._of_capture()
        given = cache_entries.compiled_with(self.call.compiled)
        backend = given.backend if given is not None else None
        if backend is not None:
            made = self._try(lambda: self._fresh(backend))
            if made is not None and self._wrong(made):
                return self._of_backend(made)
            return self._of_guards(captured, made)
        return self._of_guards(captured, None)

    # --- runs ---------------------------------------------------------------------------------------
    def _try(self, run: Any) -> Outcome | None:
        try:
            outcome: Outcome = run()
        except ChildFailed as error:
            self._trouble = str(error)
            return None
        return outcome

    def _wrong(self, outcome: Outcome) -> bool:
        return bool(self.call.against_eager(outcome, self.own_random).differing)

    def _fresh(self, backend: Any, caches: bool = False, dynamic: bool | None = None) -> Outcome:
        """Run the call compiled anew by a backend, its graphs beside the captured ones.

        Args:
            backend: ``(graph module, inputs) -> callable``.
            caches: read torch's compile caches.
            dynamic: as of ``torch.compile``; by default what the backend was given.
        """
        @contextlib.contextmanager
        def made() -> Iterator[tuple[Any, Any]]:
            beside = GraphsBeside(backend)
            code = self.call.code

            def facts() -> Fresh:
                beside.leave()
                fresh = Fresh(faults=beside.faults(self.call.tolerance), kernel=beside.kernel(self.call.tolerance))
                for each in cache_entries.known_codes():
                    if beside.made(each) and (
                            code is None or each.co_name == code.co_name or resume_code.is_resume(each)):
                        _add_versions(each, fresh, beside, getattr(self.call.plain, "__globals__", {}))
                return fresh

            yield beside.compile, facts

        return self.call.afresh(made, pipeline.as_the_program if caches else self._settings,
                                getattr(backend, "dynamic", None) if dynamic is None else dynamic)

    # --- capture ------------------------------------------------------------------------------------
    def _of_capture(self) -> Fault:
        node = self._captured_node()
        if node is not None:
            return Fault("graph", node.name, f"the captured graph gives something else than {node.against}; "
                         f"the largest difference is {node.max_difference:.3g}", node.user_lines)
        return self._of_frame("no node of its graphs was found to differ")

    def _captured_node(self) -> Difference | None:
        """Return the first captured node that does not compute what its line computes in eager Python."""
        located = Located(replace(self.call, backward=False), None)
        try:
            found: Difference | None = in_child(located.captured_node, self.call.limit)
            return found
        except ChildFailed:
            return None

    def _of_frame(self, before: str) -> Fault:
        """Return the function whose compiled version is at fault: without it all is as in eager Python."""
        culprit = self._culprit()
        effects = [each for each in self.found if each.part in ("side effect", "printed text", "random state")]
        only_effects = bool(effects) and len(effects) == len(self.found)
        name, lines = self._names(culprit)
        where = f"the resume function for line {culprit.resumes_at}" if culprit and culprit.resumes_at else name
        if only_effects:
            return Fault("side effect", effects[0].place, f"{effects[0].text}; {before}, the transformed code of "
                         f"{where} does not do what the function does", lines)
        if culprit is None or not culprit.resumes_at:
            return Fault("transformed code", name, before, lines)
        return Fault("resume function", name, f"{before}; run as it is written, {where} gives what eager Python gives",
                     lines)

    def _culprit(self) -> Served | None:
        """Return the resume function that is at fault; the function itself where none is."""
        resumed = [each for each in dict.fromkeys(self.ran.served) if each.resumes_at]
        # The last that helps: what it is called from then gives it what it should.
        for each in reversed(resumed):
            name = each.function
            outcome = self._try(lambda: self.call.as_loaded(compiles=False, before=lambda: _forget(name)))
            if outcome is not None and not self._wrong(outcome):
                return each
        return next((each for each in self.ran.served if not each.resumes_at), None)

    def _names(self, served: Served | None) -> tuple[str, tuple[UserLine, ...]]:
        from ..records.model import SourceLocation

        if served is None:
            return getattr(self.call.function, "__qualname__", type(self.call.function).__qualname__), ()
        line = served.resumes_at or served.line
        return f"{served.function} {served.version}", (
            UserLine(SourceLocation(served.filename, line, "", "")),) if line else ()

    # --- backend ------------------------------------------------------------------------------------
    def _of_backend(self, made: Outcome) -> Fault:
        fresh: Fresh = made.extra
        name = compiled_callables.backend_name(cache_entries.compiled_with(self.call.compiled).backend)  # type: ignore[union-attr]
        if fresh.kernel is not None:
            kernel = fresh.kernel
            return Fault("kernel", kernel.name, f"it computes {', '.join(kernel.nodes)} and gives something else than "
                         f"{kernel.against}; the largest difference is {kernel.max_difference:.3g}",
                         kernel.user_lines)
        if fresh.faults:
            first = fresh.faults[0]
            part = "graph" if first.node else "backend"
            return Fault(part, first.node or f"{name}, graph {first.number}",
                         f"what {name} made of graph {first.number} gives something else than the captured graph with "
                         f"the same inputs; the largest difference is {first.apart:.3g}", first.user_lines)
        if all(each.part == "gradient" for each in self.found):
            return Fault("backward graph", self.found[0].place,
                         f"what {name} made of the captured graphs gives the same results and another gradient: "
                         f"{self.found[0].text}{_shared_memory(self.found[0])}")
        return Fault("backend", name, f"what {name} made of the captured graphs leaves something else than these")

    # --- guards -------------------------------------------------------------------------------------
    def _of_guards(self, captured: Outcome, made: Outcome | None) -> Fault:
        fresh: Fresh = captured.extra
        missing: list[Guard] = []
        at_fault = next((each for each in self.ran.served if not each.resumes_at), None)
        for each, facts in self.ran.facts.items():
            missing = missing_guards(facts.guards, fresh.guards.get(each.function, ()))
            if missing:
                at_fault = each
                break
        facts = self.ran.facts.get(at_fault, VersionFacts()) if at_fault is not None else VersionFacts()
        version, function = (at_fault.version, at_fault.function) if at_fault is not None else ("", "the function")
        others = made.extra.graphs.get(function, []) if made is not None else []
        constants = _constants(facts.graphs, others) or self._constants_of_sizes_fixed(facts, function)
        served = ", ".join(facts.free) or "this call"
        what = f"version {version} of {function} serves {served}{constants}"
        if missing:
            names = ", ".join(dict.fromkeys(each.source or each.expression for each in missing[:4]))
            return Fault("guard", names, f"{what}; compiled afresh it is right, with the guard "
                         f"{missing[0].expression}, which this version lacks", _cause(missing))
        if constants and not facts.free and self._cache_gives_it():
            kernel = next(iter(_KERNEL.findall(constants)), "")
            return Fault("kernel" if kernel else "graph", kernel or version,
                         f"{what}; its guards fit, but what it runs came from torch's compile cache, which takes it "
                         "for the same; without the cache it is right (TORCHINDUCTOR_FX_GRAPH_CACHE=0)")
        if facts.free or constants:
            names = ", ".join(value.partition(" = ")[0] for value in facts.free)
            return Fault("guard", names or version, f"{what}; compiled afresh it is right; its guards allow it",
                         _line_of_number(facts.graphs, others))
        for each, its_facts in self.ran.facts.items():
            theirs = made.extra.graphs.get(each.function, []) if made is not None else []
            for one, other in zip(its_facts.graphs, theirs):
                line = other_line(one.text, other.text)
                if line:
                    return Fault("graph", line[0],
                                 f"version {each.version} of {each.function} serves {served}; its graph has {line[1]} "
                                 f"where one made now has {line[2] or 'nothing'}", line[3])
        return Fault("version", version, f"{what}; compiled afresh it is right")

    def _constants_of_sizes_fixed(self, facts: VersionFacts, function: str) -> str:
        """Return the number that another is where every number of the call is taken for a constant."""
        given = cache_entries.compiled_with(self.call.compiled)
        if not facts.graphs or given is None or given.backend is None:
            return ""
        backend = given.backend
        made = self._try(lambda: self._fresh(backend, dynamic=False))
        return _constants(facts.graphs, made.extra.graphs.get(function, ())) if made is not None else ""

    def _cache_gives_it(self) -> bool:
        """Return whether a fresh compilation is wrong that reads torch's compile caches."""
        given = cache_entries.compiled_with(self.call.compiled)
        if given is None or given.backend is None:
            return False
        backend = given.backend
        made = self._try(lambda: self._fresh(backend, caches=True))
        return made is not None and self._wrong(made)


def _shared_memory(found: Disagreement) -> str:
    """Return what shared memory means for who changes a gradient."""
    return "; changing one in place (clip_grad_norm_) changes the other" if found.text.startswith("it shares") else ""


def _constants(graphs: Sequence[loaded.LoadedGraph], fresh: Sequence[loaded.LoadedGraph]) -> str:
    """Return a number that a version has and a fresh one has otherwise, in words."""
    for one, other in zip(graphs, fresh):
        for name, text in one.kernels.items():
            for theirs in other.kernels.values():
                pair = other_number(text, theirs)
                if pair is not None:
                    return f", kernel {name} uses {pair[0]} where the call has {pair[1]}"
        pair = other_number(one.text, other.text)
        if pair is not None:
            return f", its graph uses {pair[0]} where the call has {pair[1]}"
    return ""


def _line_of_number(graphs: Sequence[loaded.LoadedGraph], fresh: Sequence[loaded.LoadedGraph]) -> tuple[UserLine, ...]:
    """Return the user's line of the node where a graph has another number than a fresh one."""
    for one, other in zip(graphs, fresh):
        if other_number(one.text, other.text) is not None:
            line = other_line(one.text, other.text)
            return line[3] if line is not None else ()
    return ()


def missing_guards(own: Sequence[Guard], fresh: Sequence[Guard]) -> list[Guard]:
    """Return the guards of a fresh version on things that another version does not guard in that way."""
    known = {(_MARKS.sub("", each.source), _group(each.kind)) for each in own}
    texts = {_MARKS.sub("", each.expression) for each in own}
    return [each for each in fresh if (_MARKS.sub("", each.source), _group(each.kind)) not in known and each.source
            and _MARKS.sub("", each.expression) not in texts]


def _group(kind: str) -> str:
    """Return one name for kinds of guards that say the same of a value."""
    return "value" if kind in ("EQUALS_MATCH", "CONSTANT_MATCH", "ID_MATCH", "TRUE_MATCH", "FALSE_MATCH", "NONE_MATCH",
                               "BOOL_MATCH", "LAMBDA_GUARD") else kind


def other_number(one: str, other: str) -> tuple[str, str] | None:
    """Return the first number in which two texts differ that are otherwise the same; ``None``: they are not."""
    texts = [_NUMBER.sub("0", _MARKS.sub("", each)) for each in (one, other)]
    if texts[0] != texts[1]:
        return None
    numbers = [_NUMBER.findall(_MARKS.sub("", each)) for each in (one, other)]
    return next(((a, b) for a, b in zip(*numbers) if a != b), None)


def other_line(one: str, other: str) -> tuple[str, str, str, tuple[UserLine, ...]] | None:
    """Return where two graphs begin to differ: ``(node, its text, the other's, the user's line)``."""
    from ..torch_text.graph_text import read_graph

    theirs = [_MARKS.sub("", line).strip() for line in other.splitlines()]
    theirs = [line for line in theirs if line]
    at = 0
    for line in one.splitlines():
        plain = _MARKS.sub("", line).strip()
        if not plain:
            continue
        if at >= len(theirs) or plain != theirs[at]:
            name = re.match(r"(\w+)", plain)
            node = next((each for each in read_graph(one).nodes if name is not None and each.name == name[1]), None)
            lines = (UserLine(node.location),) if node is not None and node.location is not None else ()
            return (name[1] if name else ""), plain[:100], theirs[at][:100] if at < len(theirs) else "", lines
        at += 1
    return None


def _cause(missing: Sequence[Guard]) -> tuple[UserLine, ...]:
    return tuple(UserLine(each.cause) for each in missing if each.cause is not None)[:1]


def _add_versions(code: CodeType, fresh: Fresh, beside: GraphsBeside, namespace: dict[str, Any]) -> None:
    for entry in cache_entries.entries(code):
        if entry.given_up or not beside.wrote(entry.code):
            continue
        fresh.guards[code.co_name] = parse_guards(str(entry.guard_manager))
        fresh.graphs[code.co_name] = [beside.loaded(name, namespace) for name in entry.code.co_names
                                      if graph_modules.GRAPH_NAME.match(name) is not None]


def _forget(name: str) -> None:
    """In the process of a run: resume functions of that name have no compiled version."""
    for code in cache_entries.known_codes():
        if code.co_name == name:
            pipeline.forget(code)


def _as_captured(gm: Any, inputs: Any) -> Any:
    return gm.forward
