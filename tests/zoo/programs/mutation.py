"""Side effects on attributes, globals and tensors; aliases and views."""

import torch

from .registry import program

COUNT = 0
TABLE = {}


class Holder:
    def __init__(self, **values):
        self.__dict__.update(values)


@program
def mutate(compiled):
    """An attribute, a list and a dict are written."""
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
def attributes_across_break(compiled):
    """Attributes are set, deleted and set by name, before and after a break."""
    item = Holder(a=1, b=2, c=3)

    @compiled
    def f(x):
        item.a = x + item.b
        del item.b
        print(sorted(vars(item)))
        setattr(item, "d", item.a * 2)
        return getattr(item, "missing", x) + item.d
    return f(torch.ones(3)), vars(item)


@program
def global_write(compiled):
    """Globals are assigned and a global dict filled."""
    global COUNT
    COUNT = 0
    TABLE.clear()

    @compiled
    def f(x):
        global COUNT
        COUNT += 1
        TABLE[COUNT] = x * COUNT
        torch._dynamo.graph_break()
        COUNT += 10
        return x + COUNT
    return f(torch.ones(3)), f(torch.ones(3)), COUNT, dict(TABLE)


@program
def global_tensor_write(compiled):
    """A global is replaced by a computed tensor."""
    global COUNT
    COUNT = torch.ones(3)

    @compiled
    def f(x):
        global COUNT
        COUNT = COUNT + x
        return COUNT * 2
    return f(torch.ones(3)), f(torch.ones(3)), COUNT


@program
def in_place(compiled):
    """A tensor argument is changed in place, on both sides of a break."""
    @compiled
    def f(x, y):
        x.add_(y)
        print(x.shape)
        x *= 2
        y[0] = 7
        return x.sub_(1)
    x, y = torch.ones(3), torch.arange(3.0)
    out = f(x, y)
    return out, x, y, out is x


@program
def slice_assign(compiled):
    """Slices, masks and a scatter are written to a tensor."""
    @compiled
    def f(x):
        x[1:3] = x[:2] * 10
        x[..., -1] += 1
        x[x > 9] = -1
        print("written")
        x.scatter_(0, torch.tensor([0]), 5.0)
        return x.clone()
    x = torch.arange(5.0)
    return f(x), x


@program
def out_argument(compiled):
    """``out=`` of a torch function."""
    @compiled
    def f(x, out):
        torch.add(x, 1, out=out)
        torch._dynamo.graph_break()
        torch.mul(out, 2, out=out)
        return out
    out = torch.zeros(3)
    return f(torch.ones(3), out) is out, out


@program
def views(compiled):
    """A view of an argument is returned; writing to it changes the argument."""
    @compiled
    def f(x):
        view = x.view(2, 2)
        row = view[0]
        torch._dynamo.graph_break()
        row.mul_(3)
        return view, row, x.t() if x.dim() == 2 else x
    x = torch.arange(4.0)
    view, row, same = f(x)
    view[1, 1] = 100
    return x, view, row, same is x


@program
def aliased_arguments(compiled):
    """The same tensor twice, then different ones, then a tensor and its view."""
    @compiled
    def f(a, b):
        a.add_(1)
        return a + b
    x, y = torch.ones(4), torch.zeros(4)
    return f(x, x), f(x, y), f(x, x[:]), x, y


@program
def aliases_across_break(compiled):
    """Two names of one list and of one tensor stay one after a break."""
    @compiled
    def f(x):
        a = b = [x + 1]
        t = u = x * 2
        print(len(a))
        b.append(t)
        u.add_(1)
        return a, a is b, t is u, t
    return f(torch.ones(3))


@program
def returned_argument(compiled):
    """Arguments and their containers are returned as they are."""
    @compiled
    def f(x, items, nothing):
        y = x + 1
        return x, items, items[0], nothing, y, y
    x, items = torch.ones(3), [torch.zeros(2)]
    results = f(x, items, None)
    return results, results[0] is x, results[1] is items, results[2] is items[0], results[4] is results[5]


@program
def tensor_attribute(compiled):
    """An attribute of a tensor is set and read."""
    @compiled
    def f(x):
        x.tag = "seen"
        y = x + 1
        y.label = 3
        print(x.tag)
        return y * y.label
    x = torch.ones(3)
    return f(x), x.tag


@program
def detach_and_data(compiled):
    """``detach`` and ``requires_grad_`` around a break."""
    @compiled
    def f(x):
        y = (x * 2).detach()
        torch._dynamo.graph_break()
        z = y + x
        return y, z
    x = torch.ones(3, requires_grad=True)
    y, z = f(x)
    z.sum().backward()
    return y, y.requires_grad, z, x.grad


@program
def type_with_slots(compiled):
    """An object with ``__slots__`` and its own ``__setattr__``."""
    class Slotted:
        __slots__ = ("a", "writes")

        def __setattr__(self, name, value):
            object.__setattr__(self, name, value)
            if name != "writes":
                object.__setattr__(self, "writes", self.writes + 1)
    item = Slotted()
    item.writes = 0

    @compiled
    def f(x):
        item.a = x + 1
        torch._dynamo.graph_break()
        item.a = item.a * 2
        return item.a - item.writes
    return f(torch.ones(3)), item.a, item.writes
