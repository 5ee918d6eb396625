"""``decompile`` takes any callable that runs Python code, and says why it does not take another."""

import abc
import contextlib
import dataclasses
import functools
import sys
import types
import unittest.mock

import pytest

import depyf
from depyf.source import code_of, unwrapped


def target(x, y=1):
    return x + y


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Thing:
    def method(self):
        return "method"

    @staticmethod
    def static(x):
        return "static"

    @classmethod
    def of_class(cls):
        return "of_class"

    @property
    def prop(self):
        return "prop"

    @functools.cached_property
    def cached_prop(self):
        return "cached_prop"

    @functools.lru_cache
    def cached(self):
        return "cached"

    @functools.singledispatchmethod
    def by_kind(self, x):
        return "by_kind"

    @abc.abstractmethod
    def abstract(self):
        return "abstract"

    partial = functools.partialmethod(target, 3)

    def __call__(self, x):
        return "called"


class AnswersToEverything:
    def __getattr__(self, name):
        return AnswersToEverything()

    def __call__(self):
        return "called"


class CachedCall:
    @functools.lru_cache
    def __call__(self):
        return "cached call"


@functools.singledispatch
def dispatched(x):
    return "dispatched"


@contextlib.contextmanager
def context():
    yield "context"


def generator():
    yield 1


TAKEN = {
    "function": (target, target),
    "code": (target.__code__, target),
    "partial": (functools.partial(functools.partial(target, 1), y=2), target),
    "lru_cache": (functools.lru_cache(target), target),
    "cache": (functools.cache(target), target),
    "decorated": (logged(logged(target)), target),
    "partial of cached of decorated": (functools.partial(functools.cache(logged(target)), 1), target),
    "method": (Thing.method, Thing.method),
    "bound method": (Thing().method, Thing.method),
    "static method": (Thing.__dict__["static"], Thing.static),
    "static method of an object": (Thing().static, Thing.static),
    "class method": (Thing.of_class, Thing.of_class.__func__),
    "class method itself": (Thing.__dict__["of_class"], Thing.of_class.__func__),
    "property": (Thing.prop, Thing.prop.fget),
    "cached property": (Thing.cached_prop, Thing.cached_prop.func),
    "cached method": (Thing().cached, Thing.cached.__wrapped__),
    "single dispatch": (dispatched, dispatched.__wrapped__),
    "single dispatch method": (Thing.__dict__["by_kind"], Thing.__dict__["by_kind"].func),
    "abstract method": (Thing.abstract, Thing.abstract),
    "partial method itself": (Thing.__dict__["partial"], target),
    "partial method of the class": (Thing.partial, target),
    "partial method of an object": (Thing().partial, target),
    "callable object": (Thing(), Thing.__call__),
    "cached __call__": (CachedCall(), CachedCall.__call__.__wrapped__),
    "object with __getattr__": (AnswersToEverything(), AnswersToEverything.__call__),
    "context manager": (context, context.__wrapped__),
    "generator": (generator(), generator),
    "mock": (unittest.mock.Mock(), unittest.mock.CallableMixin.__call__),
}


@pytest.mark.parametrize("given, runs", TAKEN.values(), ids=TAKEN)
def test_taken(given, runs):
    assert code_of(given) is runs.__code__
    assert depyf.decompile_full(given).text == depyf.decompile(runs.__code__)


def test_a_frame():
    assert code_of(sys._getframe()) is test_a_frame.__code__


class Endless:
    def __init__(self):
        self.__wrapped__ = self


REFUSED = {
    "class": (Thing, r"Thing is a class: give one of its methods, for example Thing\.__call__"),
    "dataclass": (dataclasses.make_dataclass("Data", ["x"]), r"Data is a class: .* Data\.__init__"),
    "class in C": (int, "int is a class: it defines no Python method"),
    "function in C": (len, r"len is not written in Python \(builtin_function_or_method\).* give a Python function"),
    "partial of a function in C": (functools.partial(len, []), r"len \(reached through a partial\) is not written"),
    "method in C": (str.upper, r"str\.upper is not written in Python"),
    "source": ("def f(): pass", "a value of type str has no code: .*depyf decompile FILE"),
    "module": (functools, "functools is a module: give one of its functions"),
    "None": (None, "a value of type NoneType has no code"),
    "namespace": (types.SimpleNamespace(a=1), "a value of type SimpleNamespace has no code: give a function"),
    "endless": (Endless(), "a value of type Endless .*has no code"),
}


@pytest.mark.parametrize("given, message", REFUSED.values(), ids=REFUSED)
def test_refused(given, message):
    with pytest.raises(TypeError, match=f"^depyf: {message}"):
        depyf.decompile(given)


def test_modules_and_compiled_functions():
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x)

    forward = Model.forward.__code__
    replaced, in_place = Model(), Model()
    replaced.forward = torch.compile(replaced.forward, backend="eager")
    in_place.compile(backend="eager")
    for given in (Model(), torch.compile(Model(), backend="eager"), functools.partial(Model(), 1), replaced, in_place):
        assert code_of(given) is forward
    decorated = logged(target)
    for given in (torch.compile(target, backend="eager"), torch.no_grad()(target), torch._dynamo.disable(target),
                  torch.compile(decorated, backend="eager"),
                  functools.partial(torch.compile(target, backend="eager"), 1)):
        assert code_of(given) is target.__code__
    assert list(unwrapped(torch.compile(decorated, backend="eager")))[-2:] == [decorated, target]


def test_a_decorator_is_named_or_shown():
    text = depyf.decompile(logged(logged(target)))
    assert text.splitlines() == [
        *[f"# {'logged.' * (sys.version_info >= (3, 11))}wrapper wraps it and runs first: decompile(..., follow_wrapped=False) shows that"] * 2,
        "def target(x, y):", "    return x + y"]
    assert depyf.decompile(logged(target), follow_wrapped=False) == (
        "def wrapper(*args, **kwargs):\n    return function(*args, **kwargs)\n")
    for without in (target, Thing().method, Thing().cached, functools.partial(target, 1), target.__code__):
        assert depyf.decompile(without) == depyf.decompile(without, follow_wrapped=False)
        assert "wraps" not in depyf.decompile(without)


def test_a_compiled_function_has_no_decorator_for_that():
    torch = pytest.importorskip("torch")
    assert depyf.decompile(torch.compile(target, backend="eager")).startswith("def target(")
    assert depyf.decompile(torch.compile(target, backend="eager"), follow_wrapped=False).startswith("def target(")


def test_dump_src_shows_what_torch_compiled():
    """A function behind the wrapper that torch was given; a model; a callable object; a partial function."""
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()

    class Adder:
        def __call__(self, x):
            return x + 1

    decorated = torch.compile(logged(target), backend="eager")
    decorated(torch.ones(2))
    text = depyf.explain.dump_src(decorated)
    assert "def target(" in text and "called through 1 wrapper: logged.wrapper" in text
    called = torch.compile(Adder(), backend="eager")
    called(torch.ones(2))
    assert "x + 1" in depyf.explain.dump_src(called)
    model = torch.compile(torch.nn.Sequential(torch.nn.ReLU()), backend="eager")
    model(torch.ones(2))
    assert "relu(" in depyf.explain.dump_src(model)
    partial = torch.compile(functools.partial(target, y=3), backend="eager")
    partial(torch.ones(2))
    text = depyf.explain.dump_src(functools.partial(decorated, 1))
    assert "def target(" in text
    with pytest.raises(TypeError, match="len is not written in Python"):
        depyf.explain.dump_src(len)
    with pytest.raises(ValueError, match="'generator' has no compiled version"):
        depyf.explain.dump_src(generator)
    torch._dynamo.reset()
