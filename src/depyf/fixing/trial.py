"""Trials: runs of a program with other texts in the place of some of its files; no file is changed.

Each run is a fork of this process, in which torch is loaded but has done nothing, so it begins as a new Python does.
"""

from __future__ import annotations

import ast
import atexit
import builtins
import contextlib
import functools
import gc
import importlib.machinery
import io
import linecache
import os
import pathlib
import sys
import tempfile
import threading
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import budgets, reading
from ..advice.recompiles import is_compile
from ..recorded_runs import captures_of
from ..records.store import RecordsError
from ..torch_text.parsed import parsed_file
from .outcome import Call, Conditions, Outcome

if TYPE_CHECKING:
    from .generated import Forcing

DUMP, PRINTED, ERRORS = "dump", "stdout", "stderr"
_WATCHED = "__depyf_watched__"
_SHOWN = 2000  #: Of standard error, what is shown of a program that failed.


class Runner:
    """Runs a program, each time in a fork, for at most ``limit`` seconds."""

    def __init__(self, program: str, arguments: Sequence[str] = (), limit: float = 600) -> None:
        self.program, self.arguments, self.limit = program, tuple(arguments), limit

    def __call__(self, texts: Mapping[str, str], conditions: Conditions | None = None) -> Outcome:
        """Run the program with texts, by real path, in the place of its files.

        With the ``conditions`` of a change nothing is compiled, and calls of compiled functions are repeated with other
        inputs, by which it is judged; ``None``: the program runs as it is.
        """
        from .. import link, prepare  # noqa: F401
        from ..capture import forked
        from ..capture.torch_private import private_api

        private_api.BYTECODE_HOOK.present()  # (imports Dynamo once for all forks)
        gc.freeze()  # (what lives now is not gone through in each fork, which would copy its memory)
        status: int | None
        with tempfile.TemporaryDirectory(prefix="depyf_fix_") as folder:
            files = [pathlib.Path(folder, name) for name in (PRINTED, ERRORS)]
            for path in files:
                path.touch()
            try:
                status, calls = forked.in_child(lambda: self._run(texts, folder, conditions), self.limit, judging=False)
            except forked.ChildFailed as failed:
                status, calls = None if isinstance(failed, forked.ChildTooSlow) else 1, []
            capture = None
            with contextlib.suppress(RecordsError, OSError, StopIteration):
                capture = next(iter(captures_of(os.path.join(folder, DUMP)).values()))
            printed, errors = (path.read_text("utf-8", "replace") for path in files)
            return Outcome(capture, calls, printed, status, errors[-_SHOWN:])

    def _run(self, texts: Mapping[str, str], folder: str, conditions: Conditions | None) -> tuple[int, list[Call]]:
        """Run the program in this process; return its exit status and the calls of its compiled functions."""
        import torch

        from ..comparing.state import seed_random_numbers
        from ..prepare import prepare_debug
        from .generated import Forcing, Generator

        def text(path: str) -> str:
            return texts[path] if path in texts else reading.text(path, budgets.CODE)

        forcing = Forcing(conditions or {})
        generator = Generator(forcing) if conditions is not None else None
        calls = generator.calls if generator is not None else []
        seed_random_numbers(0)
        on_call = generator.call if generator is not None else noting(calls)
        setattr(builtins, _WATCHED, watched(lambda function: function, on_call))
        torch.compile = watched(torch.compile, on_call)
        take_texts({**{path: text(path) for path in conditions or ()}, **texts}, forcing)
        sys.argv = [self.program, *self.arguments]
        sys.path.insert(0, os.path.dirname(os.path.abspath(self.program)))
        path = os.path.realpath(self.program)
        module = types.ModuleType("__main__")
        module.__file__ = self.program
        sys.modules["__main__"] = module
        atexit._clear()
        for number, name in ((1, PRINTED), (2, ERRORS)):
            os.dup2(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.stdin, sys.stdout, sys.stderr = open(0), io.TextIOWrapper(open(1, "wb", closefd=False)), open(
            2, "w", buffering=1, closefd=False)
        status = 0
        try:
            with prepare_debug(os.path.join(folder, DUMP), page=False, link=False, files="now"):
                exec(code_of(text(path), path, forcing), vars(module))
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException as error:  # noqa: BLE001  (it is the outcome)
            traceback.print_exc(0 if isinstance(error, SyntaxError) and error.filename == path else None)
            status = 1
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        return status, calls


def take_texts(texts: Mapping[str, str], forcing: Forcing) -> None:
    """Make Python read these texts for their files: when it imports them, and when it shows lines of them."""
    for path, text in texts.items():
        linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, fullname: str) -> types.CodeType | None:
        path = os.path.realpath(self.get_filename(fullname))
        return code_of(texts[path], path, forcing) if path in texts else original(self, fullname)

    setattr(importlib.machinery.SourceFileLoader, "get_code", get_code)  # noqa: B010


def code_of(text: str, path: str, forcing: Forcing) -> types.CodeType:
    """Return the code of a text; calls of functions that are compiled only with the file's own text are watched."""
    tree, before = ast.parse(text, path), parsed_file(reading.text(path, budgets.CODE)) or ast.Module([], [])
    compiled = {node.name for node in ast.walk(before) if isinstance(node, ast.FunctionDef)
                and any(map(is_compile, node.decorator_list))}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in compiled and not node.decorator_list:
            node.decorator_list = [ast.copy_location(ast.Name(_WATCHED, ast.Load()), node)]
    forcing.put_into(tree, path)
    return compile(tree, path, "exec", dont_inherit=True)


# --- calls of compiled functions ------------------------------------------------------------------
#: Of each thread, whether it is in such a call.
_INSIDE = threading.local()
#: Makes a call of a compiled function: its name, the function that was compiled, itself, arguments.
OnCall = Callable[[str, Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


def watched(compiler: Callable[..., Any], on_call: OnCall) -> Callable[..., Any]:
    """Return ``torch.compile`` for whose functions the calls from outside are made by ``on_call``."""
    import torch

    def wrapped(function: Callable[..., Any], model: Any) -> Callable[..., Any]:
        name = getattr(model, "__qualname__", type(model).__qualname__)

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or getattr(_INSIDE, "on", False):
                return function(*args, **kwargs)
            _INSIDE.on = True
            try:
                return on_call(name, model, function, args, kwargs)
            finally:
                _INSIDE.on = False

        return called

    @functools.wraps(compiler)
    def compile_and_watch(model: Any = None, **options: Any) -> Any:
        if model is None:
            return lambda given: compile_and_watch(given, **options)
        compiled = compiler(model, **options)
        if isinstance(compiled, torch.nn.Module):
            compiled.forward = wrapped(compiled.forward, model)
            return compiled
        return wrapped(compiled, model)

    return compile_and_watch


def noting(calls: list[Call]) -> OnCall:
    """Return what makes a call and records its result or exception."""
    from ..comparing.outcome import Outcome, raised
    from ..comparing.reachable import RESULT, Reachable

    def on_call(name: str, model: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        outcome = Outcome()
        calls.append(Call(name, sum(each.function == name for each in calls) + 1, outcome=outcome))
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            outcome.raised = raised(error)
            raise
        walk = Reachable({RESULT: result})
        outcome.states, outcome.left_out = walk.states, walk.left_out
        return result

    return on_call
