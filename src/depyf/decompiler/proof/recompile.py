"""The text of a code object, compiled again where it came from: inside its classes and functions."""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Callable, Sequence
from functools import cached_property
from types import CodeType
from typing import Any, cast

from ...bytecode import operations as o
from ...bytecode.code import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_NEWLOCALS, CO_OPTIMIZED, Code
from ...bytecode.operations import Op
from ...bytecode.pyc import load_pyc
from ...guarded import unwarned
from ..emit.text import unparse
from ..names import is_name, is_private

#: What the text is compiled as. The name in the code object comes from strangers: with a warning or an error,
#: Python reads the line from the file of that name, which may be a pipe that never ends.
FILENAME = "<decompiled>"
#: Functions and classes around it that are written; of more, only the innermost matter (private names).
_MAX_PARENTS = 20

#: ``(tree or text, file name) -> the module's code``.
Compiler = Callable[[Any, str], "Code | CodeType"]


def compile_here(tree: ast.Module | str, filename: str, form: str = "exec") -> CodeType:
    """Return the code that the running interpreter compiles a module, or its text, to, without warnings."""
    with unwarned():
        whole: Any = tree
        if form in ("eval", "single"):
            body = (ast.parse(tree) if isinstance(tree, str) else tree).body
            whole = ast.Interactive(body) if form == "single" else ast.Expression(cast("ast.Expr", body[0]).value)
        return compile(whole, filename, "exec" if form == "await" else form, dont_inherit=True,
                       flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if form == "await" else 0)


def form_of(code: Code, ops: Sequence[Op]) -> str:
    """Return how a code object was compiled: ``exec``, ``eval``, ``single``, or ``await`` for a cell of a notebook."""
    if code.name != "<module>" or code.flags & CO_NEWLOCALS:
        return "exec"
    if code.flags & (CO_COROUTINE | CO_ASYNC_GENERATOR):
        return "await"
    if any(op.kind == o.PRINT_EXPR for op in ops):
        return "single"
    returned = [before for before, op in zip(ops, ops[1:]) if op.kind == o.RETURN]
    return "exec" if all(op.kind == o.CONST and op.arg is None for op in returned) else "eval"


def compile_function(
    tree: ast.Module | str, code: Code, constants: bool = False, compiler: Compiler = compile_here
) -> Code:
    """Return the code object that the text of ``code``, or its tree, compiles to.

    ``constants``: it names some (``__constant_0_dtype``), which no class may mangle. ``compiler``: compiles it
    (another interpreter, for code of another version).
    """
    if code.name == "<module>":
        return _view(compiler(tree, FILENAME))
    if not code.freevars and _is_without_classes(code):
        return _view(_function_in(compiler(tree, FILENAME)))  # the code around it changes its qualified name only
    free = [n for n in code.freevars if is_name(n) and n != "__class__"]
    parts = code.qualname.split(".")[:-1][-_MAX_PARENTS:]
    # The functions and classes that contain it, outermost first, with whether each is a function.
    parents = [(name, after == "<locals>") for name, after in zip(parts, [*parts[1:], ""]) if name != "<locals>"]
    if free and not any(is_def for _, is_def in parents) or "__class__" in code.freevars and all(
            is_def for _, is_def in parents):
        parents = [("__depyf_scope__", True)]
        free = [n for n in code.freevars if is_name(n)]
    if not parents:
        return _view(_function_in(compiler(tree, FILENAME)))
    inner: list[ast.stmt] = (ast.parse(tree) if isinstance(tree, str) else tree).body[:1]
    private = constants or _has_private_names(code)
    for name, is_def in reversed(parents):
        if is_def and free:  # (the innermost function has them as locals)
            inner = [ast.parse(" = ".join(free) + " = None").body[0], *inner]
            free = []
        # A class called ``_`` mangles no private names: those of bytecode are mangled where they should be,
        # and Dynamo puts others (``__compiled_fn_1``) into methods.
        shown = name if is_name(name) and (is_def or not private) else "_"
        enclosing: Any = ast.parse(f"{'def' if is_def else 'class'} {shown}(): pass").body[0]
        enclosing.body = inner
        inner = [enclosing]
    compiled = compiler(ast.Module(inner, []), FILENAME)
    for _ in parents:
        compiled = _function_in(compiled)
    return _view(_function_in(compiled))


def _is_without_classes(code: Code) -> bool:
    """Return whether code is of a function that defines no class; a class has its qualified name as a constant."""
    return bool(code.flags & CO_OPTIMIZED) and (not code.holds_code or all(
        _is_without_classes(const) for const in code.consts if isinstance(const, Code)))


def _has_private_names(code: Code) -> bool:
    """Return whether a name would be mangled inside a class (torch's ``__compiled_fn_1`` in a method's code)."""
    return any(
        is_private(name)
        for names in (code.names, code.varnames, code.cellvars, code.freevars) for name in names
    ) or any(_has_private_names(const) for const in code.consts if isinstance(const, Code))


def _function_in(code: Code | CodeType) -> Code | CodeType:
    consts = code.consts if isinstance(code, Code) else code.co_consts
    return [c for c in consts if isinstance(c, (Code, CodeType))][-1]


def _view(code: Code | CodeType) -> Code:
    return code if isinstance(code, Code) else Code.of(code, compiled=True)


# --- Text compiled by another interpreter: what the proof needs for code of another Python version ---
# ``compile`` of the running interpreter says nothing about what Python 3.8 makes of a text. An
# :class:`Interpreter` gives a text to an interpreter of that version, which compiles it and writes it as a
# ``.pyc`` to its standard output; nothing that is compiled is ever executed, and our own reader turns the
# answer into :class:`~depyf.bytecode.code.Code`.
#: Runs in the other interpreter (any version from 3.7 on), with the name of the file and the level of optimisation.
_SERVER = """
import marshal, sys
from importlib.util import MAGIC_NUMBER
try:
    code = compile(sys.stdin.buffer.read(), sys.argv[1], "exec", dont_inherit=True, optimize=int(sys.argv[2]))
except Exception as error:
    sys.exit("%s: %s" % (type(error).__name__, error))
sys.stdout.buffer.write(MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
"""

#: Without site packages, environment variables, the user's folder or warnings.
_OPTIONS = ("-I", "-S", "-E", "-W", "ignore")


class ForeignError(ValueError):
    """The other interpreter could not be run, or does not accept the text."""


class Interpreter:
    """An interpreter, by the path of its executable, started anew for every text, with the seconds that it may take."""

    def __init__(self, path: str | os.PathLike[str], timeout: float = 60.0) -> None:
        self.path = os.fspath(path)
        self.timeout = timeout

    @cached_property
    def version(self) -> tuple[int, int]:
        """``(major, minor)``, as the code objects it writes say."""
        return self.compile("").version

    def compile(self, text: str | bytes, filename: str = "<depyf>", optimize: int = 0) -> Code:
        """Return the module code of a text, or of the bytes of a file; raise :class:`ForeignError` if there is none.

        ``optimize``: as for :func:`compile` (1 drops assertions, 2 docstrings too).
        """
        # (A lone surrogate cannot be in a source file: the compiler is left to say so.)
        given = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        try:
            done = subprocess.run([self.path, *_OPTIONS, "-c", _SERVER, filename, str(optimize)], input=given,
                                  capture_output=True, timeout=self.timeout, check=False)
            if not done.returncode:
                return load_pyc(done.stdout, filename)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise ForeignError(f"{self.path}: {error}") from error
        last_line = " ".join(done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:])
        raise ForeignError(
            last_line if done.returncode == 1 else f"{self.path} ended with {done.returncode} {last_line}".rstrip())

    def compile_tree(self, tree: ast.Module | str, filename: str) -> Code:
        """Return the code that a text, or that of a syntax tree, compiles to."""
        return self.compile(tree if isinstance(tree, str) else unparse(tree), filename)
