"""What becomes of the inputs of cases.

How a case is read depends on its parts:

* ``[in]`` alone is a module, which is compiled and decompiled; with ``[of outer.<locals>.inner]`` only the function of
  that name is.
* ``[in]`` and ``[stripped]``: the same, of code without line tables.
* ``[in]`` and ``[run]``: a module in which ``torch`` and ``nn`` are known. ``[run]`` calls what ``compiled(...)``
  (``torch.compile`` with ``backend="eager"``) makes of its functions. The text is, of each function that torch compiled,
  its transformed code, version by version, then its resume functions and their transformed code. Numbers that torch gives
  out in one process are counted from 1 on.
* ``[in]`` and ``[live]``: a function ``f`` as Dynamo writes it, read with what is known of live objects. ``[live]`` is run
  before and binds its parameters and the globals that it reads.
* ``[pyc]``: the path of a ``.pyc`` below ``tests``, and ``:`` with the name of a code object in it.

Cases with ``[run]`` and ``[live]`` need torch.
"""

from __future__ import annotations

import collections
import functools
import itertools
import linecache
import pathlib
import re
import sys
import tempfile
import types
from types import CodeType
from unittest import mock

from case_files import HERE, VERSION, Case

from depyf.bytecode.code import Code
from depyf.bytecode.pyc import read_pyc
from depyf.decompiler import decompile_code, passes

#: Numbers that torch counts up in a process, and the offset of a resume function.
_NUMBERS = [re.compile(rf"(?<={name}_)\d+(?:_\d+)?") for name in ("__compiled_fn", "__resume_at", "___context_manager")]


def kind(case: Case) -> str:
    """Return what a case is read as: ``"run"``, ``"live"``, ``"pyc"``, or ``"in"``."""
    kinds = {part.kind for part in case.parts}
    return next((each for each in ("run", "live", "pyc") if each in kinds), "in")


def can_run(case: Case) -> bool:
    """Return whether a case can be tried here: what torch writes is known for one version."""
    if kind(case) not in ("run", "live"):
        return True
    try:
        import torch
    except ImportError:
        return False
    return torch.__version__.startswith("2.13.") and VERSION == (3, 11)


def decompiled(case: Case) -> tuple[str, str]:
    """Return the text of a case, and its fidelity (the lowest, of several)."""
    return {"run": _compiled_by_torch, "live": _as_dynamo_writes, "pyc": _of_pyc, "in": _of_source}[kind(case)](case)


def without(name: str, case: Case) -> str:
    """Return what is read of a case without a pass: the fidelity of another text, or the error; empty if the same."""
    groups = {group: [each for each in getattr(passes, group) if each.name != name]
              for group in ("SIMPLIFY", "RESTRUCTURE", "STRUCTURE", "FINISH", "USER_WORDS")}
    with mock.patch.multiple(passes, **groups):
        try:
            text, fidelity = decompiled(case)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "" if text.strip("\n") == case.expected() else fidelity


# --- source ----------------------------------------------------------------------------------------
def _of_source(case: Case) -> tuple[str, str]:
    code = compile(case["in"], f"{case.name}.py", "exec", dont_inherit=True)
    if any(part.kind == "stripped" for part in case.parts):
        code = _stripped(code)
    for part in filter(None, case.argument("of").split(".")):
        if part != "<locals>":
            (code,) = [each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == part]
    found = decompile_code(code)
    return found.text, found.fidelity.value


def _stripped(code: CodeType) -> CodeType:
    """Return a code object, with those in it, without a line table."""
    consts = tuple(_stripped(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=consts)


def _of_pyc(case: Case) -> tuple[str, str]:
    path, _, name = case["pyc"].partition(":")
    code = read_pyc(pathlib.Path(HERE.parent, path))
    for part in filter(None, name.split(".")):
        (code,) = [each for each in code.consts if isinstance(each, Code) and each.name == part]
    found = decompile_code(code)
    return found.text, found.fidelity.value


# --- torch -----------------------------------------------------------------------------------------
def _program(case: Case, part: str, names: dict) -> None:
    """Run a part of a case as a file of its own, whose lines torch and depyf can read."""
    name = f"/cases/{case.name}.{part}.py"
    text = case[part] + "\n"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    exec(compile(text, name, "exec", dont_inherit=True), names)


def _compiled_by_torch(case: Case) -> tuple[str, str]:
    import torch

    import depyf
    from depyf.records import store

    torch._dynamo.reset()
    module = sys.modules["cases_program"] = types.ModuleType("cases_program")
    names = vars(module)
    names.update(torch=torch, nn=torch.nn, compiled=functools.partial(torch.compile, backend="eager"))
    # (How long numbers are decides where lines are broken.)
    from_zero = mock.patch.object(torch._dynamo.bytecode_transformation, "_unique_id_counter", itertools.count())
    with from_zero, tempfile.TemporaryDirectory() as folder:
        _program(case, "in", names)
        with torch.enable_grad(), depyf.prepare_debug(folder) as on:
            _program(case, "run", names)
        capture = store.read(on.path)
    texts = []
    for function in capture.functions:
        for frame in function.frames:
            if not frame.original_is_user_text:
                texts.append(frame.original)
            texts += [entry.transformed.source for entry in frame.entries if entry.transformed is not None]
    lowest = [each for each in ("exact", "equivalent", "fallback", "unproven") if each in {t.fidelity for t in texts}]
    return _counted("\n\n".join(text.text.strip("\n") for text in texts)), lowest[-1] if lowest else "nothing compiled"


def _counted(text: str) -> str:
    """Count graphs, resume functions and contexts from 1 on."""
    for pattern in _NUMBERS:
        numbers: dict[str, str] = {}
        text = pattern.sub(lambda found: numbers.setdefault(found[0], str(len(numbers) + 1)), text)
    return text


def _as_dynamo_writes(case: Case) -> tuple[str, str]:
    import torch

    from depyf.capture.fact_snapshot import snapshot
    from depyf.decompiler.dynamo.facts import Facts

    names: dict = {
        "torch": torch, "nn": torch.nn, "OrderedDict": collections.OrderedDict, "__compiled_fn_1": lambda *args: args,
        "__import_torch_dot__dynamo_dot_utils": torch._dynamo.utils}
    _program(case, "live", names)
    _program(case, "in", names)
    code = names["f"].__code__
    parameters = code.co_varnames[: code.co_argcount + bool(code.co_flags & 8)]
    facts = Facts(snapshot(code, {name: names[name] for name in parameters}, names))
    found = decompile_code(code, simplify=True, facts=facts)
    return found.text, found.fidelity.value
