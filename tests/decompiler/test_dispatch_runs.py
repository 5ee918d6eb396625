"""The fallback is right by construction: here it is run, every code object of a program as a dispatch loop."""

from __future__ import annotations

import asyncio
import doctest
import importlib
import inspect
import sys
import types
import warnings
from types import CodeType

import dispatched
import pytest


@pytest.mark.parametrize("name", [n for n in dispatched.PROGRAMS if sys.version_info >= dispatched.SINCE.get(n, (3, 10))])
def test_programs(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(dispatched.PROGRAMS[name], f"<{name}>", "exec", dont_inherit=True)
        again = dispatched.as_loops(code)

    def result(of: CodeType) -> object:
        module = types.ModuleType("program")
        sys.modules["program"] = module
        exec(dispatched.COMMON, module.__dict__)
        exec(of, module.__dict__)
        return module.run()

    try:
        assert result(again) == result(code)
    finally:
        sys.modules.pop("program", None)
        asyncio.set_event_loop(None)


#: Pure modules whose documentation says what they do (and tests it).
MODULES = ["collections", "fractions", "functools", "heapq", "statistics", "json", "json.encoder", "enum", "ast"]


@pytest.mark.parametrize("name", MODULES)
def test_modules_of_the_library(name: str) -> None:
    """A whole module as loops passes as many of its own examples as before, and has the same names."""
    real = importlib.import_module(name)
    code = compile(inspect.getsource(real), name, "exec", dont_inherit=True)
    before, after = (examples(real, of) for of in (code, dispatched.as_loops(code)))
    assert before == after


def examples(real: types.ModuleType, code: CodeType) -> tuple[int, int, list[str]]:
    module = types.ModuleType("library_as_loops")
    module.__dict__.update(__package__=real.__package__, __spec__=real.__spec__, __file__=real.__file__)
    sys.modules[module.__name__] = module
    try:
        exec(code, module.__dict__)
        names = [n for n in vars(module) if n != "__warningregistry__"]
        runner = doctest.DocTestRunner(verbose=False)
        for test in doctest.DocTestFinder().find(module, module.__name__, module=False, globs=dict(vars(module))):
            runner.run(test, out=lambda text: None)
    finally:
        del sys.modules[module.__name__]
    return runner.tries, runner.failures, names
