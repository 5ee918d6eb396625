"""Code that may run in place of Dynamo's, and that a debugger can show.

Dynamo's bytecode for a frame has no source. Its decompiled source, compiled again, is proven to be the same program,
and that code has lines in a file and a live local for every name in the text. What source cannot express is added
before it runs: constants that are objects (``patches``), and deletes after last uses (``lifetimes``).

Torch checks a hook's result against the user's function (argument names, free variables and cell variables, in order)
and fails if they differ, so that is checked here first. Where they differ, or nothing is proven, Dynamo's own bytecode
runs, with a line table that points at the text.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import CodeType
from typing import TYPE_CHECKING, NamedTuple

from ..bytecode.linetable import relocate
from ..decompiler import Fidelity
from ..decompiler.constants import constant_values
from ..decompiler.dynamo.global_names import CONSTANT_PREFIX
from ..decompiler.nodes import copied, nodes_of
from ..decompiler.proof.parts import first_mismatch
from .graph_code import global_names, named_like, nested_codes
from .lifetimes import free_unused
from .patches import CannotPatch, with_constants, with_moves

if TYPE_CHECKING:
    from ..decompiler import Decompiled
    from ..decompiler.dynamo.facts import Facts

CO_VARARGS = 0x4
CO_VARKEYWORDS = 0x8
CO_KINDS = 0x4 | 0x8 | 0x20 | 0x80 | 0x100 | 0x200  # *args, **kwargs, generators and coroutines
CO_FUTURE = 0x1FE0000  # what ``from __future__ import ...`` sets

PROVEN = ("exact", "equivalent")

Function = ast.FunctionDef | ast.AsyncFunctionDef


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
    original: CodeType, transformed: CodeType, decompiled: Decompiled, path: str, first_line: int = 1,
    rename: Mapping[str, str] | None = None, facts: Facts | None = None,
) -> Linked:
    """Return the code to run for ``transformed``.

    Args:
        original: the frame's own code, with whose argument and variable names torch compares the result.
        first_line: the line of that file at which the text begins.
        rename: shown names of globals by real name, as given to ``decompile_code``.
        facts: those given to ``decompile_code``.

    Raises:
        CannotLink: the source is not proven and no line of it is known to belong to any instruction.
    """
    try:
        if decompiled.fidelity not in PROVEN:
            raise CannotStandIn(f"the source is not proven ({Fidelity(decompiled.fidelity).value})")
        return _recompiled(original, transformed, decompiled, path, first_line, rename or {}, facts)
    except CannotStandIn as why:
        lines = {offset: line + first_line - 1 for offset, line in decompiled.line_map.items()}
        if not lines:  # a code object without any line is worse than one of another file
            raise CannotLink(f"{why}, and no instruction is known to belong to a line") from None
        return Linked(relocate(transformed, lines, path, first_line), False, str(why))


def _recompiled(
    original: CodeType, transformed: CodeType, decompiled: Decompiled, path: str, first_line: int,
    rename: Mapping[str, str], facts: Facts | None,
) -> Linked:
    tree = decompiled.runs or decompiled.tree
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], Function):
        raise CannotStandIn("the source is not one function definition")
    lacking = ""
    code = None
    if decompiled.fidelity != "exact":
        try:
            code = _freed(copied(tree.body[0], first_line - 1), path, transformed, rename, facts)
        except (CannotStandIn, CannotPatch) as why:
            lacking = f"values may live until it returns: {why}"
    if code is None:
        code = _compiled(copied(tree.body[0], first_line - 1), path, transformed)
    code = _with_real_names(code, _real_names(transformed, rename))
    values = constant_values(transformed) if CONSTANT_PREFIX in decompiled.text or decompiled.runs is not None else {}
    used = global_names(code)
    unknown = [name for name in used if name.startswith(CONSTANT_PREFIX) and name not in values]
    if unknown:
        raise CannotStandIn(f"the value of {unknown[0]} is not known")
    if used & values.keys():
        try:
            code = with_constants(code, values)
        except CannotPatch as why:
            raise CannotStandIn(f"it has constants that source cannot say: {why}") from None
    code = named_like(code, transformed)
    _check_accepted(original, transformed, code)
    return Linked(code, True, lacking)


def _freed(
    definition: Function, path: str, transformed: CodeType, rename: Mapping[str, str], facts: Facts | None
) -> CodeType | None:
    """Return the function with deletes; ``None`` if nothing has to be added."""
    freed = free_unused(definition, (*transformed.co_cellvars, *transformed.co_freevars))
    if not freed.changed:
        return None
    code = _compiled(definition, path, transformed)
    if freed.mark is not None:
        code = with_moves(code, freed.mark)
    if different := first_mismatch(transformed, code, rename, facts):
        raise CannotStandIn(f"not proven ({different})")
    return code


def _compiled(definition: Function, path: str, transformed: CodeType) -> CodeType:
    """Return the code of a definition, which is changed, compiled inside a function that owns its free variables."""
    _declare_unused(definition, transformed)
    outer = definition
    if transformed.co_freevars:
        owned = "".join(f" {name} = None\n" for name in transformed.co_freevars)
        owner = ast.parse(f"def __depyf_owner__():\n{owned}").body[0]
        assert isinstance(owner, ast.FunctionDef)
        owner.body.append(definition)
        outer = owner
    try:
        code = compile(ast.Module([outer], []), path, "exec", transformed.co_flags & CO_FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise CannotStandIn(f"the source does not compile here ({error})") from None
    for candidate in nested_codes(code):
        if candidate.co_name == definition.name and candidate.co_firstlineno >= definition.lineno:
            return candidate
    raise CannotStandIn("the compiled function was not found")  # pragma: no cover


def _declare_unused(definition: Function, transformed: CodeType) -> None:
    """Name the cell and free variables that the text does not use, where it can never run.

    A frame has them even if Dynamo's code does not use them. ``if 0: lambda: x`` makes the compiler reserve a cell for
    ``x`` and emit nothing; a cell variable that is only named in it is assigned, so that it belongs to this function.
    """
    names = dict.fromkeys((*transformed.co_cellvars, *transformed.co_freevars))
    if not names:
        return
    stores = "".join(f" {name} = None\n" for name in transformed.co_cellvars if name not in transformed.co_freevars)
    never = ast.parse(f"if 0:\n{stores} lambda: ({', '.join(names)},)").body[0]
    for node in nodes_of(never):
        ast.copy_location(node, definition.body[0])
    # (A docstring comes first, and `nonlocal x` before the first use of `x`.)
    body = definition.body
    docstring = body[:1] if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(
        body[0].value.value, str) else []
    rest = body[len(docstring):]
    declarations = [node for node in rest if isinstance(node, (ast.Nonlocal, ast.Global))]
    others = [node for node in rest if not isinstance(node, (ast.Nonlocal, ast.Global))]
    definition.body = [*docstring, *declarations, never, *others]


def _real_names(transformed: CodeType, rename: Mapping[str, str]) -> dict[str, str]:
    """Shown name -> real name, for the names that this code uses."""
    used = global_names(transformed)
    real: dict[str, str] = {}
    for name, shown in rename.items():
        if name in used and name != shown:
            if shown in used or shown in real:
                raise CannotStandIn(f"{shown} is the shown name of several names")
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
