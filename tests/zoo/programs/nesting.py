"""Breaks in called functions, several compiled functions, threads."""

import threading

import torch

from .registry import program


@program
def nested(compiled):
    """A helper breaks twice, two levels down."""
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
def nested_four_deep(compiled):
    """Breaks at each of four levels."""
    def d(x):
        print("d")
        return x + 4

    def c(x):
        y = d(x * 3)
        print("c")
        return y + x

    def b(x):
        y = c(x * 2)
        print("b")
        return y - x

    @compiled
    def a(x):
        y = b(x + 1)
        print("a")
        return y / x
    return a(torch.ones(3)), a(torch.full((3,), 2.0))


@program
def nested_graph_breaks_on(compiled):
    """The same with torch's ``nested_graph_breaks``: callers are resumed too."""
    def inner(x, k):
        y = x * k
        print("inner")
        return y + k

    def middle(x):
        before = x + 1
        return before + inner(before, 3)

    @compiled
    def outer(x):
        local = x - 1
        return middle(local) * local + x
    with torch._dynamo.config.patch(nested_graph_breaks=True):
        return outer(torch.arange(3.0)), outer(torch.ones(3))


@program
def nested_break_in_loop(compiled):
    """A loop of the caller runs over a helper that breaks."""
    def step(x, i):
        print("step", i)
        return x + i

    @compiled
    def f(x):
        for i in range(3):
            x = step(x, i) * 2
        return x
    return f(torch.ones(3))


@program
def nested_break_in_with(compiled):
    """A helper breaks under a context of its caller."""
    def helper(x):
        y = x * 2
        print(torch.is_grad_enabled())
        return y + 1

    @compiled
    def f(x):
        with torch.no_grad():
            y = helper(x + 1)
        return y * x
    y = f(torch.ones(3, requires_grad=True))
    return y, y.requires_grad


@program
def two_functions(compiled):
    """Two functions of one name are compiled, and call one another."""
    def make(k):
        @compiled
        def f(x):
            y = x * k
            print(k)
            return y + k
        return f
    double, triple = make(2), make(3)
    return double(torch.ones(3)), triple(torch.ones(3)), double(triple(torch.ones(2)))


@program
def compiled_in_compiled(compiled):
    """A compiled function calls another; one breaks."""
    @compiled
    def inner(x):
        y = x.sin()
        print("inner")
        return y + 1

    @compiled
    def outer(x):
        return inner(x * 2) * 3
    return outer(torch.ones(3)), inner(torch.ones(3))


@program
def recursion_with_break(compiled):
    """A recursive function breaks at every level."""
    def down(x, n):
        if n == 0:
            return x
        print(n)
        return down(x + n, n - 1) * 2

    @compiled
    def f(x):
        return down(x, 2)
    return f(torch.ones(3))


@program
def threads(compiled):
    """Two threads compile and run one after the other, then at once."""
    @compiled
    def f(x, k):
        y = x * k
        torch._dynamo.graph_break()
        return y + k
    results = {}

    def work(k):
        results[k] = f(torch.ones(3), k)
    for k in (2, 3):
        thread = threading.Thread(target=work, args=(k,))
        thread.start()
        thread.join()
    both = [threading.Thread(target=work, args=(k,)) for k in (4, 5)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    return {k: results[k] for k in sorted(results)}
