"""Loops, ``try``, ``match`` and comprehensions, with and without breaks in them."""

import torch

from .registry import program


@program(skipped_by_torch=True)
def for_break(compiled):
    """A break inside a loop: torch gives the frame up."""
    @compiled
    def f(x):
        for i in range(3):
            x = x + i
            print(i)
        return x
    return f(torch.ones(3))


@program
def while_item(compiled):
    """A loop that goes on while a tensor says so."""
    @compiled
    def f(x):
        n = 0
        while x.sum() < 10:
            x = x + 1
            n += 1
        return (x, n)
    return f(torch.ones(3))


@program
def loop_unrolled(compiled):
    """Loops with ``continue``, ``break`` and ``else`` over Python values are unrolled."""
    @compiled
    def f(x, names):
        for i, name in enumerate(names):
            if name == "skip":
                continue
            if name == "stop":
                break
            x = x + i * len(name)
        else:
            x = x * 100
        return x
    x = torch.ones(3)
    return f(x, ["a", "skip", "ccc"]), f(x, ["a", "stop", "b"])


@program
def loop_then_branch(compiled):
    """Nested loops, then a branch on a tensor."""
    @compiled
    def f(x, y):
        for a in range(2):
            for b in (1, 2):
                x = x + a * b * y
        if x.sum() > 0:
            return x, a, b
        return y, b, a
    return f(torch.ones(3), torch.ones(3)), f(torch.ones(3), -torch.ones(3))


@program
def break_after_loop_state(compiled):
    """An iterator that is half used when the graph breaks."""
    @compiled
    def f(x):
        numbers = iter([1, 2, 3, 4])
        x = x + next(numbers)
        print("half")
        return x * next(numbers), list(numbers)
    return f(torch.ones(3))


@program
def early_returns(compiled):
    """Returns of different kinds behind a break."""
    @compiled
    def f(x, mode):
        y = x + 1
        torch._dynamo.graph_break()
        if mode is None:
            return None
        if mode == 0:
            return y
        if mode < 0:
            return y, mode
        return {"y": y * mode}
    return [f(torch.ones(3), mode) for mode in (None, 0, -1, 2)]


@program
def walrus_while(compiled):
    """``while (n := ...)`` with a tensor in it."""
    @compiled
    def f(x):
        steps = []
        while (n := int(x.sum())) < 8:
            steps.append(n)
            x = x + 1
        return x, steps
    return f(torch.ones(3))


@program(skipped_by_torch=True)
def tryexc(compiled):
    """Break, branch and raise inside ``try``: torch gives the frame up."""
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
def try_without_break(compiled):
    """``try``/``except``/``else``/``finally`` that Dynamo traces through."""
    @compiled
    def f(x, d, log):
        try:
            y = x + d["k"]
        except KeyError:
            y = x - 1
        else:
            y = y * 2
        finally:
            log.append("done")
        return y
    log = []
    return f(torch.ones(3), {"k": 1}, log), f(torch.ones(3), {}, log), log


@program
def try_then_break(compiled):
    """A break after a ``try`` that caught something."""
    @compiled
    def f(x, values):
        try:
            y = x + values[3]
        except (IndexError, KeyError) as error:
            y = x - 1
        print("after")
        return y * 2
    return f(torch.ones(3), [1]), f(torch.ones(3), [1, 2, 3, 4])


@program
def match_(compiled):
    """``match`` on sequences and mappings behind a break."""
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
def comp(compiled):
    """A break inside a comprehension, another comprehension after it."""
    @compiled
    def f(xs):
        ys = [x.sum().item() for x in xs]
        return ([y * 2 for y in ys], xs[0] + 1)
    return f([torch.ones(3), torch.ones(2)])


@program
def comprehensions(compiled):
    """List, set, dict and nested comprehensions with conditions; a break uses their values."""
    @compiled
    def f(x, names):
        lengths = {name: x + len(name) for name in names if name}
        pairs = [(i, j) for i in range(3) for j in range(i) if i + j != 2]
        odd = {n % 2 for n in range(4)}
        print(pairs, odd)
        return sum(lengths.values()) + len(pairs), sorted(odd)
    return f(torch.ones(3), ["a", "", "bcd"])


@program
def cond_operator(compiled):
    """``torch.cond``: both branches are in the graph."""
    @compiled
    def f(x):
        return torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos() + 1, (x,)) * 2
    return f(torch.ones(3)), f(-torch.ones(3))
