"""A recorded run, and a code object of it as its reader knows it: its source, its name, its parameters, its place."""

from __future__ import annotations
import __future__

import ast
import dis
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING

from ..guarded import guarded_call, missing
from ..records import store
from ..records.model import CacheEntry, Capture, CodeText, Frame, SourceLocation
from ..torch_text.global_names import is_resume, plain_name

if TYPE_CHECKING:
    from ..bytecode.code import Code
    from ..decompiler import Decompiled


#: The class in the name of a private attribute, ``_Net__rate``.
_MANGLED = re.compile(r"^_\w*?(?=__\w)")
_SPACE = re.compile(r"\\n|\s")
#: Operations of which the argument is a part of the meaning.
_COMPUTING = frozenset(op for name, op in dis.opmap.items() if name.startswith((
    "BINARY_", "COMPARE_", "CONTAINS_", "INPLACE_", "IS_", "UNARY_", "LOAD_SMALL_INT")))


def readable_alone(text: str) -> str:
    """Write ``global`` for ``nonlocal`` in the text of a function, so that it is valid alone."""
    return re.sub(r"(?m)^    nonlocal (.*)$", r"    global \1  # nonlocal: captured from the enclosing function", text)


def code_text(decompiled: Decompiled) -> CodeText:
    """Return the record of a decompilation."""
    return CodeText(readable_alone(decompiled.text), decompiled.fidelity.value, decompiled.note)


def make_frame(
    code: Code, name: str, entries: tuple[CacheEntry, ...], title: str, meant: Code,
    wrappers: Iterable[tuple[str, Code]],
) -> Frame:
    """Make the record of a frame's function: its own source text, or decompiled where it has none.

    Args:
        code: what torch compiled.
        name: by which texts call it.
        title: the user's words for the function that the user means by it, whose code is ``meant``.
        wrappers: ``(name, code)`` of those that is called through, outermost first. The first is what torch compiled.
    """
    resumes = is_resume(code.name)
    text = "" if resumes else source_text(meant)
    if text:
        original = CodeText(text, "exact")
    else:
        from ..decompiler import decompile_code
        from ..decompiler.dynamo.facts import Facts
        from ..decompiler.emit.layout import with_short_lines

        decompiled = decompile_code(
            _named_like_its_function(code) if resumes else meant, name=name if name.isidentifier() else None,
            simplify=resumes, keep_variables=True,
            facts=Facts() if resumes else None)
        original = code_text(with_short_lines(decompiled))
    location = SourceLocation(meant.filename, meant.firstlineno, meant.name)
    called_through = tuple(SourceLocation(each.filename, each.firstlineno, called) for called, each in wrappers)
    return Frame(name, code.name, location, original, bool(text), code.arguments, code.freevars, entries,
                 _signature(code), title, wrappers=called_through)


def source_text(code: Code) -> str:
    """Return the user's text of a function, valid alone; ``""`` where there is none."""
    # What finds the end of a function in a file asks a code object for no more than these.
    place = compile("", code.filename, "exec").replace(co_firstlineno=code.firstlineno, co_name=code.name)
    try:
        lines, _ = inspect.getsourcelines(place)
        text = readable_alone(textwrap.dedent("".join(lines)))
        future = code.flags & __future__.annotations.compiler_flag
        # (From 3.13 on the code of a class has the number of its line.)
        compiled = compile("\n" * (code.firstlineno - 1) + text, code.filename, "exec", future, dont_inherit=True)
    except (OSError, TypeError, SyntaxError, ValueError, IndexError):
        return ""
    return text if code.version != sys.version_info[:2] or _contains(compiled, code) else ""


def _contains(module: CodeType, code: Code) -> bool:
    """Return whether a compiled text has the code of a function: its file may have changed since it was imported.

    (Of a test, pytest rewrites the assertions.)
    """
    from ..bytecode.code import Code

    facts, codes = _facts(code), [module]
    for each in codes:
        codes += [const for const in each.co_consts if isinstance(const, CodeType)]
    return any(name.startswith("@py") for name in facts[0]) or any(
        _facts(Code.of(each, compiled=True)) == facts for each in codes if each.co_name == code.name)


def _facts(code: Code) -> tuple[set[str], list[str], list[tuple[int, int]]]:
    """Return the names, constants and operations in the code of a function, as they are where its text is alone.

    There, the enclosing function and class are not, by which variables are cells and private attributes have long
    names, and lines of texts are less indented.
    """
    names = {_MANGLED.sub("", name) for name in (*code.names, *code.varnames, *code.cellvars, *code.freevars)}
    constants, operations = [], [pair for pair in zip(code.bytecode[::2], code.bytecode[1::2]) if pair[0] in _COMPUTING]
    for each in code.consts:
        if isinstance(each, type(code)):
            inner = _facts(each)
            names |= inner[0]
            constants += inner[1]
            operations += inner[2]
        elif each != code.name and "<locals>" not in str(each):  # (the qualified name of a class)
            constants.append(_SPACE.sub("", repr(sorted(map(repr, each)) if isinstance(each, frozenset) else each)))
    return names - {"__class__"}, constants, operations


def _named_like_its_function(code: Code) -> Code:
    """Give a resume function the qualified name of the user's function.

    What is defined in it has that in its own (``f.<locals>.<lambda>``).
    """
    if code.version < (3, 11):  # names of functions are constants where they are made
        return code
    owner, dot, name = code.qualname.rpartition(".")
    return replace(code, qualname=f"{owner}{dot}{plain_name(name)}")


def _signature(code: Code) -> str:
    """Return the parameters as a ``def`` has them."""
    names = [ast.arg(name) for name in code.varnames]
    named = code.argcount + code.kwonlyargcount
    others = iter(names[named:])
    return ast.unparse(ast.arguments(
        names[: code.posonlyargcount], names[code.posonlyargcount : code.argcount],
        next(others) if code.flags & inspect.CO_VARARGS else None, names[code.argcount : named],
        [None] * code.kwonlyargcount, next(others) if code.flags & inspect.CO_VARKEYWORDS else None, []))


# --- the records of a run ----------------------------------------------------------------------------
def read_records(path: str) -> Capture:
    """Read the records of a file, or of the directory of a run; texts that are not written yet are written.

    Raises:
        RecordsError: as :func:`depyf.records.store.read`.
    """
    capture = store.read(path)
    if capture.unwritten is None:
        return capture
    from .functions import finished  # (the decompiler: few need it)

    return finished(capture, lambda action, otherwise: guarded_call(action, otherwise, missing("part of the run")))
