"""Which function a frame stands for: a live function that torch would compile -> the one meant, and its wrappers."""

import contextlib
import dataclasses
import functools
import types

import pytest

from depyf.capture.user_function import Meant, meant_by_frame, meant_by_function, readable_name


def forwarding(func):
    @functools.wraps(func)
    def wrapper(self, *args, **kwargs):
        return func(self, *args, **kwargs)
    return wrapper


def made_with_options(flag=True, check=len):
    def decorator(func):
        def wrapper(*args, **kwargs):
            check(args)
            return func(*args, **kwargs) if flag else None
        return wrapper
    return decorator


def same_parameters(func):
    @functools.wraps(func)
    def wrapper(self, x):
        return func(self, x)
    return wrapper


def handed_on(func):
    def wrapped(*args, **kwargs):
        return apply(func, args, kwargs)
    return wrapped


def apply(func, args, kwargs):
    return func(*args, **kwargs)


def other_name(func):
    @functools.wraps(len)
    def mine(x):
        return func(x) + 1
    return mine


class Net:
    def plain(self, x):
        return x

    @forwarding
    @made_with_options(check=print)
    @same_parameters
    def forward(self, x):
        return x

    @functools.lru_cache
    def cached(self, x):
        return x

    @property
    def trap(self):
        raise AssertionError("a property was asked")

    def __getattr__(self, name):
        raise AssertionError(f"__getattr__({name!r}) was asked")

    def __bool__(self):
        raise AssertionError("the object was asked whether it is true")


@dataclasses.dataclass
class Data:
    x: int


class Child(Net):
    pass


class Held:
    """A decorator that is a class."""

    def __init__(self, func):
        functools.update_wrapper(self, func)
        self.func = func

    def __call__(self, *args):
        return self.func(*args)


def toy_example(a, b):
    return a * b


@contextlib.contextmanager
def managed():
    yield


@managed()
def inside(x):
    return x


@Held
def held(x):
    return x


def outer():
    captured = toy_example

    def inner(*args, **kwargs):
        return captured(*args, **kwargs)
    return inner


def local_class():
    class Local:
        def forward(self, x):
            return x
    return Local()


a_lambda = lambda: 0  # noqa: E731

CASES = {
    "a plain function": (toy_example, None, "toy_example", []),
    "a method": (Net.plain, Net(), "Net.plain", []),
    "a method of a base class": (Net.plain, Child(), "Net.plain", []),
    "decorators": (Net.forward, Net(), "Net.forward", [
        "forwarding.wrapper", "made_with_options.decorator.wrapper", "same_parameters.wrapper"]),
    "decorators of an inherited method": (Net.forward, Child(), "Net.forward", [
        "forwarding.wrapper", "made_with_options.decorator.wrapper", "same_parameters.wrapper"]),
    "no object to ask": (Net.forward, None, "Net.forward", [
        "forwarding.wrapper", "made_with_options.decorator.wrapper", "same_parameters.wrapper"]),
    "arguments handed on as a tuple": (handed_on(toy_example), None, "toy_example", ["handed_on.wrapped"]),
    "a bound method": (handed_on(Net().plain), None, "Net.plain", ["handed_on.wrapped"]),
    "a partial": (handed_on(functools.partial(toy_example, 1)), None, "toy_example", ["handed_on.wrapped"]),
    "a cached function": (handed_on(functools.lru_cache(toy_example)), None, "toy_example", ["handed_on.wrapped"]),
    "a context manager": (inside, None, "inside", ["ContextDecorator.__call__.inner"]),
    "a class": (Held.__call__, held, "held", ["Held.__call__"]),
    "a function in a function": (outer(), None, "outer.inner", []),
    "a class in a function": (type(local_class()).forward, local_class(), "Local.forward", []),
    "a method of a dataclass": (Data.__init__, Data(1), "Data.__init__", []),
    "a lambda": (a_lambda, None, f"lambda at line {a_lambda.__code__.co_firstlineno}", []),
    # (it does more than to call the other)
    "parameters of its own": (other_name(toy_example), None, "other_name.mine", []),
}


@pytest.mark.parametrize(("function", "this", "name", "wrappers"), CASES.values(), ids=CASES)
def test_meant(function, this, name, wrappers):
    meant = meant_by_function(function, this)
    with_qualified_names = hasattr(function.__code__, "co_qualname")
    if with_qualified_names:
        assert (meant.name, [wrapper for wrapper, _ in meant.wrappers]) == (name, wrappers)
    else:  # 3.10: code has its own name only
        assert len(meant.wrappers) == len(wrappers)
        assert name.endswith(meant.name.rpartition(".")[2])
    if wrappers:
        assert meant.wrappers[0][1] is function.__code__


def test_a_frame_is_read_without_running_anything():
    trap = Net()
    code = Net.forward.__code__
    meant = meant_by_frame(code, {"self": trap, "args": (trap,), "func": trap}, {"forwarding": trap})
    assert meant == Meant(meant.name, code)


def test_a_wrapper_of_itself_ends():
    def maker(func):
        def wrapper(*args, **kwargs):
            return func(*args, **kwargs)
        return wrapper
    wrapper = maker(None)
    wrapper.__closure__[0].cell_contents = wrapper
    assert meant_by_function(wrapper).wrappers == ()


def test_an_empty_cell():
    empty = types.FunctionType(handed_on(toy_example).__code__, globals(), None, None, (types.CellType(),))
    assert meant_by_function(empty).wrappers == ()


@pytest.mark.parametrize(("qualified", "name"), [
    ("f", "f"),
    ("A.B.forward", "A.B.forward"),
    ("main.<locals>.step", "main.step"),
    ("main.<locals>.inner.<locals>.step", "inner.step"),
    ("main.<locals>.Net.forward", "Net.forward"),
    ("Net.fit.<locals>.step", "Net.fit.step"),
    ("main.<locals>.<lambda>", "lambda at line 7"), ("<listcomp>.<lambda>", "lambda at line 7"),
    ("Net.<lambda>", "lambda at line 7"),
    ("main.<locals>.<lambda>.<locals>.f", "lambda.f"),
    ("f.<locals>.<genexpr>", "genexpr at line 7"),
    ("Net.torch_dynamo_resume_in_forward_at_34", "Net.forward"),
    ("deco.<locals>.torch_dynamo_resume_in_wrapper_at_3", "deco.wrapper"),
])
def test_readable_names(qualified, name):
    assert readable_name(qualified, 7) == name


def test_modules_of_torch():
    torch = pytest.importorskip("torch")

    class Tiny(torch.nn.Module):
        def forward(self, x):
            return x

    tiny = Tiny()
    for code in (torch.nn.Module._wrapped_call_impl.__code__, torch.nn.Module._call_impl.__code__):
        assert meant_by_frame(code, {"self": tiny}, {}).code is Tiny.forward.__code__
    parallel = torch.nn.parallel.DataParallel.__new__(torch.nn.parallel.DataParallel)
    torch.nn.Module.__init__(parallel)
    parallel.module = tiny
    meant = meant_by_function(torch.nn.parallel.DataParallel.forward, parallel)
    assert (meant.name, [name for name, _ in meant.wrappers]) == ("Tiny.forward", ["DataParallel.forward"])
    assert meant_by_function(torch.vmap(toy_example)).name == "toy_example"
    assert meant_by_function(torch.no_grad()(toy_example)).name == "toy_example"
    assert meant_by_function(handed_on(torch.compile(tiny, backend="eager"))).name == "Tiny.forward"
