"""Small programs, one behaviour of Dynamo each: the tool changes nothing, and all it shows is proven.

``DEPYF_TEST_BACKENDS="eager aot_eager inductor"`` runs them on other backends (``make zoo`` runs all three).
"""

import contextlib
import io
import os
import re

import pytest

torch = pytest.importorskip("torch")

import depyf

BACKENDS = os.environ.get("DEPYF_TEST_BACKENDS", "eager").split()
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def with_break(compiled):

    @compiled
    def f(x):
        with torch.no_grad():
            y = x + 1
            torch._dynamo.graph_break()
            y = y * 2
        return y
    return f(torch.ones(3))


@program
def for_break(compiled):

    @compiled
    def f(x):
        for i in range(3):
            x = x + i
            print(i)
        return x
    return f(torch.ones(3))


@program
def while_item(compiled):

    @compiled
    def f(x):
        n = 0
        while x.sum() < 10:
            x = x + 1
            n += 1
        return (x, n)
    return f(torch.ones(3))


@program
def nested(compiled):

    def g(x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    def h(x):
        y = g(x)
        return y - 1

    @compiled
    def f(x):
        return h(x) + h(x * 2)
    return f(torch.ones(3))


@program
def closure(compiled):
    n = 0

    def bump():
        nonlocal n
        n += 1

    @compiled
    def f(x):
        bump()
        x = x + n
        print('hi')
        bump()
        return x * n
    return (f(torch.ones(3)), n)


@program
def tryexc(compiled):

    @compiled
    def f(x):
        try:
            y = x + 1
            print('a')
            if y.sum() > 3:
                raise ValueError('no')
        except ValueError as e:
            return x * 3
        return y
    return f(torch.ones(3))


@program
def mutate(compiled):

    class Holder:
        pass
    o = Holder()
    o.a = 1
    L = []
    d = {}

    @compiled
    def f(x):
        o.a += 1
        L.append(x * 2)
        d['k'] = x + o.a
        return x - 1
    r = f(torch.ones(3))
    return (r, o.a, L, d)


@program
def gen(compiled):

    @compiled
    def f(x):

        def g():
            for i in range(3):
                yield (x + i)
        return sum(g())
    return f(torch.ones(3))


@program
def comp(compiled):

    @compiled
    def f(xs):
        ys = [x.sum().item() for x in xs]
        return ([y * 2 for y in ys], xs[0] + 1)
    return f([torch.ones(3), torch.ones(2)])


@program
def kw(compiled):

    @compiled
    def f(a, *args, k=2, **kw):
        r = a + k
        for t in args:
            r = r + t
        print('x')
        return r * kw['z']
    return f(torch.ones(3), torch.ones(3), k=3, z=5)


@program
def inner_fn(compiled):

    @compiled
    def f(x):

        def g(y):
            return y * x
        torch._dynamo.graph_break()
        return g(x + 1)
    return f(torch.ones(3))


@program
def inner_ret(compiled):

    @compiled
    def f(x):
        z = x + 1

        def g(y):
            return y * z
        return g
    return f(torch.ones(3))(2)


@program
def match_(compiled):

    @compiled
    def f(x, c):
        torch._dynamo.graph_break()
        match c:
            case [a, b]:
                return x + a
            case {'k': v}:
                return x * v
            case _:
                return x
    return (f(torch.ones(3), [1, 2]), f(torch.ones(3), {'k': 4}))


@program
def ctx(compiled):

    @contextlib.contextmanager
    def cm(l):
        l.append(1)
        try:
            yield
        finally:
            l.append(2)
    L = []

    @compiled
    def f(x):
        with cm(L):
            x = x + 1
            print('in')
        return x * 2
    return (f(torch.ones(3)), L)


@program
def raise_across(compiled):

    def g(x):
        print('g')
        raise KeyError('k')

    @compiled
    def f(x):
        try:
            return g(x + 1)
        except KeyError:
            return x * 5
        finally:
            x.add_(1)
    return f(torch.ones(3))


def equal(left, right):
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and torch.equal(left, right)
    if isinstance(left, (list, tuple)):
        return type(left) is type(right) and len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)
    return left == right


def run(function, backend):
    """Result (or exception) and what was printed."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = function(lambda f: torch.compile(f, backend=backend))
        except Exception as error:  # compared like a result
            result = (type(error).__name__, error.args)
    return result, printed.getvalue()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_changes_and_all_is_proven(name, backend, tmp_path):
    plain = run(PROGRAMS[name], backend)
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        watched = run(PROGRAMS[name], backend)
    assert equal(plain, watched)
    transformed = 0
    for entry in sorted(os.listdir(on.path)):
        with open(os.path.join(on.path, entry), encoding="utf-8") as file:
            text = file.read()
        if entry.endswith(".py"):
            compile(text, entry, "exec")
        if entry.startswith("__transformed_code_"):
            transformed += 1
            assert re.search(r"^# fidelity: (exact|equivalent)", text, re.M), text
        assert "internal error" not in text
    # Frames that torch skips whole (a break inside a loop, ``try`` or generator-based ``with``) leave nothing.
    assert transformed or name in ("for_break", "tryexc", "ctx")
