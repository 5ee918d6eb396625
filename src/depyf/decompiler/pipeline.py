"""Puts the stages together: try, prove, try the next form, fall back."""

from __future__ import annotations

import ast
import enum
import sys
from dataclasses import dataclass
from types import CodeType
from typing import Any, Mapping, Sequence

from ..bytecode.code import Code
from .compare import Comparison, compare
from .emit import Unwritable, emit
from .scopes import FAILURES, CodeScope, Options, top_level


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
    """
    source = code if isinstance(code, Code) else Code.of(code)
    return _Job(source, name, simplify, verify, parameter_names, rename).run()


class Failed(Exception):
    """No form of the code could be written and proven (an error of ours)."""


class _Job:
    """One decompilation: try, prove, refuse what was not proven, try again."""

    def __init__(
        self, code: Code, name: str | None, simplify: bool, verify: bool,
        parameter_names: Mapping[str, Sequence[str]] | None, rename: Mapping[str, str] | None,
    ) -> None:
        self.code = code
        self.name = name
        self.simplify = simplify
        self.verify = verify and code.version == sys.version_info[:2]
        self.parameter_names = parameter_names
        self.rename = rename
        self.options = Options(fallback=_dispatch)

    def run(self) -> Decompiled:
        options = self.options
        where = ""
        for _ in range(50):
            options.fallen = {}
            try:
                text, tree = emit(top_level(self.code, options, self.name))
            except (*FAILURES, Unwritable) as error:
                where = f"{type(error).__name__}: {error}"
                if self.code in options.refused:
                    raise Failed(where) from error
                options.refused.add(self.code)
                continue
            if not self.verify:
                fidelity = Fidelity.FALLBACK if options.fallen else Fidelity.UNPROVEN
                return Decompiled(text, fidelity, self.note(""), {}, tree)
            try:
                recompiled = compile_function(tree, self.code)
            except (SyntaxError, ValueError, TypeError, RecursionError) as error:
                where = f"{type(error).__name__}: {error}"
                if self.code in options.refused:
                    raise Failed(where) from error
                options.refused.add(self.code)
                continue
            if options.fallen or options.refused:
                return Decompiled(text, Fidelity.FALLBACK, self.note(where), {}, tree)
            verdict = compare(self.code, recompiled)
            if verdict:
                return Decompiled(text, Fidelity.EXACT, "", self.line_map(verdict, recompiled), tree)
            where = verdict.where
            culprit = verdict.code if verdict.code is not None else self.code
            options.refused.add(culprit)
        raise Failed(where)

    def note(self, where: str) -> str:
        reasons = [f"{code.name}: {reason}" for code, reason in self.options.fallen.items()]
        reasons += [f"{code.name}: not proven" for code in self.options.refused]
        return "; ".join(dict.fromkeys(reasons)) + (f" ({where})" if where else "")

    def line_map(self, verdict: Comparison, recompiled: Code) -> dict[int, int]:
        lines: dict[int, int] = {}
        for start, end, line in recompiled.origin.co_lines():  # type: ignore[union-attr]
            if line is not None:
                for offset in range(start, end, 2):
                    lines[offset] = line
        found: dict[int, int] = {}
        for original, new in verdict.pairs:
            line = lines.get(new)
            if line is not None:
                found.setdefault(original, line)
        return found


def compile_function(tree: ast.Module, code: Code) -> Code:
    """The code object that the text of ``code`` compiles to."""
    if code.name == "<module>":
        return Code.of(compile(tree, code.filename, "exec", dont_inherit=True))
    function = tree.body[0]
    parents = code.qualname.split(".")[:-1]
    free = [n for n in code.freevars if n.isidentifier() and n != "__class__"]
    wrappers: list[tuple[str, str]] = []
    for index, part in enumerate(parents):
        if part == "<locals>":
            continue
        inside = index + 1 < len(parents) and parents[index + 1] == "<locals>"
        wrappers.append(("def" if inside else "class", part if part.isidentifier() else "_"))
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


def _function_in(code: CodeType) -> CodeType:
    found = [c for c in code.co_consts if isinstance(c, CodeType)]
    return found[-1]


def _dispatch(code: Code, scope: CodeScope) -> list[ast.stmt]:
    """The total fallback (``dispatch``), as the body of a function."""
    from . import dispatch as dispatching

    return dispatching_body(dispatching, code, scope)


def dispatching_body(module: Any, code: Code, scope: CodeScope) -> list[ast.stmt]:
    from ..bytecode.canonical import canonicalise
    from ..flow.graph import build

    result = module.dispatch(build(canonicalise(code)))
    return list(result)
