"""Closures, arguments and the other ways a function is called."""

import functools

import torch

from .registry import program


@program
def closure(compiled):
    """A closure writes to a cell of the caller, before and after a break."""
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
def deep_closure(compiled):
    """Cells of three levels; the inner function changes the outer one's variable across a break."""
    @compiled
    def f(x):
        total = x * 0

        def middle(k):
            def inner():
                nonlocal total
                total = total + x * k
                return k
            return inner
        a = middle(2)()
        torch._dynamo.graph_break()
        b = middle(3)()
        return total, a + b
    return f(torch.ones(3))


@program
def kw(compiled):
    """``*args``, keyword-only and ``**kwargs``."""
    @compiled
    def f(a, *args, k=2, **kw):
        r = a + k
        for t in args:
            r = r + t
        print('x')
        return r * kw['z']
    return f(torch.ones(3), torch.ones(3), k=3, z=5)


@program
def positional_only(compiled):
    """Positional-only parameters, defaults, and a keyword of the same name in ``**rest``."""
    @compiled
    def f(a, b=2, /, c=3, *, d, **rest):
        y = a * b + c
        torch._dynamo.graph_break()
        return y + d, sorted(rest.items())
    x = torch.ones(3)
    return f(x, d=1), f(x, 5, 6, d=7, a="a", b="b")


@program
def forwarded_arguments(compiled):
    """A wrapper passes ``*args, **kwargs`` on."""
    def logged(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            print(function.__name__, len(args), sorted(kwargs))
            return function(*args, **kwargs)
        return wrapper

    @logged
    def add(x, y, *, scale=1):
        return (x + y) * scale

    @compiled
    def f(x):
        return add(x, 1) + add(x, y=2, scale=3)
    return f(torch.ones(3))


@program
def mutable_default(compiled):
    """A list as a default value keeps what earlier calls left."""
    @compiled
    def f(x, seen=[]):
        seen.append(len(seen))
        return x + len(seen), list(seen)
    return [f(torch.ones(3)) for _ in range(3)]


@program
def partial_(compiled):
    """``functools.partial`` as the callee and as a value behind a break."""
    def affine(x, a, b=0):
        return x * a + b

    @compiled
    def f(x):
        double = functools.partial(affine, a=2)
        y = double(x, b=1)
        print("middle")
        return double(y)
    return f(torch.ones(3)), functools.partial(f)(torch.zeros(2))


@program
def recursion(compiled):
    """A recursive function without breaks is inlined."""
    @compiled
    def power(x, n):
        return torch.ones_like(x) if n == 0 else x * power(x, n - 1)
    return power(torch.full((3,), 2.0), 3)


@program
def inner_fn(compiled):
    """A function made before a break is called after it."""
    @compiled
    def f(x):

        def g(y):
            return y * x
        torch._dynamo.graph_break()
        return g(x + 1)
    return f(torch.ones(3))


@program
def inner_ret(compiled):
    """A closure over a computed tensor is returned."""
    @compiled
    def f(x):
        z = x + 1

        def g(y):
            return y * z
        return g
    return f(torch.ones(3))(2)


@program
def lambdas(compiled):
    """Lambdas with defaults in a list, used behind a break."""
    @compiled
    def f(x):
        steps = [lambda t, k=k: t + k * x for k in range(3)]
        steps.append(lambda *t: t[0] * 2)
        print(len(steps))
        for step in steps:
            x = step(x)
        return x
    return f(torch.ones(3))


@program
def function_attribute(compiled):
    """Attributes of a function are read and written."""
    def counter(x):
        counter.calls += 1
        return x * counter.calls
    counter.calls = 0

    @compiled
    def f(x):
        y = counter(x) + counter(x)
        print(counter.calls)
        return counter(y)
    return f(torch.ones(3)), counter.calls
