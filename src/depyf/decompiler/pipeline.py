"""Puts the stages together: try, prove, try the next form, fall back."""

from __future__ import annotations

import ast
import enum
import sys
from dataclasses import dataclass
from types import CodeType
from typing import Any, Mapping, Sequence

from ..bytecode.canonical import canonicalise
from ..bytecode.code import CO_ASYNC_GENERATOR, CO_COROUTINE, Code
from ..flow.graph import build
from .compare import compare
from .constants import name_constants
from .emit import Unwritable, emit
from .lift import FunctionExpr, Iter
from .scopes import FAILURES, CodeScope, Options, make_function, top_level
from .verify import line_map, same_program


class Fidelity(str, enum.Enum):
    """How a decompilation relates to the code it came from."""

    EXACT = "exact"  # compiles to the same program
    EQUIVALENT = "equivalent"  # proven the same after the simplifications named in ``note``
    FALLBACK = "fallback"  # a dispatch loop, right by construction
    UNPROVEN = "unproven"  # only with verify=False


@dataclass(frozen=True)
class Decompiled:
    """Source of a code object.

    Attributes:
        text: Python source; one ``def`` (or module text for module code).
        fidelity: see :class:`Fidelity`.
        note: simplifications made, or why it fell back. Empty when there is nothing to say.
        line_map: ``{byte offset of an original instruction: 1-based line of text}``.
        tree: the syntax tree the text was made from, with line numbers of ``text``. It may hold
            statements that the text does not show (marked ``_depyf_hidden``: lifetimes, profiler
            markers); compiled, it gives the code that may stand in for the original.
    """

    text: str
    fidelity: Fidelity
    note: str
    line_map: Mapping[int, int]
    tree: ast.Module


def decompile_code(
    code: CodeType | Code,
    *,
    name: str | None = None,
    simplify: bool = False,
    verify: bool = True,
    parameter_names: Mapping[str, Sequence[str]] | None = None,
    rename: Mapping[str, str] | None = None,
    keep_variables: bool = False,
) -> Decompiled:
    """Decompile one code object.

    Args:
        code: what to decompile.
        name: name of the function in the text (default: the code's own, made legal).
        simplify: remove torch.compile's list juggling (fidelity becomes ``equivalent``).
        verify: prove the result; without it everything is ``unproven``.
        parameter_names: parameter names of functions that the code calls by global name; used to name
            values (``x`` in ``__resume_at_102_2(..., x)``).
        rename: global names to show differently (``__compiled_fn_1_9148bb58... -> __compiled_fn_1``).
        keep_variables: with ``simplify``: the user's own variables stay (for resume functions, which are the
            user's code behind a few lines of torch's).
    """
    source = code if isinstance(code, Code) else Code.of(code)
    return _Job(source, name, simplify, verify, parameter_names, rename, keep_variables).run()


SIMPLIFIED = "lists and tuples that only carry values to and fro are left out"


class Failed(Exception):
    """No form of the code could be written and proven (an error of ours)."""


#: What can go wrong when a text is written and compiled again.
_TROUBLE = (*FAILURES, Unwritable, SyntaxError)


class _Job:
    """One decompilation: try, prove, try the next form, fall back.

    The forms, in order: simplified (when asked for), as CPython would have compiled it, with temporaries
    for values that no Python expression would keep on the stack, and the dispatch loop.  When only a
    nested function is at fault, only that one falls back.
    """

    def __init__(
        self, code: Code, name: str | None, simplify: bool, verify: bool,
        parameter_names: Mapping[str, Sequence[str]] | None, rename: Mapping[str, str] | None,
        keep_variables: bool = False,
    ) -> None:
        self.code = code
        self.name = name
        self.simplify = simplify
        self.verify = verify and code.version == sys.version_info[:2]
        self.parameter_names = parameter_names
        self.rename = dict(rename or {})
        self.keep_variables = keep_variables
        self.reasons: list[str] = []
        self.program, self.constants = name_constants(canonicalise(code))

    def options(self) -> Options:
        options = Options(fallback=_dispatch)
        if self.constants:
            options.graphs[self.code] = build(self.program)
        return options

    def run(self) -> Decompiled:
        if self.simplify:
            found = self.simplified()
            if found is not None:
                return found
        return self.direct() or self.spilled() or self.fallen()

    # --- the forms --------------------------------------------------------------------------------
    def simplified(self) -> Decompiled | None:
        try:
            from .simplify import simplify
        except ImportError:
            return None
        try:
            graph = simplify(build(self.program), parameter_names=self.parameter_names,
                             keep_variables=self.keep_variables)
        except Exception as error:  # whatever goes wrong there only costs readability
            self.reasons.append(f"not simplified ({error})")
            return None
        for spill in (False, True):
            options = self.options()
            options.graphs[self.code] = graph
            options.spill = spill
            found = self.attempt(options, Fidelity.EQUIVALENT, SIMPLIFIED)
            if found is not None:
                return found
        return None

    def direct(self) -> Decompiled | None:
        return self.attempt(self.options(), Fidelity.EXACT, "")

    def spilled(self) -> Decompiled | None:
        options = self.options()
        options.spill = True
        return self.attempt(options, Fidelity.EQUIVALENT, "values kept on the stack have names")

    def attempt(self, options: Options, fidelity: Fidelity, note: str) -> Decompiled | None:
        """One form of the code with everything it holds; ``None`` if it cannot be written or proven."""
        options.rename = self.rename
        options.outermost = self.code
        where = ""
        for _ in range(25):
            options.fallen = {}
            try:
                text, tree = emit(top_level(self.code, options, self.name))
                recompiled = compile_function(tree, self.code, bool(self.constants)) if self.verify else None
            except _TROUBLE as error:
                self.reasons.append(f"{type(error).__name__}: {error}")
                return None
            if recompiled is None:
                fell = Fidelity.FALLBACK if options.fallen else Fidelity.UNPROVEN
                return Decompiled(text, fell, self.note(options, note), {}, tree)
            if options.fallen:
                return Decompiled(text, Fidelity.FALLBACK, self.note(options, note), {}, tree)
            verdict = same_program(self.program, recompiled, ignore_name=True, rename=self.rename or None)
            if verdict:
                return self.proven(text, tree, Fidelity.EXACT, "", verdict, recompiled)
            where = verdict.where
            if fidelity is Fidelity.EQUIVALENT:
                verdict = self.equivalent(recompiled)
                if verdict:
                    return self.proven(text, tree, Fidelity.EQUIVALENT, note, verdict, recompiled)
                self.reasons.append(f"{note}: {getattr(verdict, 'where', '')}")
                return None
            culprit = compare(self.code, recompiled).code
            if culprit is None or culprit is self.code or culprit in options.refused:
                break
            options.refused.add(culprit)
        self.reasons.append(where)
        return None

    def equivalent(self, recompiled: Code) -> Any:
        try:
            from .equivalence import equivalent
        except ImportError:
            return None
        try:
            return equivalent(self.program, recompiled, rename=self.rename or None)
        except Exception as error:  # a prover that fails has proven nothing
            self.reasons.append(f"equivalence: {type(error).__name__}: {error}")
            return None

    def fallen(self) -> Decompiled:
        """The dispatch loop; what is nested is still decompiled in the usual way."""
        options = self.options()
        options.refused.add(self.code)
        options.rename = self.rename
        try:
            text, tree = emit(top_level(self.code, options, self.name))
        except Exception as error:
            raise Failed("; ".join([*self.reasons, f"{type(error).__name__}: {error}"])) from error
        reasons = [*self.stated_constants(), *self.reasons]
        return Decompiled(text, Fidelity.FALLBACK, "; ".join(dict.fromkeys(reasons)), {}, tree)

    def stated_constants(self) -> list[str]:
        return [f"{name} stands for {what}, a constant that source cannot say" for name, what in self.constants.items()]

    def proven(
        self, text: str, tree: ast.Module, fidelity: Fidelity, note: str, verdict: Any, recompiled: Code
    ) -> Decompiled:
        lines = line_map(verdict, recompiled.origin) if recompiled.origin is not None else {}
        notes = [note, *self.stated_constants(), *getattr(verdict, "notes", ())]
        if self.constants and fidelity is Fidelity.EXACT:
            fidelity = Fidelity.EQUIVALENT
        return Decompiled(text, fidelity, "; ".join(dict.fromkeys(n for n in notes if n)), lines, tree)

    def note(self, options: Options, note: str) -> str:
        reasons = [note, *(f"{code.name}: {reason}" for code, reason in options.fallen.items())]
        reasons += [f"{code.name}: not proven" for code in options.refused]
        return "; ".join(dict.fromkeys(r for r in reasons if r))


def compile_function(tree: ast.Module, code: Code, constants: bool = False) -> Code:
    """The code object that the text of ``code`` compiles to.

    Args:
        tree: the text.
        code: what it is the text of.
        constants: the text names constants (``__constant_0_dtype``), which no class may mangle.
    """
    if code.name == "<module>":
        return Code.of(compile(tree, code.filename, "exec", dont_inherit=True))
    function = tree.body[0]
    parents = code.qualname.split(".")[:-1]
    private = constants or _has_private_names(code)
    free = [n for n in code.freevars if n.isidentifier() and n != "__class__"]
    wrappers: list[tuple[str, str]] = []
    for index, part in enumerate(parents):
        if part == "<locals>":
            continue
        inside = index + 1 < len(parents) and parents[index + 1] == "<locals>"
        # A class called ``_`` mangles no private names: those of bytecode are mangled where they should be,
        # and Dynamo puts others (``__compiled_fn_1``) into methods.
        known = part.isidentifier() and (inside or not private)
        wrappers.append(("def" if inside else "class", part if known else "_"))
    needs_class = "__class__" in code.freevars and not any(kind == "class" for kind, _ in wrappers)
    if (free and not any(kind == "def" for kind, _ in wrappers)) or needs_class:
        wrappers = [("def", "__depyf_scope__")]
        free = [n for n in code.freevars if n.isidentifier()]
    inner: list[ast.stmt] = [function]
    for kind, part in reversed(wrappers):
        if kind == "def":
            if free:
                inner = [ast.parse(" = ".join(free) + " = None").body[0], *inner]
                free = []
            made: Any = ast.parse(f"def {part}(): pass").body[0]
        else:
            made = ast.parse(f"class {part}: pass").body[0]
        made.body = inner
        inner = [made]
    compiled = compile(ast.Module(inner, []), code.filename, "exec", dont_inherit=True)
    for _ in wrappers:
        compiled = _function_in(compiled)
    return Code.of(_function_in(compiled))


def _has_private_names(code: Code) -> bool:
    """Whether a name would be mangled inside a class (torch's ``__compiled_fn_1`` in a method's code)."""
    return any(
        name.startswith("__") and not name.endswith("__")
        for names in (code.names, code.varnames, code.cellvars, code.freevars) for name in names
    ) or any(_has_private_names(const) for const in code.consts if isinstance(const, Code))


def _function_in(code: CodeType) -> CodeType:
    found = [c for c in code.co_consts if isinstance(c, CodeType)]
    return found[-1]


def _dispatch(code: Code, scope: CodeScope) -> list[ast.stmt]:
    """The total fallback (``dispatch``), as the body of a function."""
    from .dispatch import dispatch

    graph = scope.options.graphs.get(code)
    return dispatch(graph if graph is not None else build(canonicalise(code)), _Nested(scope))


class _Nested:
    """What a function written as a dispatch loop holds is decompiled in the usual way."""

    def __init__(self, scope: CodeScope) -> None:
        self.scope = scope

    def function(self, code: Code, name: str) -> list[ast.stmt]:
        if code.arguments[:1] == (".0",):
            # a comprehension: a function of the iterator
            iterator = ast.Name("iterator", ast.Load())
            made = self.scope.comprehension(FunctionExpr(code, {}), Iter(iterator))
            only = ast.arguments([], [ast.arg("iterator")], None, [], [], None, [])
            return [make_function(name, only, [ast.Return(made)], [], None, False)]
        scope = self.scope.nested(code, "function")
        arguments, _ = scope.arguments(code, {}, scope)
        asynchronous = bool(code.flags & (CO_COROUTINE | CO_ASYNC_GENERATOR))
        return [make_function(name, arguments, scope.statements(), [], None, asynchronous)]

    def class_body(self, code: Code) -> list[ast.stmt]:
        return self.scope.nested(code, "class", code.name).statements()


def stages(code: CodeType | Code) -> str:
    """One code object through every stage, as text (for people who work on the decompiler)."""
    from .lift import Machine
    from .structure.loops import mark_breaks, rotate, split_breaks
    from .structure.reduce import Reducer
    from .structure.regions import prepare

    source = code if isinstance(code, Code) else Code.of(code)
    out: list[str] = []
    graph = build(canonicalise(source))
    out.append("== graph ==")
    for block in graph.blocks.values():
        out.append(f"{block!r} {block.region or ''}")
        out.extend(f"    {op!r}" for op in block.ops)

    def show(title: str, flow: Any) -> None:
        out.append(f"== {title} ==")
        out.extend(repr(flow.nodes[id]) for id in sorted(flow.nodes, key=flow.order.__getitem__))

    try:
        flow = prepare(graph, mark_breaks(graph))
        show(f"regions {flow.kinds}", flow)
        split_breaks(flow)
        rotate(flow)
        show("loops", flow)
        scope = CodeScope(source, Options())
        Reducer(flow, Machine(scope), False).run()
        show("expressions", flow)
    except FAILURES as error:
        out.append(f"{type(error).__name__}: {error}")
    found = decompile_code(source)
    out.append(f"== text: {found.fidelity.value} {found.note} ==")
    out.append(found.text)
    return "\n".join(out)
