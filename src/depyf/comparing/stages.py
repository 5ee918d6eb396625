"""The stages of a compilation, each as a backend that records what its graphs give."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any

import torch

from ..capture.torch_private import pipeline
from .recording import KernelRecorder, Recorder

#: In the order in which torch makes them.
NAMES = ("captured", "aot", "inductor")
#: What they are, in words.
TITLES = {"eager": "eager Python", "captured": "captured graph", "aot": "AOT graphs", "inductor": "Inductor"}


@contextlib.contextmanager
def backend(stage: str, recorder: Recorder) -> Iterator[Callable[..., Any]]:
    """Make the backend that runs graphs as they are at a stage: of ``NAMES``, or ``"plain"``.

    (The latter has AOT graphs without decompositions.)
    """
    kernels = KernelRecorder(recorder)

    def compiler(gm: Any, inputs: Any) -> Any:
        recorder.graphs += 1
        number = recorder.graphs

        def by_nodes(graph: Any, examples: Any, is_backward: bool = False, **options: Any) -> Any:
            return _boxed(recorder.interpreted(graph, number, bool(is_backward)))

        def by_kernels(graph: Any, examples: Any, **options: Any) -> Any:
            kernels.number, kernels.backward = number, bool(options.get("is_backward"))
            return pipeline.inductor_inner()(graph, examples, **options)

        if stage == "captured":
            return recorder.interpreted(gm, number)
        if stage == "plain":
            return pipeline.plain_aot(gm, inputs, by_nodes, functools.partial(by_nodes, is_backward=True))
        return pipeline.inductor(gm, inputs, by_nodes if stage == "aot" else by_kernels)

    # (torch wraps a backend, and keeps the function's attributes)
    compiler.depyf_compares = True  # type: ignore[attr-defined]  # no function declares attributes
    with kernels if stage == "inductor" else contextlib.nullcontext():
        yield compiler


def _boxed(run: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """Make the function take its arguments as one list, which it empties."""

    def boxed(args: list[Any]) -> Any:
        given = list(args)
        args.clear()
        return run(*given)

    boxed._boxed_call = True  # type: ignore[attr-defined]  # torch's own word for it, on any function
    return boxed


def compiled(function: Any, compiler: Callable[..., Any], dynamic: bool | None) -> Any:
    """Return the function as the backend runs it; torch compiles when it is called.

    A copy of its code object is compiled, as torch stores compiled versions with the code object. A module has a copy
    of its ``forward`` while it is called.
    """
    if isinstance(function, torch.nn.Module):
        forward, own = function.forward, vars(function)
        if not isinstance(forward, MethodType) or "forward" in own:
            return torch.compile(function, backend=compiler, dynamic=dynamic)
        module, copied = torch.compile(function, backend=compiler, dynamic=dynamic), _copy(forward)

        def call(*args: Any, **kwargs: Any) -> Any:
            own["forward"] = copied
            try:
                return module(*args, **kwargs)
            finally:
                own.pop("forward", None)

        return call
    return torch.compile(_copy(function), backend=compiler, dynamic=dynamic)


def _copy(function: Any) -> Any:
    if isinstance(function, MethodType):
        return MethodType(_copy(function.__func__), function.__self__)
    if not isinstance(function, FunctionType):
        return function
    result = FunctionType(
        function.__code__.replace(), function.__globals__, function.__name__, function.__defaults__,
        function.__closure__)
    result.__kwdefaults__ = function.__kwdefaults__
    result.__qualname__, result.__module__ = function.__qualname__, function.__module__
    result.__dict__.update(function.__dict__)
    return result
