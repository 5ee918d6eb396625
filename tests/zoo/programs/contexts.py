"""``with``: contexts of torch and of the user, with and without breaks in them."""

import contextlib

import torch

from .registry import program


@program(skipped_by_torch=True)
def ctx(compiled):
    """A break under a context manager made from a generator: torch gives the frame up."""
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


class Recorder:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")
        return self.log

    def __exit__(self, *error):
        self.log.append("exit")


@program
def context_class(compiled):
    """A user's context manager, entered and left before a break."""
    @compiled
    def f(x, log):
        with Recorder(log) as same:
            y = x + len(same)
        print(same is log)
        return y * len(log)
    log = []
    return f(torch.ones(3), log), f(torch.ones(3), log), log


@program(skipped_by_torch=True)
def context_made_outside(compiled):
    """A context manager made outside: torch cannot enter it and gives the frame up."""
    log = []
    recorder = Recorder(log)

    @compiled
    def f(x):
        with recorder as same:
            y = x + len(same)
        return y * 2
    return f(torch.ones(3)), log


@program
def two_contexts(compiled):
    """A break under two grad modes, left one after the other."""
    @compiled
    def f(x):
        with torch.no_grad():
            a = x * 2
            with torch.enable_grad():
                b = x * 3
                torch._dynamo.graph_break()
                c = b + a
            d = c + 1
        return a, b, c, d, torch.is_grad_enabled()
    results = f(torch.ones(3, requires_grad=True))
    return results, [r.requires_grad for r in results[:4]]


@program
def with_break(compiled):
    """A break under ``torch.no_grad()``."""
    @compiled
    def f(x):
        with torch.no_grad():
            y = x + 1
            torch._dynamo.graph_break()
            y = y * 2
        return y
    return f(torch.ones(3, requires_grad=True))
