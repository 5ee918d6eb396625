"""A code object as its reader knows it: its source, its name, its parameters, its place."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from dataclasses import replace
from types import CodeType

from ..decompiler import Decompiled, decompile_code
from ..decompiler.dynamo.facts import NoFacts
from ..decompiler.emit.layout import WIDTH, laid_out
from ..records.model import CacheEntry, CodeText, Frame, SourceLocation, UserFunction
from ..torch_text.resumes import plain_name
from .torch_private import hooks
from .user_function import Meant


def readable_alone(text: str) -> str:
    """Write ``global`` for ``nonlocal`` in the text of a function, so that it is valid alone.

    A captured variable that is assigned needs ``nonlocal``, which is not valid outside of its function.
    """
    return re.sub(r"(?m)^    nonlocal (.*)$", r"    global \1  # nonlocal: captured from the enclosing function", text)


#: Torch puts an object into the user's globals under a name with its id and the compile id
#: (torch/_dynamo/output_graph.py, ``install_global_by_id``).
_NAME_WITH_ID = re.compile(r"(?P<name>.*[^\W\d_])_\d{9,}_c\w+")


def names_without_ids(code: CodeType) -> dict[str, str]:
    """``{global name with an id that differs from run to run: the name without it}``."""
    taken = {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    shown = {}
    for name in code.co_names:
        match = _NAME_WITH_ID.fullmatch(name)
        if match is not None and match["name"] not in taken:
            shown[name] = match["name"]
            taken.add(match["name"])
    return shown


def code_text(decompiled: Decompiled) -> CodeText:
    """Return a decompilation as it stands in a record."""
    return CodeText(readable_alone(decompiled.text), decompiled.fidelity.value, decompiled.note)


def _laid_out(decompiled: Decompiled) -> Decompiled:
    """Return a decompilation with its text in lines that fit a screen.

    For texts that nothing is linked to: their lines do not count.
    """
    if max(map(len, decompiled.text.splitlines()), default=0) <= WIDTH:
        return decompiled
    text = laid_out(decompiled.tree)
    same = ast.dump(ast.parse(text)) == ast.dump(decompiled.tree)
    return replace(decompiled, text=text) if same else decompiled


def location(code: CodeType) -> SourceLocation | None:
    """Return the place where the source of a code object begins."""
    return SourceLocation(code.co_filename, code.co_firstlineno, code.co_name)


def user_function(meant: Meant) -> UserFunction:
    """Return the function that a frame means, as it stands in a record."""
    return UserFunction(meant.name, location(meant.code), tuple(
        SourceLocation(code.co_filename, code.co_firstlineno, name) for name, code in meant.wrappers))


def make_frame(code: CodeType, name: str, entries: tuple[CacheEntry, ...], meant: Meant) -> Frame:
    """Make the record of a frame's function: its own source text, or decompiled where it has none.

    Args:
        code: what torch compiled.
        meant: the function that the user means by it.
    """
    is_resume = hooks.is_resume(code)
    text, user = "", False
    if not is_resume:
        try:
            lines, start = inspect.getsourcelines(meant.code)
            text = readable_alone(textwrap.dedent("".join(lines)))
            compile(text, code.co_filename, "exec", dont_inherit=True)
            user = True
        except (OSError, TypeError, SyntaxError, ValueError, IndexError):
            text = ""
    if text:
        original = CodeText(text, "exact")
    else:
        decompiled = decompile_code(
            _named_like_its_function(code) if is_resume else meant.code, name=name if name.isidentifier() else None,
            simplify=is_resume, keep_variables=True,
            facts=NoFacts() if is_resume else None)
        original = code_text(_laid_out(decompiled))
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x4) + bool(code.co_flags & 0x8)
    function = user_function(meant)
    return Frame(name, code.co_name, function.location, original, user, tuple(code.co_varnames[:count]),
                 tuple(code.co_freevars), entries, _signature(code), function.name, wrappers=function.wrappers)


def _named_like_its_function(code: CodeType) -> CodeType:
    """Give a resume function the qualified name of the user's function.

    What is defined inside of it has that in its own (``f.<locals>.<lambda>``), and no source under another name could
    say so.
    """
    if sys.version_info < (3, 11):  # names of functions are constants where they are made
        return code
    owner, dot, name = code.co_qualname.rpartition(".")
    return code.replace(co_qualname=f"{owner}{dot}{plain_name(name)}")


def _signature(code: CodeType) -> str:
    """Parameters as they stand in a ``def``."""
    names = list(code.co_varnames)
    parts: list[str] = []
    for index in range(code.co_argcount):
        parts.append(names[index])
        if index + 1 == code.co_posonlyargcount:
            parts.append("/")
    at = code.co_argcount + code.co_kwonlyargcount
    if code.co_flags & 0x4:
        parts.append("*" + names[at])
        at += 1
    elif code.co_kwonlyargcount:
        parts.append("*")
    parts += names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & 0x8:
        parts.append("**" + names[at])
    return ", ".join(parts)
