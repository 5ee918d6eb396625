"""One run of a program, with other texts in the place of some of its files; no file is changed.

    python -m depyf.fixing.trial SPEC      SPEC: JSON with program, arguments, texts, folder, conditions

It leaves in the folder: the dump, the calls of compiled functions with their results and the generated calls
(``calls.pkl``), what was printed (``stdout``).
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.machinery
import json
import linecache
import os
import pickle
import random
import sys
import threading
import types
from collections.abc import Callable, Mapping
from typing import Any

from .. import budgets, reading
from .generated import Generator

DUMP, CALLS, PRINTED = "dump", "calls.pkl", "stdout"


@dataclasses.dataclass(frozen=True)
class Spec:
    """A run to be made.

    Attributes:
        program: its file.
        arguments: what follows in ``sys.argv``.
        texts: by the real path of a file, the text to take for it.
        folder: where what is left goes.
        conditions: of the change that is judged (``forced.Conditions``): nothing is compiled, and calls of what would
            be are repeated with other inputs; ``None``: the program runs as it is.
    """

    program: str
    arguments: tuple[str, ...]
    texts: Mapping[str, str]
    folder: str
    conditions: Mapping[str, Any] | None = None

    def text(self, path: str) -> str:
        """Return the text of a file in this run."""
        return self.texts[path] if path in self.texts else reading.text(path, budgets.CODE)


def run(spec: Spec) -> None:
    """Run the program in this process, which is for it alone."""
    import torch

    from ..prepare import prepare_debug

    observed: list[tuple[str, Any]] = []
    generator = None
    if spec.conditions is not None:
        generator = Generator({path: spec.text(path) for path in spec.conditions}, spec.conditions)
    file = os.open(os.path.join(spec.folder, PRINTED), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 1)
    os.close(file)
    take_texts(spec.texts)
    torch.manual_seed(0)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    torch.compile = watched(torch.compile, generator.call if generator is not None else noting(observed))
    sys.argv = [spec.program, *spec.arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(spec.program)))
    path = os.path.realpath(spec.program)
    module = types.ModuleType("__main__")
    module.__file__ = spec.program
    sys.modules["__main__"] = module
    try:
        with prepare_debug(os.path.join(spec.folder, DUMP), page=False, link=False, files="now"):
            exec(compile(spec.text(path), path, "exec", dont_inherit=True), vars(module))
    finally:
        sys.stdout.flush()
        calls = generator.finished() if generator is not None else []
        with open(os.path.join(spec.folder, CALLS), "wb") as data:
            pickle.dump((observed, calls), data)


def take_texts(texts: Mapping[str, str]) -> None:
    """Make Python read these texts for their files: when it imports them, and when it shows lines of them."""
    for path, text in texts.items():
        linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, fullname: str) -> types.CodeType | None:
        path = self.get_filename(fullname)
        text = texts.get(os.path.realpath(path))
        return original(self, fullname) if text is None else compile(text, path, "exec", dont_inherit=True)

    setattr(importlib.machinery.SourceFileLoader, "get_code", get_code)  # noqa: B010


# --- calls of compiled functions ------------------------------------------------------------------
#: Makes a call of a compiled function: its name, what it was made of, itself, arguments.
OnCall = Callable[[str, Any, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


def watched(compiler: Callable[..., Any], on_call: OnCall) -> Callable[..., Any]:
    """Return ``torch.compile`` for whose functions the calls from outside are made by ``on_call``."""
    import torch

    inside = threading.local()

    def wrapped(function: Callable[..., Any], model: Any) -> Callable[..., Any]:
        name = getattr(model, "__qualname__", type(model).__qualname__)

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or getattr(inside, "on", False):
                return function(*args, **kwargs)
            inside.on = True
            try:
                return on_call(name, model, function, args, kwargs)
            finally:
                inside.on = False

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


def noting(observed: list[tuple[str, Any]]) -> OnCall:
    """Return what makes a call and notes its result or exception."""
    from ..comparing.outcome import Outcome, Raised
    from ..comparing.reachable import RESULT, Reachable

    def on_call(name: str, model: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        outcome = Outcome()
        observed.append((name, outcome))
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            outcome.raised = Raised(type(error).__qualname__, str(error), type(error).__module__)
            raise
        walk = Reachable()
        walk.add(RESULT, result)
        outcome.states, outcome.left_out = walk.states, walk.left_out
        return result

    return on_call


def main() -> None:
    """Run what a file asks for."""
    with open(sys.argv[1], encoding="utf-8") as file:
        run(Spec(**json.load(file)))


if __name__ == "__main__":
    main()
