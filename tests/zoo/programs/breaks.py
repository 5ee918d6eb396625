"""Graph breaks: what causes them, and what is on the stack when they happen."""

import logging
import zlib

import torch

from .registry import outcome, program


@program
def print_break(compiled):
    """``print`` between two graphs, with several values alive across it."""
    @compiled
    def f(x, y):
        a, b = x + y, x - y
        print("between")
        return a * b + x
    return f(torch.ones(3), torch.arange(3.0))


@program
def several_breaks(compiled):
    """Five breaks in a row; each resume function breaks again."""
    @compiled
    def f(x):
        x = x + 1
        print("one")
        y = x * 2
        print("two")
        z = y - x
        print("three")
        x = z / y
        torch._dynamo.graph_break()
        w = x.sin()
        print("five", end=".\n")
        return x, y, z, w
    return f(torch.ones(3))


@program
def logging_call(compiled):
    """A call of a logger."""
    logger, seen = logging.getLogger("depyf_zoo"), []
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())
    logger.addHandler(handler)

    @compiled
    def f(x):
        y = x + 1
        logger.info("shape %s", tuple(y.shape))
        return y * 2
    result = f(torch.ones(3))
    logger.removeHandler(handler)
    return result, seen


@program
def item_break(compiled):
    """``.item()`` gives a Python number that later code uses."""
    @compiled
    def f(x):
        scale = x.sum().item()
        return x * scale, scale
    return f(torch.ones(3)), f(torch.full((3,), 2.0))


@program
def tolist_break(compiled):
    """``.tolist()`` in the middle."""
    @compiled
    def f(x):
        values = (x * 2).tolist()
        return x + values[0], values
    return f(torch.arange(4.0)), f(torch.arange(1, 5))


@program
def data_dependent_if(compiled):
    """A branch on a tensor; both sides are taken."""
    @compiled
    def f(a, b):
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b
    return [f(torch.arange(3.0), sign * torch.ones(3)) for sign in (1, -1, 1)]


@program
def data_dependent_elif(compiled):
    """A chain of ``elif`` on tensors."""
    @compiled
    def f(x):
        total = x.sum()
        if total > 10:
            name = "large"
        elif total > 0:
            name = "small"
        elif total == 0:
            name = "zero"
        else:
            name = "negative"
        return x + len(name), name
    return [f(torch.full((3,), v)) for v in (5.0, 1.0, 0.0, -1.0)]


@program
def ternary_on_tensor(compiled):
    """A conditional expression on a tensor, in the arguments of a call."""
    @compiled
    def f(x, y):
        return torch.add(x, y if x.mean() > y.mean() else x * 10, alpha=2)
    return f(torch.ones(3), torch.zeros(3)), f(torch.zeros(3), torch.ones(3))


@program
def and_or_on_tensors(compiled):
    """``and``/``or``/``not`` of tensors: the short cut must be taken."""
    @compiled
    def f(x, y):
        if x.sum() > 0 and not y.sum() > 0 or x.max() > 5:
            return x + y
        return x - y
    return [f(torch.full((3,), a), torch.full((3,), b)) for a, b in ((1.0, -1.0), (1.0, 1.0), (6.0, 1.0), (-1.0, -1.0))]


@program
def break_in_arguments(compiled):
    """A break while a call's function and first arguments are on the stack."""
    def join(a, b, *rest, k):
        return a + b * 2 + sum(rest) * k

    @compiled
    def f(x, more):
        return join(x + 1, x.sum().item(), *more, k=x.max().item()) + 1
    return f(torch.ones(3), [1, 2]), f(torch.full((2,), 3.0), [])


@program
def break_in_display(compiled):
    """A break inside a list of a dict of a tuple."""
    @compiled
    def f(x, d):
        return [x + 1, {**d, "k": (x.sum().item(), x * 2), "l": x.shape[0]}, *d.values(), x - 1]
    return f(torch.ones(3), {"a": 1, "k": 2})


@program
def break_in_f_string(compiled):
    """A break inside an f-string with conversions and formats."""
    @compiled
    def f(x):
        y = x * 2
        text = f"of {x.shape[0]!r} [{x.dim():>3}]: {y.sum().item():.2f}, {{}}"
        return y, text
    return f(torch.ones(3)), f(-torch.ones(2))


@program
def break_in_subscript(compiled):
    """A break in the index of a load and of a store."""
    @compiled
    def f(x, items):
        items[int(x.sum())] = items[int(x.max())] + x
        return items
    return f(torch.ones(3), [torch.zeros(3) + i for i in range(4)])


@program
def break_in_augmented_assignment(compiled):
    """``d[key] += value`` where the value breaks."""
    @compiled
    def f(x, d):
        d["n"] += x.sum().item()
        d["t"] *= x
        return d["t"] + d["n"]
    d = {"n": 1, "t": torch.full((3,), 2.0)}
    return f(torch.ones(3), d), f(torch.ones(3), d), d


@program
def break_first_and_last(compiled):
    """A break before any graph, and one after the last."""
    @compiled
    def f(x):
        print("first")
        y = x.cos()
        return print("last"), y
    return f(torch.ones(3))


@program
def unknown_builtin(compiled):
    """A call of C code that Dynamo does not know."""
    @compiled
    def f(x, data):
        y = x + 1
        crc = zlib.crc32(data)
        return y * (crc % 7), crc
    return f(torch.ones(3), b"data"), f(torch.ones(3), b"other")


@program
def assert_on_tensor(compiled):
    """``assert`` on a tensor, holding and failing."""
    @compiled
    def f(x):
        assert x.sum() > 0, "not positive"
        return x + 1
    return f(torch.ones(3)), outcome(f, -torch.ones(3))


@program
def many_locals(compiled):
    """Arguments, new names, a deleted name and an unused one around a break."""
    @compiled
    def f(a, b, unused, *, c=3):
        first, second = a + b, a * c
        gone = first - 1
        third = gone + second
        del gone
        text, number, nothing = "text", 4, None
        print(text, number, nothing)
        return first, second, third, text, number, nothing, c
    return f(torch.ones(2), torch.zeros(2), object())


class Recurrent(torch.nn.Module):
    """Has a layer that torch does not trace, and no graph behind it."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.rnn = torch.nn.LSTM(4, 4, batch_first=True)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(2))
        self.log = []

    def forward(self, x, mask=None):
        h = self.linear(x).relu()  # (torch continues behind two operations and more)
        h, (s, _) = self.rnn(h)
        for layer in self.layers:
            h = layer(h)
            if h.sum() > 1e9:
                break
        else:
            h = h + 1
        try:
            x = h + s[0][:, None]
        except ValueError as error:
            self.log.append(error)
            raise
        finally:
            self.log.append(len(self.log))
        return {"x": x, **{str(at): at for at in self.log}}


@program
def the_rest_runs_in_place(compiled):
    """A break that no resume function continues: the rest of the function stands behind torch's code."""
    torch.manual_seed(0)
    model = Recurrent()
    f = compiled(model)
    return f(torch.ones(2, 3, 4)), f(torch.ones(2, 3, 4)), model.log


@program
def a_part_that_is_not_used(compiled):
    """The same, where one of the values that are unpacked is not used, and a parameter gets another value."""
    torch.manual_seed(0)
    rnn = torch.nn.LSTM(4, 4, batch_first=True)

    @compiled
    def f(x, n):
        h = x * n + x
        h, _ = rnn(h)
        n = None
        return h, n
    return f(torch.ones(2, 3, 4), 2)
