"""Code that may run in place of Dynamo's, and that a debugger can show.

Dynamo's bytecode for a frame comes from no text. Its decompiled source, compiled again, is proven to be
the same program, and *that* code has lines in a file and a live local for every name in the text. What source
cannot say is put back before it runs: constants that are objects (``patches``), and that values are let go
of where they are last used (``lifetimes``), torch's marks for its profiler (``marks``).

torch checks a hook's result against the user's function (argument names, free variables and cell
variables, in order; everything else it takes on trust) and dies if they differ. So the stand-in is built
to agree, and checked here first. Where it cannot agree, or nothing is proven, Dynamo's own bytecode stays
and merely has its line table pointed at the text.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..bytecode.linetable import relocate
from ..decompiler import Fidelity
from ..decompiler.constants import constant_values
from ..decompiler.dynamo.global_names import CONSTANT_PREFIX
from ..decompiler.proof.parts import first_mismatch
from ..decompiler.trees import copied, nodes_of
from .identical import global_names, named_like, nested_codes
from .lifetimes import free_unused
from .patches import CannotPatch, add_marks, flag_modules, with_constants, with_moves

if TYPE_CHECKING:
    from ..decompiler import Decompiled
    from ..decompiler.dynamo.facts import Facts

CO_VARARGS = 0x4
CO_VARKEYWORDS = 0x8
CO_KINDS = 0x4 | 0x8 | 0x20 | 0x80 | 0x100 | 0x200  # *args, **kwargs, generators and coroutines
CO_FUTURE = 0x1FE0000  # what ``from __future__ import ...`` sets

PROVEN = ("exact", "equivalent")


class CannotStandIn(Exception):
    """A recompiled function cannot replace Dynamo's code."""


class CannotLink(Exception):
    """Neither the source nor its lines can be tied to Dynamo's code."""


class Linked(NamedTuple):
    """Code to run, tied to its text.

    Attributes:
        code: runs.
        from_text: whether it is compiled from the text, so that every name in it is a live local; else it is Dynamo's
            own, with lines that point at the text.
        lacking: what it lacks for that reason, or why it is not from the text; empty if all is as in Dynamo's code.
    """

    code: CodeType
    from_text: bool
    lacking: str


def linked_code(
    original: CodeType,
    transformed: CodeType,
    decompiled: Decompiled,
    path: str,
    first_line: int = 1,
    rename: Mapping[str, str] | None = None,
    facts: Facts | None = None,
) -> Linked:
    """Return the code to run for ``transformed``.

    Args:
        original: the frame's own code, whose argument and variable names torch holds the result to.
        transformed: what Dynamo made of it.
        decompiled: the source of ``transformed``.
        path: the file that holds ``decompiled.text``.
        first_line: the line of that file at which the text begins.
        rename: the global names that are shown differently (real name -> shown name), as given to
            ``decompile_code``.
        facts: those that it was given.

    Raises:
        CannotLink: the source is not proven and no line of it is known to belong to any instruction.
    """
    try:
        if Fidelity(decompiled.fidelity).value not in PROVEN:
            raise CannotStandIn(f"the source is not proven ({Fidelity(decompiled.fidelity).value})")
        return _recompiled(original, transformed, decompiled, path, first_line, rename or {}, facts)
    except CannotStandIn as why:
        lines = {offset: line + first_line - 1 for offset, line in decompiled.line_map.items()}
        if not lines:  # a code object without any line is worse than one of another file
            raise CannotLink(f"{why}, and no instruction is known to belong to a line") from None
        return Linked(relocate(transformed, lines, path, first_line), False, str(why))


def _recompiled(
    original: CodeType,
    transformed: CodeType,
    decompiled: Decompiled,
    path: str,
    first_line: int,
    rename: Mapping[str, str],
    facts: Facts | None,
) -> Linked:
    tree = decompiled.runs or decompiled.tree
    assert tree is not None
    source = _Source(tree, path, first_line, transformed)
    lacking = ""
    code = None
    values: dict[str, Any] = {}
    if Fidelity(decompiled.fidelity).value != "exact":
        try:
            code = _completed(source, transformed, rename, facts)
            values |= flag_modules()
        except (CannotStandIn, CannotPatch) as why:
            lacking = f"values may live until it returns, and torch's profiler has no marks of it: {why}"
    if code is None:
        code = source.compiled(source.definition())
    code = _with_real_names(code, _real_names(transformed, rename))
    if CONSTANT_PREFIX in decompiled.text or decompiled.runs is not None:
        values |= constant_values(transformed)
    used = global_names(code)
    unknown = [name for name in used if name.startswith(CONSTANT_PREFIX) and name not in values]
    if unknown:
        raise CannotStandIn(f"nobody knows what {unknown[0]} stands for")
    if used & values.keys():
        try:
            code = with_constants(code, values)
        except CannotPatch as why:
            raise CannotStandIn(f"it has constants that source cannot say: {why}") from None
    code = named_like(code, transformed)
    _check_accepted(original, transformed, code)
    return Linked(code, True, lacking)


def _completed(
    source: _Source, transformed: CodeType, rename: Mapping[str, str], facts: Facts | None,
) -> CodeType | None:
    """Return the function, letting go of values and marking graphs for the profiler where Dynamo's code does.

    ``None`` if there is nothing to be added to the text.
    """
    definition = source.definition()
    freed = free_unused(definition, (*transformed.co_cellvars, *transformed.co_freevars))
    marked = add_marks(definition, global_names(transformed))
    if not freed.changed and not marked:
        return None
    code = source.compiled(definition)
    if freed.mark is not None:
        code = with_moves(code, freed.mark)
    if different := first_mismatch(transformed, code, rename, facts):
        raise CannotStandIn(f"not proven ({different})")
    return code


class _Source:
    """The text of a transformed function, to be compiled as it is or with something added.

    Args:
        tree: of the text.
        path: of the file.
        first_line: where the text begins in the file.
        transformed: Dynamo's code.

    Raises:
        CannotStandIn: the text is not one function.
    """

    def __init__(self, tree: ast.Module, path: str, first_line: int, transformed: CodeType) -> None:
        self._tree = tree
        self._path = path
        self._first_line = first_line
        self._transformed = transformed

    def definition(self) -> ast.FunctionDef | ast.AsyncFunctionDef:
        """Return a copy of the function, at its lines in the file."""
        if len(self._tree.body) != 1 or not isinstance(self._tree.body[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
            raise CannotStandIn("the source is not one function definition")
        return copied(self._tree.body[0], self._first_line - 1)

    def compiled(self, definition: ast.FunctionDef | ast.AsyncFunctionDef) -> CodeType:
        """Return the code of a definition, compiled inside a function that owns its free variables.

        The definition is changed.
        """
        _declare_unused(definition, self._transformed)
        outer: ast.FunctionDef | ast.AsyncFunctionDef = definition
        if self._transformed.co_freevars:
            owner = ast.parse("def __depyf_owner__():\n pass").body[0]
            assert isinstance(owner, ast.FunctionDef)
            owned: list[ast.stmt] = [
                ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None)) for name in self._transformed.co_freevars
            ]
            for statement in owned:
                ast.fix_missing_locations(statement)
            owner.body = [*owned, definition]
            outer = owner
        flags = self._transformed.co_flags & CO_FUTURE
        try:
            code = compile(ast.Module([outer], []), self._path, "exec", flags=flags, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise CannotStandIn(f"the source does not compile here ({error})") from None
        for candidate in nested_codes(code):
            if candidate.co_name == definition.name and candidate.co_firstlineno >= definition.lineno:
                return candidate
        raise CannotStandIn("the compiled function was not found")  # pragma: no cover


def _declare_unused(definition: ast.FunctionDef | ast.AsyncFunctionDef, transformed: CodeType) -> None:
    """Name the cell and free variables that the text does not use, where it can never run.

    A frame keeps them even when Dynamo's code has no use for them. ``if 0: lambda: x`` makes the compiler
    reserve a cell for ``x`` and emit nothing.
    """
    names = [*transformed.co_cellvars, *transformed.co_freevars]
    if not names:
        return
    used: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
    body = ast.Tuple(used, ast.Load())
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    never = ast.If(ast.Constant(0), [ast.Expr(ast.Lambda(nothing, body))], [])
    stores: list[ast.stmt] = [  # a cell variable that is only named in it must belong to this function
        ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None))
        for name in transformed.co_cellvars
        if name not in transformed.co_freevars
    ]
    never.body[:0] = stores
    place = definition.body[0]
    for node in nodes_of(never):
        ast.copy_location(node, place)
    definition.body.insert(0, never)
    _move_declarations_first(definition)


def _move_declarations_first(definition: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Put statements behind those that have to come first.

    ``nonlocal x`` has to stand before the first use of ``x``; a docstring before everything.
    """
    declarations = [node for node in definition.body if isinstance(node, (ast.Nonlocal, ast.Global))]
    rest = [node for node in definition.body if not isinstance(node, (ast.Nonlocal, ast.Global))]
    if len(rest) > 1 and isinstance(rest[1], ast.Expr) and isinstance(rest[1].value, ast.Constant):
        docstring = isinstance(rest[1].value.value, str)
        rest[:2] = rest[1::-1] if docstring else rest[:2]
    definition.body = [*declarations, *rest]


def _real_names(transformed: CodeType, rename: Mapping[str, str]) -> dict[str, str]:
    """Shown name -> real name, for the names that this code uses."""
    used = global_names(transformed)
    real: dict[str, str] = {}
    for name, shown in rename.items():
        if name in used and name != shown:
            if shown in used or shown in real:
                raise CannotStandIn(f"{shown} stands for more than one name")
            real[shown] = name
    return real


def _with_real_names(code: CodeType, real: Mapping[str, str]) -> CodeType:
    if not real:
        return code
    consts = tuple(_with_real_names(c, real) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_names=tuple(real.get(name, name) for name in code.co_names), co_consts=consts)


def parameters(code: CodeType) -> tuple[str, ...]:
    """Return all parameter names, ``*args`` and ``**kwargs`` included."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return code.co_varnames[:count]


def _check_accepted(original: CodeType, transformed: CodeType, code: CodeType) -> None:
    """Check what torch asserts of a hook's result, and what its evaluator relies on unasked."""
    for name in ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount"):
        if getattr(code, name) != getattr(transformed, name):
            raise CannotStandIn(f"{name} would change")
    if (code.co_flags ^ transformed.co_flags) & CO_KINDS:
        raise CannotStandIn("it would be another kind of function")
    for owner in (original, transformed):
        if parameters(owner) != parameters(code):
            raise CannotStandIn("the parameters have other names")
        if owner.co_freevars != code.co_freevars:
            raise CannotStandIn("the free variables would have another order")
        if owner.co_cellvars != code.co_cellvars:
            raise CannotStandIn("the cell variables would have another order")


# --- debuggers, coverage tools, trace functions ------------------------------------------------------
# The interpreter calls them between the lines of any function, so they also run inside compiled code, where torch takes
# them for part of the program.
#: Modules of debuggers and coverage tools. (``sys.monitoring`` does not tell whom it calls.)
_TOOLS = ("bdb", "pdb", "pydevd", "debugpy", "IPython", "ipdb", "coverage", "viztracer")
_LIBRARY = os.path.dirname(os.__file__) + os.sep


def of_a_tool(code: CodeType, asking: str) -> bool:
    """Return whether a frame of ``code`` that begins now belongs to what watches the program.

    It does if it is a trace or profile function that is set (in this thread or on a frame), was called by one, or
    stands in a file of a known tool, or was called from there by way of the standard library at most. Functions of
    the standard library count as well: tools that are compiled to C call them and leave no frame.

    Args:
        code: of the frame.
        asking: how the names of the modules begin that are on the stack because they ask this.
    """
    places = tuple(_places())
    if code.co_filename.startswith(places) or _in_library(code.co_filename):
        return True
    running = {code}
    watching = {*_codes(sys.gettrace()), *_codes(sys.getprofile())}
    frame: FrameType | None = sys._getframe(1)
    near = True
    while frame is not None:
        running.add(frame.f_code)
        watching.update(_codes(frame.f_trace))
        if near:
            if frame.f_code.co_filename.startswith(places):
                return True
            near = _on_the_way(frame, asking)
        frame = frame.f_back
    return not watching.isdisjoint(running)


def _on_the_way(frame: FrameType, asking: str) -> bool:
    """Return whether a frame is none of the program's: the standard library's, or ours and torch's that ask this."""
    name = str(frame.f_globals.get("__name__", ""))
    return _in_library(frame.f_code.co_filename) or name.startswith(("depyf.", asking))


def _in_library(path: str) -> bool:
    return path.startswith(_LIBRARY) and "-packages" + os.sep not in path


def _places() -> Iterator[str]:
    """Yield the files of tools that are loaded; of packages, the folders."""
    for name in _TOOLS:
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            yield os.path.dirname(file) + os.sep if hasattr(module, "__path__") else file


def _codes(function: Any) -> Iterator[CodeType]:
    """Yield the code of a function, a method, or an object that is called."""
    calls = type(function).__call__ if callable(function) else None
    for each in (function, calls):
        code = getattr(getattr(each, "__func__", each), "__code__", None)
        if isinstance(code, CodeType):
            yield code
