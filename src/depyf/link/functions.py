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
import threading
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from .graph_code import are_alike, computation, identical_code, named_like, nested_codes, qualified_name
from .lifetimes import releases_parameters, running_graph

_assigning = threading.Lock()


def link_function(function: Callable[..., Any], text: str, path: str) -> bool:
    """Link a function or bound method to ``text``, all of the file ``path``.

    Returns whether the text has that function; if not, nothing is changed.
    """
    plain = plain_function(function)
    if plain is None:
        return False
    candidates = _compiled(text, path)
    if candidates is None or not _adopt(plain, candidates):
        return False
    remember_lines(path, text, plain)
    return True


def link_graph(function: Callable[..., Any], text: str, path: str) -> bool:
    """Link the ``forward`` of a graph to ``text``, its view in the file ``path``.

    That text then runs, with the releases that it leaves out (:mod:`.lifetimes`), once it is proven to compute what
    torch's text does (:mod:`.graph_code`). Returns whether the text has that graph; if not, nothing is changed.
    """
    plain = plain_function(function)
    if plain is None:
        return False
    running = plain.__code__
    try:
        source = "".join(linecache.getlines(running.co_filename))
        # (Torch's; or, where it is linked to another file, that with releases.)
        texts = (ast.parse(source) if given is None else running_graph(source, "", given)
                 for given in (None, False, True))
        own = next((each for tree in texts for code, each in _functions(tree, "") if identical_code(running, code)),
                   None)
        if own is None:
            return False
        computed = computation(own)
        # (A graph without second names of its parameters releases the parameters themselves.)
        tree = running_graph(text, path, parameters=releases_parameters(own))
        for code, each in _functions(tree, path):
            if code.co_name == running.co_name and are_alike(running, code) and computation(each) == computed:
                _replace(plain, code)
                remember_lines(path, text, plain)
                return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return False


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
    linked = sum(_adopt(function, candidates) for function in functions)
    if linked:
        remember_lines(path, text, module)
    return linked, len(functions)


def plain_function(function: object) -> FunctionType | None:
    """Return the Python function of a method, or a function itself; ``None`` for anything else."""
    if isinstance(function, MethodType):
        function = function.__func__
    return function if isinstance(function, FunctionType) else None


def functions_of(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions whose globals are the module's, also those in its classes, each once."""
    seen: set[int] = set()

    def visit(values: list[Any], depth: int) -> Iterator[FunctionType]:
        for value in values:
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            if isinstance(value, MethodType):
                value = value.__func__
            if id(value) in seen:
                continue
            if isinstance(value, FunctionType):
                if value.__globals__ is module.__dict__:
                    seen.add(id(value))
                    yield value
            elif isinstance(value, property):
                accessors = [a for a in (value.fget, value.fset, value.fdel) if a is not None]
                yield from visit(accessors, depth)
            elif inspect.isclass(value) and depth < 5 and value.__module__ == module.__name__:
                seen.add(id(value))
                yield from visit(list(vars(value).values()), depth + 1)

    yield from visit(list(vars(module).values()), 0)


def _compiled(text: str, path: str) -> list[CodeType] | None:
    """Return all function code in the text, outermost first."""
    try:
        top = compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return list(nested_codes(top))


def _adopt(function: FunctionType, candidates: list[CodeType]) -> bool:
    """Assign a function the candidate that is identical to its code; return whether there is one."""
    running = function.__code__
    same = [code for code in candidates if identical_code(running, code)]
    if len(same) > 1:  # several functions with one body: the name decides
        same = [code for code in same if qualified_name(code) == qualified_name(running)] or same
        same = [code for code in same if code.co_name == running.co_name] or same
    if not same:
        return False
    _replace(function, same[0])
    return True


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
