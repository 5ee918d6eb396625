"""Exceptions in what is compiled: those that leave it, those that it makes, and those that only tracing meets.

    causal_mask = attention_mask[:, None]    ->  pass `attention_mask` at each call: it is `None` here
    if n > 2: raise ValueError('n')          ->  test for it where the function is called
    super().__init__(code, detail)           ->  self.args = (code, detail)

Torch gives up a function that an exception leaves while it is traced.
"""

from __future__ import annotations

import ast
import builtins
import re

from .branches import unparsed, with_lines
from .model import Advice
from .source import Site

_OF_NONE = re.compile(r"'NoneType' object (?:is not (?:subscriptable|iterable|callable)|has no attribute)")
#: Torch's words for an exception that leaves the function, ``raised exception TypeError("...")``.
_RAISED = re.compile(r"raised exception (?P<kind>\w+)\(")


def on_none(site: Site) -> Advice | None:
    """Return the advice on an argument that is ``None`` where a line takes a part of it.

    Plain Python need not come to that line: libraries make a mask only where they are not compiled.
    """
    name = _taken_apart(site) if _OF_NONE.search(site.broken.context) else ""
    if not name or site.function is not None and name not in _parameters(site.function):
        return None
    return Advice("no argument", f"pass `{name}` at each call: it is `None` here", "the line fails for `None`, and "
                  "torch gives up a function in which an exception comes", "none", elsewhere=True)


def _taken_apart(site: Site) -> str:
    """Return the only name of a line that a part is taken of."""
    if site.statement is None:
        return ""
    names = {node.value.id for node in ast.walk(site.statement)
             if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.value, ast.Name)}
    return names.pop() if len(names) == 1 else ""


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    given = function.args
    return {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def on_raise(site: Site) -> Advice | None:
    """Return the advice on an exception that leaves the compiled function."""
    if site.function is None:
        return None
    name = site.function.name
    if isinstance(site.statement, (ast.Raise, ast.Assert)):
        return Advice(
            "raise", f"test for it where `{name}` is called, before the call",
            "a graph cannot raise; a call that does not come to this line is compiled whole",
            "none, as long as the test needs nothing that the function computes")
    raised = _RAISED.search(site.broken.context)
    if raised is None or site.statement is None:
        return None
    return Advice(
        "raise", f"if this line raises {raised['kind']} in plain Python, too: keep such calls from `{name}`, test for "
        "them before the call; if it does not: it works with what has no value while torch traces (as an address, or "
        "the name of a tensor's class), so do it before the call",
        "torch gives up a function in which an exception comes that it does not catch",
        "none, as long as the test needs nothing that the function computes")


def on_failing(site: Site) -> Advice | None:
    """Return the advice on an operation of torch that fails for the sizes or dtypes of its arguments."""
    if site.statement is None or re.search(r"\bcustom_op|call_function (?!<built-in|aten\.|prims\.|<function)",
                                           site.broken.explanation):
        return None
    return Advice(
        "fails", "mend the line, or test for such input before the call: it fails in plain Python, too",
        "torch ran it on tensors without values, of the same sizes and dtypes, and met this error", "none")


def on_exception_made(site: Site) -> Advice | None:
    """Return the advice on the ``__init__`` of the program's own exception: torch traces all but its ``super()``."""
    match site.statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Call(ast.Name("super"), [], []), "__init__"), arguments, [])) if (
                site.function is not None and site.function.args.args and _is_exception(site)
                and not any(isinstance(each, ast.Starred) for each in arguments)):
            owner = site.function.args.args[0].arg
            target = ast.Attribute(ast.Name(owner, ast.Load()), "args", ast.Store())
            line = unparsed(ast.Assign([target], ast.Tuple(list(arguments), ast.Load())), site.text)
            return with_lines(site, "exception", [line], "torch traces the setting of `args`, but not "
                              "`super().__init__` of an exception", "none: `args` is all that it sets")
    return None


def _is_exception(site: Site) -> bool:
    """Return whether the statement stands in a class right below one of Python's plain exceptions."""
    for node in ast.walk(site.module) if site.module is not None else ():
        if isinstance(node, ast.ClassDef) and site.function in node.body:
            kinds = [getattr(builtins, base.id, None) for base in node.bases if isinstance(base, ast.Name)]
            return len(kinds) == len(node.bases) == 1 and kinds[0] is not None and _sets_args_only(kinds[0])
    return False


def _sets_args_only(kind: object) -> bool:
    """Return whether an exception of Python's keeps its arguments in ``args`` and nowhere else."""
    return isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(
        kind, (OSError, SyntaxError, ImportError, UnicodeError, StopIteration, AttributeError, NameError))
