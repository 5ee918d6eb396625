"""Exceptions: raised, caught, chained, and crossing breaks."""

import torch

from .registry import outcome, program


class Custom(Exception):
    def __init__(self, code, *, detail=""):
        super().__init__(code, detail)
        self.code = code


@program
def raise_across(compiled):
    """A helper breaks and raises; the caller catches, and ``finally`` writes."""
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


@program
def raise_after_break(compiled):
    """An exception behind a break is caught outside; what was done before it stays."""
    log = []

    @compiled
    def f(x, bad):
        x.add_(1)
        log.append("before")
        print("break")
        if bad:
            raise ValueError("bad", 3)
        return x * 2
    x = torch.ones(3)
    return f(x, False), outcome(f, x, True), x, log


@program
def raise_uncaught(compiled):
    """The exception leaves the program."""
    @compiled
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        raise RuntimeError(f"shape {tuple(y.shape)}")
    return f(torch.ones(3))


@program(skipped_by_torch=True)
def raise_first(compiled):
    """A frame that always raises, before any graph."""
    @compiled
    def f(x):
        raise NotImplementedError("never")
    return outcome(f, torch.ones(3))


@program
def raise_from(compiled):
    """``raise ... from`` inside ``except``, behind a break: cause and context are kept."""
    def load(x, table):
        print("load")
        try:
            return x * table["missing"]
        except KeyError as error:
            raise Custom(7, detail="d") from error

    @compiled
    def f(x, table):
        y = x + 1
        return load(y, table)
    try:
        f(torch.ones(3), {})
    except Custom as error:
        return error.code, error.args, repr(error.__cause__), error.__context__ is error.__cause__


@program
def custom_exception_inside(compiled):
    """A custom exception is raised and caught in one graph, its attribute used."""
    @compiled
    def f(x, n):
        try:
            if n > 2:
                raise Custom(n)
            y = x + 1
        except Custom as error:
            y = x * error.code
        return y
    return f(torch.ones(3), 1), f(torch.ones(3), 3)


@program
def finally_returns(compiled):
    """``finally`` runs on all ways out, in order."""
    log = []

    @compiled
    def f(x, way):
        try:
            y = x + 1
            if way == "return":
                return y
            if way == "raise":
                raise ValueError(way)
        finally:
            log.append(way)
        return y * 2
    return [outcome(f, torch.ones(3), way) for way in ("return", "raise", "fall")], log


@program
def nested_raise(compiled):
    """An exception goes up through three calls, one of which breaks, to a handler in the middle."""
    def bottom(x):
        print("bottom")
        raise IndexError("deep")

    def middle(x):
        try:
            return bottom(x * 2)
        except LookupError as error:
            return x - len(error.args)

    @compiled
    def top(x):
        return middle(x + 1) * 3
    return top(torch.ones(3))


@program
def assert_fails(compiled):
    """``assert`` on Python values, with a message."""
    @compiled
    def f(x, n):
        assert n > 0, f"n is {n}"
        y = x * n
        print("passed")
        assert n < 5
        return y
    return f(torch.ones(3), 2), outcome(f, torch.ones(3), 0), outcome(f, torch.ones(3), 7)


@program
def error_of_torch(compiled):
    """A shape error in a tensor operation is raised from the compiled call."""
    @compiled
    def f(x, y):
        return x + y
    return outcome(f, torch.ones(3), torch.ones(4))[0], f(torch.ones(3), torch.ones(3))


@program
def error_of_python(compiled):
    """Errors that Python raises: index, key, attribute, division, unpacking."""
    @compiled
    def f(x, kind):
        y = x + 1
        torch._dynamo.graph_break()
        if kind == "index":
            [][1]
        elif kind == "key":
            {}["k"]
        elif kind == "attribute":
            None.missing
        elif kind == "division":
            1 // (kind == "")
        elif kind == "unpacking":
            a, b = [1]
        return y
    return [outcome(f, torch.ones(3), kind) for kind in ("index", "key", "attribute", "division", "unpacking", "")]


@program
def exception_as_value(compiled):
    """An exception object is made, kept across a break, and raised later."""
    @compiled
    def f(x, raises):
        error = Custom(4, detail="kept")
        y = x + 1
        print(error.code)
        if raises:
            raise error
        return y
    return f(torch.ones(3), False), outcome(f, torch.ones(3), True)


@program(skipped_by_torch=True)
def suppressed(compiled):
    """A context manager made outside swallows the exception: torch cannot enter it."""
    class Suppress:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, trace):
            self.kind = kind.__name__ if kind else None
            return kind is ZeroDivisionError
    guard = Suppress()

    @compiled
    def f(x, n):
        with guard:
            x = x + 4 // n
        torch._dynamo.graph_break()
        return x * 2
    return f(torch.ones(3), 2), guard.kind, f(torch.ones(3), 0), guard.kind


@program
def stop_iteration(compiled):
    """``next`` runs out and has a default; an exhausted iterator raises across a break."""
    @compiled
    def f(x, items):
        it = iter(items)
        first = next(it, 10)
        try:
            second = next(it)
        except StopIteration:
            second = 20
        print(first, second)
        return x + first * second
    return [f(torch.ones(3), items) for items in ([], [1], [1, 2, 3])]
