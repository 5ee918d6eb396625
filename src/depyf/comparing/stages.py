"""The stages of a compilation, each as a backend that records what its graphs give."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any

import torch

from ..capture.torch_private import hooks, pipeline
from .recording import KernelRecorder, Recorder

#: In the order in which torch makes them.
NAMES = ("captured", "aot", "inductor")
#: What they are, in words.
TITLES = {"eager": "eager Python", "captured": "captured graph", "aot": "AOT graphs", "inductor": "Inductor"}


@contextlib.contextmanager
def backend(stage: str, recorder: Recorder) -> Iterator[Callable[..., Any]]:
    """Make the backend that runs graphs as they are at a stage.

    Args:
        stage: of ``NAMES``, or ``"plain"``: AOT graphs without decompositions.
        recorder: takes what their nodes (kernels) give.
    """
    make = {"captured": _captured, "aot": _aot, "inductor": _inductor, "plain": _plain}[stage]
    with make(recorder) as compiler:
        # (torch wraps a backend; what is said on the function goes along)
        compiler.depyf_compares = True  # type: ignore[attr-defined]  # no function declares attributes
        yield compiler


@contextlib.contextmanager
def _captured(recorder: Recorder) -> Iterator[Callable[..., Any]]:
    def captured(gm: Any, inputs: Any) -> Any:
        recorder.graphs += 1
        return recorder.interpreted(gm, recorder.graphs)

    yield captured


@contextlib.contextmanager
def _aot(recorder: Recorder) -> Iterator[Callable[..., Any]]:
    """Run the forward and backward graphs that Inductor is given, node by node."""

    def aot(gm: Any, inputs: Any) -> Any:
        recorder.graphs += 1
        number = recorder.graphs

        def inner(graph: Any, examples: Any, **options: Any) -> Any:
            return _boxed(recorder.interpreted(graph, number, bool(options.get("is_backward"))))

        return pipeline.inductor(gm, inputs, inner)

    yield aot


@contextlib.contextmanager
def _plain(recorder: Recorder) -> Iterator[Callable[..., Any]]:
    """Run them without decompositions."""

    def plain(gm: Any, inputs: Any) -> Any:
        recorder.graphs += 1
        number = recorder.graphs
        return pipeline.plain_aot(
            gm, inputs, lambda graph, examples: _boxed(recorder.interpreted(graph, number)),
            lambda graph, examples: _boxed(recorder.interpreted(graph, number, True)))

    yield plain


def _boxed(run: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """Make the function take its arguments as one list, which it lets go of."""

    def boxed(args: list[Any]) -> Any:
        given = list(args)
        args.clear()
        return run(*given)

    boxed._boxed_call = True  # type: ignore[attr-defined]  # torch's own word for it, on any function
    return boxed


@contextlib.contextmanager
def _inductor(recorder: Recorder) -> Iterator[Callable[..., Any]]:
    kernels = KernelRecorder(recorder)

    def inductor(gm: Any, inputs: Any) -> Any:
        recorder.graphs += 1
        number = recorder.graphs

        def inner(graph: Any, examples: Any, **options: Any) -> Any:
            kernels.number, kernels.backward = number, bool(options.get("is_backward"))
            return pipeline.inductor_inner()(graph, examples, **options)

        return pipeline.inductor(gm, inputs, inner)

    with contextlib.ExitStack() as stack:
        for install in (lambda: pipeline.on_post_grad(kernels.on_post_grad),
                        lambda: hooks.on_kernel_module(kernels.on_module)):
            try:
                stack.callback(install())
            except AttributeError as error:  # this torch lacks it
                recorder.notes.append(f"kernels were not looked at one by one ({error})")
        stack.callback(kernels.leave)
        yield inductor


def compiled(function: Any, compiler: Callable[..., Any], dynamic: bool | None) -> Any:
    """Return the function as the backend runs it; torch compiles when it is called.

    What is compiled is a copy (the same instructions in a code object of its own), as torch keeps what it compiled with
    the code object. A module has a copy of its ``forward`` while it is called.
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
