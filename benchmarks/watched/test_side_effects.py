"""Side effects and closures, with and without graph breaks in their middle: compiled, they do what they do in Python.

No test here knows of depyf: ``benchmarks/inside.py`` runs each plain and inside ``prepare_debug``.

Each program is a function of ``c`` (the decorator that compiles) and ``brk`` (called where a graph may break), and
returns all that can be seen of what it did. It runs with four kinds of ``brk``.
"""

import collections
import contextlib
import dataclasses
import functools
import types
import weakref

import pytest
import torch


def nothing():
    pass


def inlined_print():
    print(end="")


BREAKS = {"none": nothing, "explicit": torch._dynamo.graph_break, "nested": inlined_print,
          "disabled": torch._dynamo.disable(lambda: None)}
X = torch.arange(4.0)
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def values(seen):
    if isinstance(seen, torch.Tensor):
        return seen.tolist(), str(seen.dtype), seen.requires_grad
    if isinstance(seen, (list, tuple, collections.deque)):
        return [values(item) for item in seen]
    if isinstance(seen, dict):
        return [(key, values(value)) for key, value in seen.items()]
    if isinstance(seen, (set, frozenset)):
        return sorted(map(str, seen))
    if isinstance(seen, types.SimpleNamespace):
        return values(vars(seen))
    return seen


# --- names ------------------------------------------------------------------------------------------
COUNTER = 0
TABLE = {}
HISTORY = []


@program
def global_is_counted(c, brk):
    global COUNTER
    COUNTER = 0

    @c
    def f(x):
        global COUNTER
        COUNTER += 1
        brk()
        COUNTER += 10
        return x + COUNTER
    return f(X), f(X), COUNTER


@program
def global_is_deleted_and_made(c, brk):
    @c
    def f(x):
        global MADE
        MADE = x.shape[0]
        brk()
        y = x * MADE
        del MADE
        return y
    return f(X), "MADE" in globals()


@program
def global_table(c, brk):
    TABLE.clear()

    @c
    def f(x):
        TABLE["a"] = x + 1
        brk()
        TABLE.setdefault("n", []).append(len(TABLE))
        return TABLE["a"] * 2
    return f(X), f(X), TABLE


@program
def nonlocal_is_counted(c, brk):
    count = 0

    @c
    def f(x):
        nonlocal count
        count += 1
        brk()
        count *= 3
        return x * count
    return f(X), f(X), count


@program
def nonlocal_tensor(c, brk):
    state = torch.zeros(4)

    @c
    def f(x):
        nonlocal state
        state = state + x
        brk()
        state = state * 2
        return state.sum()
    return f(X), f(X), state


@program
def nonlocal_two_deep(c, brk):
    a = b = 1

    def middle(x):
        nonlocal a
        a += 1

        def inner(y):
            nonlocal a, b
            a, b = b + a, a
            brk()
            return y * a
        return inner(x) + b
    f = c(middle)
    return f(X), f(X), a, b


@program
def cell_shared_by_two_functions(c, brk):
    total = []
    last = None

    def push(v):
        nonlocal last
        last = v
        total.append(v)

    @c
    def f(x):
        push(x.shape[0])
        brk()
        push(last + 1)
        return x + last
    return f(X), total, last


@program
def closure_is_returned(c, brk):
    @c
    def f(x):
        scale = x.shape[0]
        y = x + 1
        brk()

        def g(z):
            return z * scale + y
        return g(x), g
    value, g = f(X)
    return value, g(torch.ones(4)), len(g.__closure__)


@program
def closures_over_a_loop(c, brk):
    @c
    def f(x):
        functions = []
        for i in range(3):
            functions.append(lambda y, i=i: y + i)
        brk()
        for g in functions:
            x = g(x)
        return x
    return f(X)


@program
def late_binding(c, brk):
    @c
    def f(x):
        functions = [lambda y: y + i for i in range(3)]
        brk()
        return [g(x) for g in functions]
    return f(X)


@program
def counter_maker(c, brk):
    def counter():
        n = 0

        def step():
            nonlocal n
            n += 1
            return n
        return step
    one, two = counter(), counter()

    @c
    def f(x):
        a = one()
        brk()
        return x + a * 10 + two() + one()
    return f(X), f(X), one(), two()


@program
def default_is_shared(c, brk):
    @c
    def f(x, seen=[]):  # noqa: B006
        seen.append(x.shape[0])
        brk()
        seen.append(len(seen))
        return x * len(seen), seen
    return f(X)[0], f(X)


@program
def cell_deleted_and_bound_again(c, brk):
    @c
    def f(x):
        v = x + 1

        def get():
            return v
        first = get()
        del v
        brk()
        v = x * 2
        return first, get()
    return f(X)


# --- containers -------------------------------------------------------------------------------------
@program
def list_argument(c, brk):
    @c
    def f(x, items):
        items.append(x + 1)
        brk()
        items.insert(0, x.sum())
        items[1] = items[1] * 2
        return len(items)
    items = [X]
    return f(X, items), items


@program
def list_is_aliased(c, brk):
    @c
    def f(x, a, b):
        a.append(1)
        brk()
        b.append(2)
        a.extend(b[:1])
        return x * len(a)
    items = []
    return f(X, items, items), items


@program
def list_is_emptied_and_sorted(c, brk):
    @c
    def f(x, items):
        items.sort(reverse=True)
        top = items.pop()
        brk()
        items.reverse()
        items.remove(3)
        items += [top, x.shape[0]]
        return x + top
    items = [3, 1, 2]
    return f(X, items), items


@program
def list_of_lists(c, brk):
    @c
    def f(x, grid):
        row = [0] * 2
        both = [row, row]
        both[0][1] = 5
        grid.append(both)
        brk()
        both[1].append(x.shape[0])
        return x + row[1]
    grid = []
    out = f(X, grid)
    return out, grid, grid[0][0] is grid[0][1]


@program
def dict_argument(c, brk):
    @c
    def f(x, d):
        d["y"] = x + 1
        d.pop("old", None)
        brk()
        d.update(z=2, y=d["y"] * 2)
        for key in list(d):
            if key == "z":
                del d[key]
        return x + len(d)
    d = {"old": 1, "keep": 2}
    return f(X, d), d


@program
def dict_order(c, brk):
    @c
    def f(x, d):
        value = d.pop("a")
        d["b"] = 1
        brk()
        d["a"] = value
        return x * value
    d = {"a": 2, "b": 0, "c": 3}
    return f(X, d), d


@program
def ordered_and_default_dict(c, brk):
    @c
    def f(x, o, d):
        o.move_to_end("a")
        d["n"].append(x)
        brk()
        d["m"].append(len(o))
        o["z"] = len(d)
        return x + len(d)
    o, d = collections.OrderedDict(a=1, b=2), collections.defaultdict(list)
    return f(X, o, d), list(o.items()), dict(d)


@program
def deque_argument(c, brk):
    @c
    def f(x, q):
        q.append(x.shape[0])
        q.appendleft(0)
        brk()
        return x + q.pop() + len(q)
    q = collections.deque([7, 8], maxlen=5)
    return f(X, q), q


@program
def set_argument(c, brk):
    @c
    def f(x, s):
        s.add(x.shape[0])
        brk()
        s |= {10, 11}
        s.discard(10)
        return x * len(s)
    s = {1}
    return f(X, s), s


@program
def dict_is_iterated_across(c, brk):
    @c
    def f(x, d):
        for key, value in d.items():
            x = x + value
            if key == "b":
                x = x * 2
        brk()
        d["sum"] = x.sum()
        return x
    d = {"a": 1, "b": 2}
    return f(X, d), d


@program
def tuple_holds_what_changes(c, brk):
    @c
    def f(x, pair):
        pair[0].append(x)
        brk()
        pair[1]["k"] = len(pair[0])
        return x + pair[1]["k"]
    pair = ([], {})
    return f(X, pair), pair


# --- objects ----------------------------------------------------------------------------------------
class Box:
    def __init__(self, value=0):
        self.value = value

    def add(self, other):
        self.value = self.value + other
        return self


@program
def attribute_is_set(c, brk):
    @c
    def f(x, box):
        box.value += 1
        brk()
        box.tensor = x * box.value
        return box.tensor + 1
    box = Box(1)
    return f(X, box), vars(box)


@program
def attribute_is_deleted(c, brk):
    @c
    def f(x, box):
        old = box.value
        del box.value
        brk()
        box.other = old
        return x + old
    box = Box(3)
    return f(X, box), vars(box)


@program
def object_is_made_and_returned(c, brk):
    @c
    def f(x):
        box = Box(x)
        brk()
        box.add(1).add(x)
        box.name = "made"
        return box
    box = f(X)
    return type(box).__name__, vars(box)


@program
def property_with_a_setter(c, brk):
    class Limited:
        def __init__(self):
            self._v, self.log = 0, []

        @property
        def v(self):
            return self._v

        @v.setter
        def v(self, new):
            self.log.append(new)
            self._v = min(new, 5)

    @c
    def f(x, o):
        o.v = x.shape[0] + 10
        brk()
        o.v -= 2
        return x + o.v
    o = Limited()
    return f(X, o), o._v, o.log


@program
def slots(c, brk):
    class Slotted:
        __slots__ = ("a", "b")

    @c
    def f(x, o):
        o.a = x.shape[0]
        brk()
        o.b = o.a + 1
        return x * o.b
    o = Slotted()
    return f(X, o), o.a, o.b


@program
def class_attribute(c, brk):
    class Shared:
        total = 0

    @c
    def f(x, o):
        Shared.total += 1
        brk()
        return x + o.total
    return f(X, Shared()), Shared.total


@program
def dataclass_argument(c, brk):
    @dataclasses.dataclass
    class Point:
        x: object
        n: int = 0
        tags: list = dataclasses.field(default_factory=list)

    @c
    def f(x, p):
        p.n += 1
        p.tags.append("a")
        brk()
        q = Point(x * 2, p.n)
        q.tags.append("b")
        p.x = q.x
        return q.x, q.tags, q.n
    p = Point(X)
    return f(X, p), p.n, p.tags, p.x


@program
def callable_object_with_state(c, brk):
    class Step:
        def __init__(self):
            self.n = 0

        def __call__(self, x):
            self.n += 1
            brk()
            return x + self.n
    step = Step()

    @c
    def f(x):
        return step(step(x))
    return f(X), f(X), step.n


@program
def method_of_a_captured_object(c, brk):
    box = Box(torch.zeros(4))
    add = box.add

    @c
    def f(x):
        add(x)
        brk()
        add(1)
        return box.value * 2
    return f(X), f(X), box.value


@program
def getattr_hook(c, brk):
    class Lazy:
        def __init__(self):
            self.asked = []

        def __getattr__(self, name):
            if name.startswith("_") or name == "asked":
                raise AttributeError(name)
            self.asked.append(name)
            return len(name)

    @c
    def f(x, o):
        y = x + o.abc
        brk()
        return y * o.de
    o = Lazy()
    return f(X, o), o.asked


@program
def weak_reference(c, brk):
    box = Box(3)
    ref = weakref.ref(box)

    @c
    def f(x):
        y = x + ref().value
        brk()
        ref().value = 4
        return y
    return f(X), box.value


@program
def module_buffers_and_attributes(c, brk):
    class Running(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))
            self.calls = 0
            self.seen = []

        def forward(self, x):
            self.calls += 1
            self.mean.mul_(0.5).add_(x)
            brk()
            self.seen.append(self.calls)
            self.mean = self.mean + 1
            return x - self.mean
    module = Running()
    f = c(module)
    return f(X), f(X), module.mean, module.calls, module.seen


@program
def hooks_of_a_module(c, brk):
    module = torch.nn.Linear(4, 4)
    torch.nn.init.constant_(module.weight, 0.5)
    torch.nn.init.zeros_(module.bias)
    seen = []

    def hook(mod, arguments, output):
        seen.append(len(arguments))
        brk()
        return output + 1
    module.register_forward_hook(hook)
    f = c(lambda x: module(x).detach())
    return f(X), f(X), seen


# --- tensors ----------------------------------------------------------------------------------------
@program
def tensor_in_place(c, brk):
    @c
    def f(x, y):
        y.add_(x)
        brk()
        y[1:3] *= 2
        x.zero_()
        return y + x
    x, y = X.clone(), torch.ones(4)
    return f(x, y), x, y


@program
def views_see_each_other(c, brk):
    @c
    def f(x):
        v = x[1:]
        v.mul_(2)
        brk()
        x.view(2, 2)[0, 1] = 9
        return v + 1
    x = X.clone()
    return f(x), x


@program
def out_argument(c, brk):
    @c
    def f(x, out):
        torch.add(x, 1, out=out)
        brk()
        out.neg_()
        return out * 2
    out = torch.zeros(4)
    return f(X, out), out


@program
def gradient_across(c, brk):
    w = torch.ones(4, requires_grad=True)

    @c
    def f(x):
        y = (x * w).sin()
        brk()
        return (y * w).sum()
    f(X).backward()
    return w.grad


@program
def grad_mode_across(c, brk):
    @c
    def f(x):
        with torch.no_grad():
            y = x * 2
            brk()
            z = y + 1
        return z.requires_grad, (x * 3).requires_grad, z.detach()
    return f(X.clone().requires_grad_()), torch.is_grad_enabled()


@program
def random_state(c, brk):
    torch.manual_seed(3)

    @c
    def f(x):
        a = torch.rand(4)
        brk()
        return a + torch.rand(4) + x
    return f(X), torch.rand(2)


# --- control ----------------------------------------------------------------------------------------
@program
def try_finally(c, brk):
    log = []

    @c
    def f(x):
        try:
            log.append("body")
            y = x + 1
        finally:
            log.append("end")
        brk()
        log.append("after")
        return y
    return f(X), log


@program
def exception_is_caught(c, brk):
    log = []

    @c
    def f(x):
        try:
            log.append(1)
            raise KeyError("a")
        except KeyError as error:
            log.append(str(error))
        brk()
        return x + len(log)
    return f(X), log


@program
def exception_leaves(c, brk):
    log = []

    @c
    def f(x):
        log.append("before")
        y = x + 1
        brk()
        log.append(y.shape[0])
        raise ValueError("on purpose")
    with contextlib.suppress(ValueError):
        f(X)
    return log


@program
def context_manager_with_state(c, brk):
    log = []

    @contextlib.contextmanager
    def scope(name):
        log.append(f"in {name}")
        try:
            yield name
        finally:
            log.append(f"out {name}")

    @c
    def f(x):
        with scope("a"):
            x = x + 1
        brk()
        with scope("b") as name:
            x = x * len(name)
        return x
    return f(X), log


@program
def generator_with_state(c, brk):
    log = []

    def steps(n):
        for i in range(n):
            log.append(i)
            yield i * 2

    @c
    def f(x):
        for s in steps(3):
            x = x + s
        brk()
        return x * sum(steps(2))
    return f(X), log


@program
def iterator_is_used_up_in_turns(c, brk):
    @c
    def f(x, it):
        a = next(it)
        brk()
        return x + a + next(it)
    it = iter([1, 20, 300])
    return f(X, it), list(it)


@program
def enumerate_and_zip_across(c, brk):
    @c
    def f(x, names):
        out = []
        for i, (name, v) in enumerate(zip(names, (1, 2, 3))):
            out.append((i, name, v))
            x = x + v
        brk()
        return x, out
    return f(X, ["a", "b", "c"])


@program
def branch_on_data(c, brk):
    log = []

    @c
    def f(x):
        log.append("begin")
        if x.sum() > 3:
            log.append("large")
            x = x - 1
        else:
            log.append("small")
        brk()
        return x * len(log)
    return f(X), f(X - 3), log


@program
def early_returns(c, brk):
    log = []

    @c
    def f(x, n):
        log.append(n)
        if n == 0:
            return x
        brk()
        if n == 1:
            return x + 1
        log.append("end")
        return x + 2
    return [f(X, n) for n in (0, 1, 2)], log


@program
def recursion(c, brk):
    log = []

    def down(x, n):
        log.append(n)
        if n == 0:
            brk()
            return x
        return down(x + n, n - 1)
    return c(down)(X, 3), log


@program
def partial_and_decorator(c, brk):
    log = []

    def traced(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            log.append((function.__name__, len(args), sorted(kwargs)))
            return function(*args, **kwargs)
        return wrapper

    @traced
    def scale(x, by, *, plus=0):
        brk()
        return x * by + plus
    f = c(lambda x: functools.partial(scale, plus=1)(x, 2))
    return f(X), log


@program
def star_arguments_across(c, brk):
    @c
    def f(x, *rest, **named):
        rest = [*rest, 1]
        named["k"] = len(rest)
        brk()
        return x + sum(rest), named
    return f(X, 5, 6, j=1)


@program
def many_values_alive(c, brk):
    @c
    def f(x):
        a, b, d, e = x + 1, [x], {"k": x * 2}, "text"
        g = (a, b)
        brk()
        b.append(a)
        d["n"] = len(b)
        return a + d["k"], g, d, e
    return f(X)


@pytest.mark.parametrize("kind", BREAKS)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_compiled_does_the_same(function, kind):
    torch._dynamo.reset()
    with torch.random.fork_rng():
        wanted = values(function(lambda f: f, BREAKS[kind]))
    with torch.random.fork_rng():
        compiled = values(function(functools.partial(torch.compile, backend="eager"), BREAKS[kind]))
    assert compiled == wanted
