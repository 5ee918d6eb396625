"""Small programs, one behaviour of Dynamo each: the tool changes nothing, and all it shows is proven.

``DEPYF_TEST_BACKENDS="eager aot_eager inductor"`` runs them on other backends (``make zoo`` runs all three).
"""

import ast
import builtins
import contextlib
import dataclasses
import io
import os
import random
import re
import warnings

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from programs import PROGRAMS, Compiled

import depyf
from depyf.capture.torch_private import cache_entries

BACKENDS = os.environ.get("DEPYF_TEST_BACKENDS", "eager").split()


def equal(left, right):
    """The same types all the way down, and the same bits in tensors, arrays and floats."""
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        return (left.dtype == right.dtype and left.shape == right.shape and left.stride() == right.stride()
                and left.requires_grad == right.requires_grad and bits(left) == bits(right))
    if isinstance(left, (numpy.ndarray, numpy.generic)):
        return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict):
        return equal(list(left.items()), list(right.items()))
    if isinstance(left, (set, frozenset)):
        return len(left) == len(right) and equal(sorted(left, key=repr), sorted(right, key=repr))
    if dataclasses.is_dataclass(left):
        return equal(vars(left), vars(right))
    if isinstance(left, (float, complex)):
        return repr(left) == repr(right)
    return left == right


def bits(tensor):
    return tensor.detach().resolve_conj().contiguous().view(-1).view(torch.uint8).tolist()


def run(function, backend):
    """Result (or exception), what was printed, and where it left the random numbers."""
    torch._dynamo.reset()
    for seed in (torch.manual_seed, numpy.random.seed, random.seed):
        seed(0)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = function(Compiled(backend))
        except Exception as error:  # compared like a result
            result = (type(error).__name__, error.args)
    return result, printed.getvalue(), (torch.rand(2), numpy.random.rand(), random.random())


def texts(directory):
    """Names and contents of all that was written."""
    for entry in sorted(os.listdir(directory)):
        with open(os.path.join(directory, entry), encoding="utf-8") as file:
            yield entry, file.read()


def unknown_names(text):
    """Names that the dispatching functions (``compiled_...``) of a full_code file use and nothing defines."""
    module = ast.parse(text)
    known = {node.name for node in module.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    unknown = set()
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("compiled_"):
            names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
            local = {n.id for n in names if isinstance(n.ctx, ast.Store)} | {
                n.arg for n in ast.walk(node.args) if isinstance(n, ast.arg)}
            unknown |= {n.id for n in names} - known - local - set(dir(builtins))
    return unknown


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_changes_and_all_is_proven(name, backend, tmp_path, monkeypatch):
    monkeypatch.setattr(cache_entries, "can_replace", lambda: False)  # linked code runs, as it does inside debug()
    plain = run(PROGRAMS[name], backend)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with depyf.prepare_debug(str(tmp_path / "d")) as on:
            watched = run(PROGRAMS[name], backend)
    assert equal(plain, watched), f"without depyf: {plain}\nwith depyf: {watched}"
    assert not [str(w.message) for w in warned if "depyf" in str(w.message)]
    transformed, problems = 0, []
    for entry, text in texts(on.path):
        if entry.endswith(".py"):
            code = compile(text, entry, "exec")
            if entry.startswith("full_code_for_"):
                exec(code, {"__name__": "dump"})
                if unknown := unknown_names(text):
                    problems.append(f"{entry} uses names that it does not define: {sorted(unknown)}")
        if entry.startswith("__transformed_code_"):
            transformed += 1
            if not re.search(r"^# fidelity: (exact|equivalent)", text, re.M):
                problems.append(f"{entry} is not proven:\n{text.partition('def ')[0].strip()}")
        if entry == "notes.txt" and "internal error" in text:
            problems.append(f"{entry}:\n{text}")
    # What torch skips is a matter of its version.
    if bool(transformed) == PROGRAMS[name].skipped_by_torch and torch.__version__.startswith("2.13."):
        problems.append(f"{transformed} transformed functions; skipped_by_torch is {PROGRAMS[name].skipped_by_torch}")
    assert not problems, "\n\n".join(["", *problems])
