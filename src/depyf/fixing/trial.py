"""One run of a program, with other texts in the place of some of its files; no file is changed.

    python -m depyf.fixing.trial SPEC      SPEC: JSON with program, arguments, texts, folder

It leaves in the folder: the dump, the calls of compiled functions with what they gave (``observed.pt``, compared by
``outcome.same_calls``), what was printed (``stdout``).
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

DUMP, OBSERVED, PRINTED, GENERATED = "dump", "observed.pt", "stdout", "generated.pkl"


@dataclasses.dataclass(frozen=True)
class Spec:
    """The run that is wanted.

    Attributes:
        program: its file.
        arguments: what follows in ``sys.argv``.
        texts: by the real path of a file, the text to take for it.
        folder: where what is left goes.
        conditions: of the change that is judged (``forced.Conditions``).
        generate: repeat calls of compiled functions with other inputs.
    """

    program: str
    arguments: tuple[str, ...]
    texts: Mapping[str, str]
    folder: str
    conditions: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    generate: bool = False


def run(spec: Spec) -> None:
    """Run the program in this process, which is for it alone."""
    import torch

    from ..prepare import prepare_debug

    observed: list[Any] = []
    texts = {path: spec.texts.get(path) or reading.text(path, budgets.CODE) for path in spec.conditions}
    generator = Generator(texts, spec.conditions) if spec.generate else None
    _print_to(os.path.join(spec.folder, PRINTED))
    take_texts(spec.texts)
    _seed(torch)
    torch.compile = recorded(torch, torch.compile, observed, generator)
    sys.argv = [spec.program, *spec.arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(spec.program)))
    try:
        with prepare_debug(os.path.join(spec.folder, DUMP), page=False, link=False, files="now"):
            _run_main(spec)
    finally:
        sys.stdout.flush()
        torch.save(observed, os.path.join(spec.folder, OBSERVED))
        if generator is not None:
            with open(os.path.join(spec.folder, GENERATED), "wb") as file:
                pickle.dump(generator.calls, file)


def _run_main(spec: Spec) -> None:
    path = os.path.realpath(spec.program)
    if path in spec.texts:
        text = spec.texts[path]
    else:
        text = reading.text(path, budgets.CODE)
    module = types.ModuleType("__main__")
    module.__file__ = spec.program
    sys.modules["__main__"] = module
    exec(compile(text, path, "exec", dont_inherit=True), vars(module))


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


def _print_to(path: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 1)
    os.close(file)


def _seed(torch: Any) -> None:
    torch.manual_seed(0)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)


# --- what compiled functions give -----------------------------------------------------------------------
class _Calls(threading.local):
    """Where the calls of this thread are noted: those that a compiled function makes, with the call of it."""

    def __init__(self, noted: list[Any]) -> None:
        self.noted = self.outermost = noted


def recorded(torch: Any, compiler: Callable[..., Any], observed: list[Any],
             generator: Generator | None = None) -> Callable[..., Any]:
    """Return ``torch.compile`` whose functions note what they give, and have their calls repeated by a generator."""
    calls = _Calls(observed)

    @functools.wraps(compiler)
    def compile_and_record(model: Any = None, **options: Any) -> Any:
        if model is None:
            return lambda given: compile_and_record(given, **options)
        compiled = compiler(model, **options)
        name = getattr(model, "__qualname__", type(model).__qualname__)

        def repeat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if generator is not None:
                generator.repeat(name, model, args, kwargs)

        if isinstance(compiled, torch.nn.Module):
            compiled.forward = _noting(torch, compiled.forward, name, calls, repeat)
            return compiled
        return _noting(torch, compiled, name, calls, repeat)

    return compile_and_record


def _noting(torch: Any, function: Callable[..., Any], name: str, calls: _Calls, repeat: Callable[..., None],
            ) -> Callable[..., Any]:
    @functools.wraps(function)
    def noting(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return function(*args, **kwargs)
        if calls.noted is calls.outermost:
            repeat(args, kwargs)
        around, inside, given = calls.noted, list[Any](), None
        calls.noted = inside
        try:
            result = function(*args, **kwargs)
            given = described(result)
            return result
        except Exception as error:
            given = ("raises", type(error).__name__)
            raise
        finally:
            calls.noted = around
            around.append((name, given, inside))

    return noting


def described(value: Any, depth: int = 0) -> Any:
    """Return a value as plain data that can be kept: tensors as copies."""
    import torch

    if isinstance(value, torch.Tensor):
        plain = value.detach()
        copied = plain.to_dense() if plain.layout != torch.strided else plain
        return ("tensor", str(value.dtype), tuple(value.shape), value.requires_grad, copied.clone().cpu())
    if value is None or isinstance(value, (bool, int, float, str, bytes, complex)):
        return value
    if depth > 6:
        return type(value).__name__
    if isinstance(value, (list, tuple, set, frozenset)):
        return (type(value).__name__, [described(each, depth + 1) for each in value])
    if isinstance(value, dict):
        return (type(value).__name__, [(repr(key), described(each, depth + 1)) for key, each in value.items()])
    if dataclasses.is_dataclass(value):
        return (type(value).__name__, described(vars(value), depth + 1))
    return type(value).__name__


def main() -> None:
    """Run what a file asks for."""
    with open(sys.argv[1], encoding="utf-8") as file:
        run(Spec(**json.load(file)))


if __name__ == "__main__":
    main()
