"""Are two code objects the same program; are two texts the same graph, whatever the names of its values?

The file of a graph has other names than torch's text, no second names of parameters (``l_x_ = L_x_``) and no releases
(``l_x_ = None``). So the values of both are numbered as they are made, and the statements compared with these numbers.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from types import CodeType

from ..bytecode.code import Code
from ..decompiler.proof.exact import same_program

# --- equality of code objects -------------------------------------------------------------------------
CO_NESTED = 0x10  # says that a function was defined inside another one; nothing at run time looks at it
#: What is equal for two graphs, too.
_PLAIN = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_cellvars", "co_freevars", "co_names")


def identical_code(left: CodeType, right: CodeType) -> bool:
    """Return whether both run the same instructions on the same constants and names.

    Only the origin of the code may differ (file, lines, columns, and the function's own name), which only a debugger or
    a traceback shows.
    """
    return left is right or (
        are_alike(left, right) and (left.co_code, left.co_varnames) == (right.co_code, right.co_varnames)
        and bool(same_program(Code.of(left), Code.of(right), ignore_name=True)))


def are_alike(left: CodeType, right: CodeType) -> bool:
    """Return whether all is equal but instructions, constants and the names of variables."""
    return (all(getattr(left, name) == getattr(right, name) for name in _PLAIN)
            and not (left.co_flags ^ right.co_flags) & ~CO_NESTED
            and getattr(left, "co_exceptiontable", b"") == getattr(right, "co_exceptiontable", b""))


# --- parts of a code object --------------------------------------------------------------------------
def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield all code objects inside of it, those further out first."""
    level = [code]
    while level:
        level = [const for each in level for const in each.co_consts if isinstance(const, CodeType)]
        yield from level


def global_names(code: CodeType) -> set[str]:
    """Return the names (of globals, attributes, imports) that it and the code inside of it use."""
    return set(code.co_names).union(*(inner.co_names for inner in nested_codes(code)))


def qualified_name(code: CodeType) -> str:
    """Return ``Class.method`` where this Python knows it, else ``method``."""
    return getattr(code, "co_qualname", code.co_name)


def named_like(code: CodeType, other: CodeType) -> CodeType:
    """Return the code under the name of another one.

    (The name is torch's or the user's to choose; tools look functions up by it.)
    """
    if sys.version_info >= (3, 11):
        return code.replace(co_name=other.co_name, co_qualname=other.co_qualname)
    return code.replace(co_name=other.co_name)


# --- graphs ------------------------------------------------------------------------------------------
def computation(function: ast.FunctionDef) -> list[str]:
    """Return the statements of a graph, which is changed, with its values by number, parameters first.

    ``y += s1;  y_1 = y;  y = None`` adds to a value, which is another one then, names it and releases a name.

    Raises:
        ValueError: it is no straight-line code.
    """
    arguments = function.args
    names = {each.arg: str(number) for number, each in enumerate(
        (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))}
    count, result = len(names), list[str]()
    for statement in function.body:
        stored = [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(
            node.ctx, ast.Store)]
        shown: ast.AST = statement
        match statement:
            case ast.Assign(targets, ast.Constant(None)) if len(stored) == len(targets):
                for name in stored:
                    names.pop(name, None)
                continue
            case ast.Assign([ast.Name(name)], ast.Name(other)) | ast.AnnAssign(ast.Name(name), _, ast.Name(other)):
                names[name] = names.get(other, other)
                continue
            case ast.Assign([ast.Name()], value) | ast.AnnAssign(ast.Name(), _, ast.expr() as value) | ast.Expr(value):
                shown = value
            case ast.Assign() | ast.AugAssign() | ast.Return():
                pass
            case _:
                raise ValueError(f"line {statement.lineno} is in no graph")
        for node in ast.walk(shown):
            if isinstance(node, ast.Name):
                is_new = isinstance(node.ctx, ast.Store) and not isinstance(statement, ast.AugAssign)
                node.id = "" if is_new else names.get(node.id, node.id)
        result.append(ast.dump(shown))
        for name in stored or [""]:  # (what is computed and not named is a value, too)
            count += 1
            names[name] = str(count)
    return result
