"""Running functions linked to the text that shows them.

Torch compiles a graph's ``forward`` and the functions of a generated module from text that is in no file. The dumped
file has the same text with comments, a graph's with other names and layout. Compiling the dump gives the same
instructions with other line numbers; where that is proven (:func:`identical_code`, :func:`computation`), the function
is assigned the new code object. It remains the same object, and computes the same.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..bytecode.code import Code
from ..decompiler.proof.exact import same_program

_assigning = threading.Lock()


def link_function(function: Callable[..., Any], text: str, path: str) -> bool:
    """Link a function or bound method to ``text``, all of the file ``path``: a graph's ``forward`` to its view.

    The view runs with the releases that it leaves out (:mod:`.lifetimes`), once it is proven to compute what torch's
    text does (:func:`computation`). Returns whether the text has that function; if not, nothing is changed.
    """
    plain = plain_function(function)
    if plain is None:
        return False
    code = _as_graph(plain.__code__, text, path) or _identical(plain.__code__, _compiled(text, path) or ())
    if code is not None:
        _replace(plain, code)
        remember_lines(path, text, plain)
    return code is not None


def _as_graph(running: CodeType, text: str, path: str) -> CodeType | None:
    """Return the code of the view of the graph that runs; ``None`` where the text has none, or it is no graph."""
    from .lifetimes import releases_parameters, running_graph  # (of the decompiler: others compare code alone)

    try:
        source = "".join(linecache.getlines(running.co_filename))
        # (Torch's; or, where it is linked to another file, that with releases.)
        texts = (ast.parse(source) if given is None else running_graph(source, "", given)
                 for given in (None, False, True))
        own = next((each for tree in texts for code, each in _functions(tree, "") if identical_code(running, code)),
                   None)
        if own is None:
            return None
        computed = computation(own)
        # (A graph without second names of its parameters releases the parameters themselves.)
        tree = running_graph(text, path, parameters=releases_parameters(own))
        return next((code for code, each in _functions(tree, path) if code.co_name == running.co_name
                     and are_alike(running, code) and computation(each) == computed), None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _functions(tree: ast.Module, path: str) -> Iterator[tuple[CodeType, ast.FunctionDef]]:
    """Yield the functions of a text with their code."""
    places = {(node.name, node.lineno): node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for code in nested_codes(compile(tree, path, "exec", dont_inherit=True)):
        if (code.co_name, code.co_firstlineno) in places:
            yield code, places[code.co_name, code.co_firstlineno]


def link_module(module: ModuleType, text: str, path: str) -> tuple[int, int]:
    """Link every function that ``module`` defines, also in classes, to ``text``.

    Returns the numbers of functions that are linked, and of all.
    """
    functions = list(functions_of(module))
    candidates = _compiled(text, path)
    if candidates is None:
        return 0, len(functions)
    linked = 0
    for function in functions:
        if (code := _identical(function.__code__, candidates)) is not None:
            _replace(function, code)
            linked += 1
    if linked:
        remember_lines(path, text, module)
    return linked, len(functions)


def plain_function(function: object) -> FunctionType | None:
    """Return the Python function of a method, or a function itself; ``None`` for anything else."""
    function = getattr(function, "__func__", function)
    return function if isinstance(function, FunctionType) else None


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """Return the functions whose globals are the module's, also those in its classes, each once."""
    spaces = [module, *(value for value in vars(module).values()
                        if inspect.isclass(value) and value.__module__ == module.__name__)]
    values = {id(value): value for space in spaces for value in vars(space).values()}
    return (value for value in values.values()
            if isinstance(value, FunctionType) and value.__globals__ is module.__dict__)


def _compiled(text: str, path: str) -> list[CodeType] | None:
    """Return all function code in the text, outermost first."""
    try:
        top = compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return list(nested_codes(top))


def _identical(running: CodeType, candidates: Iterable[CodeType]) -> CodeType | None:
    """Return the candidate that is identical to a code object; of several functions with one body the name decides."""
    same = [code for code in candidates if identical_code(running, code)]
    name = running.co_name, qualified_name(running)
    return max(same, key=lambda code: (qualified_name(code) == name[1], code.co_name == name[0]), default=None)


def _replace(function: FunctionType, code: CodeType) -> None:
    running = function.__code__
    with _assigning:
        function.__code__ = named_like(code, running).replace(co_flags=running.co_flags)


# --- Tracebacks and debuggers find the dumped text, even when the file is gone -----------------------
def remember_lines(path: str, text: str, owner: Any) -> None:
    """Make ``linecache`` answer for ``path`` with ``text`` as long as ``owner``, which runs with these lines, lives.

    The entry has no time stamp, so ``linecache.checkcache`` leaves it alone: tracebacks show the lines that the code
    was compiled from, whatever happens to the file. After ``linecache.clearcache()`` Python reads the file.
    """
    entry = (len(text), None, text.splitlines(keepends=True), path)
    linecache.cache[path] = entry
    weakref.finalize(owner, _forget, path, entry).atexit = False


def _forget(path: str, entry: Any) -> None:
    if linecache.cache.get(path) is entry:
        del linecache.cache[path]


# --- Are two code objects the same program? -----------------------------------------------------------
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


# --- Are two texts the same graph, whatever the names of its values? ----------------------------------
# The file of a graph has other names than torch's text, no second names of parameters (``l_x_ = L_x_``) and no
# releases (``l_x_ = None``). So the values of both are numbered as they are made, and the statements are compared with
# these numbers.
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
