"""Small programs, one reason of torch's each not to compile, or to compile again."""

import collections
import enum
import functools

import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        x = self.linear(x)
        if x.abs().max() > 1e9:
            x = x.clamp(-1, 1)
        return torch.relu(x)


class Model(nn.Module):
    """A break inside the loop over its blocks: torch gives the whole model up."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def break_in_a_loop(compiled):
    model = compiled(Model())
    for size in (3, 5, 1):
        model(torch.randn(size, 4, requires_grad=True))


class Logging(nn.Module):
    """What is on the stack at the break is a bound method of a list."""

    def __init__(self):
        super().__init__()
        self.log = []

    def forward(self, x):
        y = x * 2
        self.log.append(y.sum().item())
        return y + 1


def growing_log(compiled):
    model = compiled(Logging())
    for _ in range(3):
        model(torch.ones(2))


def growing_list(compiled):
    """Generation with a list that grows: the recompile limit."""

    def decode(token, cache):
        cache.append(token * 2)
        return torch.cat(cache).sum()

    step, cache = compiled(decode), []
    for _ in range(5):
        step(torch.ones(1), cache)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        self.step += 1
        return x * self.step


def changing_attribute(compiled):
    model = compiled(Counting())
    for _ in range(3):
        model(torch.ones(2))


def printing(compiled):
    """A frame with a break in a loop of its own, and one that continues behind a break."""

    def shout(x):
        for _ in range(2):
            print("x is", x.shape)
            x = x + 1
        return x

    def once(x):
        y = x + 1
        print("once")
        return y * 2

    compiled(shout)(torch.ones(2))
    compiled(once)(torch.ones(2))


class Base:
    scale = 2


class Other(Base):
    scale = 3


SETTINGS = {"scale": 1}


def kinds():
    """``{name: (function, arguments of each call)}``: each later call matches no version."""
    first, second = Base(), Base()
    second.extra = 3
    x, y = torch.ones(4, 3), torch.ones(4, 3)

    def takes(x, thing):
        return x * thing.scale

    def number(x, n):
        return x * n

    def mode(x, how):
        return x.sum() if how == "sum" else x.mean()

    def flag(x, on):
        return x + 1 if on else x

    def optional(x, other):
        return x.sin() if other is None else x + other

    def member(x, table):
        return x * table["b"] if "b" in table else x.sin()

    def every_key(x, table):
        for value in table.values():
            x = x * value
        return x

    def length(x, items):
        for item in items:
            x = x + item
        return x

    def attribute(x, thing):
        return x * thing.extra if hasattr(thing, "extra") else x.sin()

    def calls(x, function):
        return function(x)

    def of_both(x, y):
        return x.flatten() + y.flatten()

    def from_global(x):
        return x * SETTINGS["scale"]

    def sin(x):
        return x.sin()

    def cos(x):
        return x.cos()

    def keywords(**kwargs):
        return kwargs["ids"] + 1

    with torch.inference_mode():
        inference = torch.ones(4, 3)

    return {
        "size": (sin, [(x,), (torch.ones(5, 3),)]),
        "size 1": (sin, [(x,), (torch.ones(1, 3),)]),
        "dtype": (sin, [(x,), (x.double(),)]),
        "rank": (sin, [(x,), (torch.ones(4),)]),
        "stride": (sin, [(torch.ones(3, 3),), (torch.ones(3, 3).t(),)]),
        "requires_grad": (sin, [(x,), (torch.ones(4, 3, requires_grad=True),)]),
        "class of an argument": (takes, [(x, first), (x, Other())]),
        "number": (number, [(x, 1), (x, 2)]),
        "string": (mode, [(x, "sum"), (x, "mean")]),
        "flag": (flag, [(x, True), (x, False)]),
        "none": (optional, [(x, None), (x, y)]),
        "key": (member, [(x, {"a": 1}), (x, {"a": 1, "b": 2})]),
        "keys": (every_key, [(x, {"a": 1}), (x, {"a": 1, "b": 2})]),
        "length": (length, [(x, [y]), (x, [y, y])]),
        "missing attribute": (attribute, [(x, first), (x, second)]),
        "another function": (calls, [(x, sin), (x, cos)]),
        "no function": (calls, [(x, sin), (x, functools.partial(cos))]),
        "a built-in": (calls, [(x, sin), (x, torch.cos)]),
        "the same tensor twice": (of_both, [(x, y), (x, x)]),
        "global": (from_global, [(x,), (x,)]),
        "grad mode": (sin, [(x,), (x,)]),
        "keyword": (lambda x: keywords(ids=x), [(x,), (torch.ones(5, 3),)]),
        "made in inference mode": (sin, [(x,), (inference,)]),
        "deque": (length, [(x, collections.deque([y])), (x, collections.deque([y, y]))]),
    }


def widening(compiled):
    """Blocks of one class whose weights fix the number of channels."""

    class Widening(nn.Module):
        def __init__(self, ins, outs):
            super().__init__()
            self.linear = nn.Linear(ins, outs)

        def forward(self, x):
            return self.linear(x)

    run = compiled(Widening.forward, dynamic=True)
    for ins, rows in ((2, 3), (4, 3), (2, 1)):
        run(Widening(ins, 5), torch.ones(rows, ins))


def a_frame_without_tensors(compiled):
    """Behind the break there is no tensor in the frame: torch leaves it alone, and says nothing."""

    def helper(x):
        torch._dynamo.graph_break()
        return {"sum": x.sum()}.keys()

    def count(x):
        names = helper(x + 1)
        del x
        return len(names)

    compiled(count)(torch.ones(2))


class Two:
    """Two lists that grow at once: torch names the one that it looks at first."""

    def __init__(self):
        self.first, self.second = [], []

    def run(self, x):
        return x + len(self.first) + len(self.second)


def condition_on_an_open_size(compiled):
    """The second version leaves the size open, and what is computed of it is no ``bool``."""
    attention = torch.nn.functional.scaled_dot_product_attention

    def attend(q):
        return attention(q, q, q, is_causal=q.shape[2] > 4) + 1

    attend = compiled(attend)
    for size in (5, 6, 7):
        attend(torch.randn(1, 1, size, 4))


class Turning(torch.nn.Module):
    """Breaks in a loop."""

    def forward(self, x):
        for _ in range(3):
            x = x * 0.5
            if x.sum() < 1:
                break
        return x


class Around(torch.nn.Module):
    """Calls a method of its own name."""

    def __init__(self):
        super().__init__()
        self.turning = Turning()

    def forward(self, x):
        return self.turning(x) + 1


def break_in_a_method_of_the_same_name(compiling):
    """Compile a ``forward`` that calls another one, which torch gives up."""
    compiling(Around())(torch.ones(4))


def choice_by_a_random_number(compiling):
    """Break at a test that a function outside of torch decides."""
    import random

    @compiling
    def augment(x, on):
        x = x + 1
        if on and random.random() < 0.5:
            x = x * 2
        return x - 1

    augment(torch.ones(3), True)


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


class Pooling(torch.nn.Module):
    """Chooses by a member of an enumeration."""

    def __init__(self, mode):
        super().__init__()
        self.mode = mode

    def forward(self, x):
        match self.mode:
            case Mode.SUM:
                return x.sum()
            case Mode.MEAN:
                return x.mean()


def members_of_an_enumeration(compiling):
    for mode in Mode:
        compiling(Pooling(mode))(torch.ones(3))


class Counted(torch.nn.Module):
    """Counts its calls in a dictionary of a class of its own."""

    def __init__(self):
        super().__init__()
        self.stats = collections.Counter()

    def forward(self, x):
        self.stats["calls"] += 1
        return x * 2


def count_in_a_dictionary(compiling):
    model = compiling(Counted())
    for _ in range(3):
        model(torch.ones(2))


def scaled(x, by):
    y = x * by
    if y.sum() > 0:
        return y + 1
    return y


def shifted(x, by):
    y = x + by
    if y.sum() > 0:
        return y * 2
    return y


def functions_behind_one_wrapper(compiling):
    """Torch compiles partial functions with one wrapper of its own."""
    first, second = compiling(functools.partial(scaled, by=2)), compiling(functools.partial(shifted, by=3))
    for size in (3, 3, 4):
        first(torch.ones(size))
        second(torch.ones(3))


class Inner(torch.nn.Module):
    """A break inside a loop."""

    def forward(self, x):
        for number in range(2):
            if x.sum() > number:
                x = x + 1
        return x


class Outer(torch.nn.Module):
    """The same break, inside a loop of its own, too."""

    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList(Inner() for _ in range(2))

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


class TrainedAlone(torch.nn.Module):
    """Is compiled for training; in evaluation a break in a loop has torch give it up."""

    def forward(self, x):
        if self.training:
            return x * 2
        for number in range(2):
            if x.sum() > number:
                x = x + 1
        return x


def evaluation_that_is_given_up(compiling):
    module = TrainedAlone()
    model = compiling(module)
    for training in (True, False, True):
        module.train(training)
        model(torch.ones(3))


class Holder:
    size = 0


class CountedAndHeld(torch.nn.Module):
    """Counts in a dictionary of a class of its own, then sets an attribute: torch fills the one in a loop."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.stats = collections.Counter()

    def forward(self, x, held):
        x = self.linear(x) + held.size
        self.stats["calls"] += 1
        held.size = x.shape[0]
        return x


def count_and_hold(compiling):
    model, held = compiling(CountedAndHeld()), Holder()
    for _ in range(2):
        model(torch.ones(3, 2), held)


def optimizer_step(compiling):
    """Torch makes an optimizer's parameters and its state attributes of the graph, which writes to them."""
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(3)]
    optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9, foreach=True)
    step = compiling(optimizer.step)
    for _ in range(2):
        sum((weight * 2).sum() for weight in weights).backward()
        step()


def mean_of_messages(nodes, target):
    total = nodes.index_add(0, target, nodes)
    degree = torch.bincount(target, minlength=nodes.shape[0])
    return nodes + total / degree


def messages(compiling):
    compiled = compiling(mean_of_messages)
    for size in (4, 6):
        compiled(torch.ones(size), torch.arange(size))


class EveryOther:
    """Does more in each second step, which the program counts."""

    step = 0

    def update(self, x):
        if self.step % 2 == 0:
            x = x * 2
        return x + 1


def every_other(compiling):
    trainer = EveryOther()
    update = compiling(trainer.update)
    for step in range(4):
        trainer.step = step
        update(torch.ones(3))


class Dropping(torch.nn.Module):
    """Breaks the graph in what its loop calls, at one line, then at another one."""

    def __init__(self):
        super().__init__()
        self.dropped = 0

    def drop(self, x, keep):
        self.dropped += int((~keep).sum())
        return x[keep]

    def forward(self, x):
        for row in (x, x + 1):
            x = x + self.drop(row, row > 0).sum()
        return x


def dropping(compiling):
    compiling(Dropping())(torch.arange(3.0))


def penalty(real):
    real = real.detach().requires_grad_()
    (grad,) = torch.autograd.grad((real * real).sum(), real, create_graph=True)
    return grad.square().sum()


def gradient_penalty(compiling):
    compiling(penalty)(torch.ones(3))


class OnlyTraining(torch.nn.Module):
    def forward(self, x):
        return x * 2 if self.training else x


def evaluation_without_operations(compiling):
    module = OnlyTraining()
    model = compiling(module)
    for training in (True, False):
        module.train(training)
        model(torch.ones(3))


def scaled_by(factor):
    def scale(x):
        return x * factor
    return scale


def functions_of_other_code(compiling):
    """Two functions of one ``def``, one of another, and two built-in ones."""
    def run(function, x):
        return function(x) + 1

    run = compiling(run)
    x = torch.ones(3)
    for function in (scaled_by(x + 1), scaled_by(x + 2), lambda x: x + 2, torch.sin, torch.cos):
        run(function, x)


def sizes_with_one_symbol(compiling):
    """Two sizes that are equal share one symbol of torch's, on which it tests conditions."""
    def write(cache, slots, k):
        cache.view(-1, 4, 8)[slots] = k
        return cache

    compiling(write, dynamic=True)(torch.zeros(32, 4, 4, 8), torch.tensor([1, 2]), torch.ones(2, 4, 8))


from time import perf_counter  # noqa: E402 (golden texts name lines of this file)


class Engine:
    """Its tensors are attributes of an object: behind the break no variable is one."""

    def __init__(self):
        self.weight = torch.ones(3)

    def step(self):
        begin = perf_counter()
        return self.weight.sum() * 2, begin


def rest_without_tensors(compiling):
    compiling(Engine().step)()


class Plus(nn.Module):
    """Breaks its graph, wherever it is called."""

    def forward(self, x):
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2


class Times(Plus):
    def forward(self, x):
        x = x * 3
        torch._dynamo.graph_break()
        return x + 4


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = Plus(), Times()
        self.rnn = nn.GRU(4, 4)

    def forward(self, x):
        x = self.before(x)
        x, _ = self.rnn(x)
        return self.after(x)


def calls_on_both_sides_of_a_break(compiling):
    compiling(Recurrent())(torch.ones(2, 5, 4))


def branch_that_no_call_takes(compiling):
    def mask(x):
        x = x + 1
        if x.sum() < 0:
            x = x * 2
        return x

    compiling(mask)(torch.ones(2))


def size_that_a_layer_uses(compiling):
    """What the size is guarded for is a line of ``nn.Embedding``, which the user's line calls."""
    layer = nn.Embedding(8, 4)

    def embed(tokens):
        return layer(tokens) * 2

    embed = compiling(embed, dynamic=True)
    for count in (3, 1):
        embed(torch.arange(count))


def any_of_a_generator(compiled):
    """`any` is C: torch traces a function of its own in its place, and the graph breaks in that."""
    def sample(logits, requests):
        if any(each["p"] < 1.0 for each in requests):
            logits = logits * 2
        return logits

    compiled(sample)(torch.ones(3), [{"p": torch.tensor(0.5)}])


class OfPacked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.GRU(2, 2)

    def forward(self, packed):
        out, _ = self.rnn(packed)
        return out.data * 2


def packed_sequences(compiling, numbers):
    """Break in a module of torch's, in a method of the same name as the user's."""
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 2), torch.tensor([3, 2]))
    with torch._dynamo.config.patch(allow_rnn=True, capture_scalar_outputs=numbers):
        compiling(OfPacked())(packed)


def arithmetic_on_a_random_number(compiling):
    import random

    def mask(x):
        width = random.randint(1, 3)
        start = random.randint(0, x.size(0) - width)
        return x[start:]

    compiling(mask)(torch.ones(8))


def random_number_that_is_printed(compiling):
    import random

    def f(x):
        width = random.randint(1, 3)
        print(end=str(width)[:0])
        return x * width

    compiling(f)(torch.ones(8))


class Entered:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def doubled(y):
    return y * 2 if y.sum() > 0 else y


def call_in_a_with(y):
    with Entered():
        return doubled(y + 1)


def branch_in_a_try(y):
    try:
        if y.sum() > 0:
            y = y * 2
    except ValueError:
        y = y + 1
    return y


def loop_behind(x):
    x = x + 1
    torch._dynamo.graph_break()
    for row in x:
        if row.sum() > 0:
            x = x * 2
    return x


def break_in_a_loop_behind_a_break(compiling):
    compiling(loop_behind)(torch.ones(2, 2))


class Meter:
    """Shows how far something is."""

    def __init__(self):
        self.n, self.shown = 2, {}

    def update(self):
        self.n += 1
        self.shown.update(rate=0.1)
        if self.n % 2 == 0:
            print(end="")


def progress_behind_a_break(compiling):
    """The second version ends before it looks at the counter, and serves all later calls."""
    bar = Meter()

    def step(x):
        y = x + 1
        bar.update()
        return y * 2

    compiled = compiling(step)
    for _ in range(5):
        compiled(torch.ones(3))


class Bar:
    def __init__(self):
        self.count = 0

    def update(self):
        self.count += 1
        print(end="")


class WithBar:
    def __init__(self):
        self.bar = Bar()

    def step(self, x):
        x = x + 1
        self.bar.update()
        return x * 2


def call_without_tensors(compiling):
    compiling(WithBar().step)(torch.ones(3))


def step_of_an_optimizer(compiling):
    layer = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def update(x):
        y = x[x.sum(1) > -100] * 2
        optimizer.step()
        return y

    run = compiling(update)
    for gradient in (torch.ones(4), None):
        layer.weight.grad, layer.bias.grad = torch.ones(4, 4), gradient
        run(torch.ones(6, 4))


def masked(*args):
    x, mask = args
    return x * 2 if mask is None else x * mask


def argument_behind_a_star(compiling):
    compiled = compiling(masked)
    for size, mask in ((3, None), (4, None), (4, torch.ones(4))):
        compiled(torch.ones(size), mask)


class Counter(nn.Module):
    """Counts its calls, of which no version serves two."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.seen = 0

    def forward(self, x):
        self.seen += 1
        return self.linear(x) * self.seen


def data_parallel_counter(compiling):
    """The wrapper calls the module; another function is compiled, too."""
    model = compiling(nn.parallel.DistributedDataParallel(Counter()))
    scale = compiling(scaled)
    for _ in range(3):
        scale(model(torch.ones(2, 4)).sum(), 2).backward()


def counted_at(confusion, t, p):
    confusion[t[0], p[0]] += 1
    return confusion.sum()


def places_in_tensors(compiling):
    f = compiling(counted_at)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        for i, j in ((0, 0), (1, 2)):
            f(torch.zeros(3, 3), torch.tensor([i, 1]), torch.tensor([j, 2]))


def counted_at_each(confusion, ys, zs):
    for t, p in zip(ys, zs):
        confusion[t, p] += 1
    return confusion.sum()


def index_in_a_loop(compiling):
    f = compiling(counted_at_each)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        f(torch.zeros(3, 3), torch.tensor([0, 1]), torch.tensor([0, 2]))


@functools.lru_cache(maxsize=None)
def rotary(n):
    return torch.arange(n).float().cos()


def marked_and_fixed_behind_a_break(compiling):
    """A size that is marked dynamic and is one value behind the break: torch refuses the version when it is made."""
    def f(x):
        b, d = x.shape
        y = x.reshape(b, 2, d // 2)
        torch._dynamo.graph_break()
        return y.permute(1, 0, 2).reshape(b, d) + x

    x = torch.ones(3, 4)
    torch._dynamo.mark_dynamic(x, 0)
    try:
        compiling(f)(x)
    except Exception:
        pass  # (of which class it is depends on torch)


#: Stands in for what of a backend asks for a condition on a size, and for what calls that.
ASKS = """
def is_short(inputs):
    return not (known := [each for each in inputs if isinstance(each, torch.SymInt)]) or bool(eval(
        asks, {"times": times, "size": known[0], "other": known[-1]}))  # (as torch's cache does)
"""
CALLS = """
def generated(graph, inputs):
    return graph.forward if is_short(inputs) else graph.forward
"""


def told_apart_by_backend(
    times, file="_inductor/codegen/cpp.py", asks="size * times <= 40", sizes=(4, 5, 50), marked=True,
    of_number=False,
):
    """A size with one condition, of the backend's, for its own sake or (times 7) as a part of what is computed.

    Args:
        times: by what the size is multiplied.
        file: of torch's, which asks; one of Inductor's calls it.
        asks: the condition.
        sizes: of the calls.
        marked: the size is marked as dynamic.
        of_number: the sizes are numbers that are added.
    """
    names = {"torch": torch, "times": times, "asks": asks}
    exec(compile(ASKS, f"{torch.__path__[0]}/{file}", "exec"), names)
    exec(compile(CALLS, f"{torch.__path__[0]}/_inductor/compile_fx.py", "exec"), names)

    def program(compiling):
        f = torch.compile(lambda x, n: x + n, backend=names["generated"])
        for size in sizes:
            x = torch.ones(4 if of_number else size)
            if marked:
                torch._dynamo.mark_dynamic(x, 0)
            f(x, size if of_number else 1)

    return program


def grows_beside_an_open_number(compiling):
    @compiling
    def step(x, n, log):
        n = n + 2
        log.append(n)
        return x * n

    log = []
    for n in range(3, 14):
        step(torch.ones(8), n, log)
        log[-1] = "done"


def method_of_a_list_that_grows(compiling):
    @compiling
    def step(x, log):
        log.append((x > 0).float().mean().item())
        return x * 2

    for _ in range(3):
        log = []
        for _ in range(4):
            step(torch.ones(8), log)


def a_constant_on_the_stack(compiling):
    """The 0 lies on the stack when the graph breaks at what is computed after it."""
    def top(x, order, drop):
        return x.index_fill(0, order[drop], 0.0)

    f = torch.compile(top, backend="eager", dynamic=True)
    x = torch.ones(48)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=False):
        f(x, torch.arange(48), torch.arange(48) > 9)


def filled(x, at, chosen):
    return x * x.index_fill(0, at[chosen], 0.0).clamp(max=1).add(x.argmax().item())


def bound_method_on_the_stack(compiling):
    """The index is of a size that the data tells; the number is taken out when `add` is on the stack."""
    compiling(filled)(torch.ones(4), torch.arange(4), torch.arange(4) > 1)


def called_later(x, y):
    method = x.mul
    torch._dynamo.graph_break()
    return method(y)


def bound_method_in_a_variable(compiling):
    compiling(called_later)(torch.ones(4), torch.ones(4))


def greedy_or_not(x, greedy):
    if greedy:
        return int(x.argmax())
    x = x * 2
    return x.softmax(-1)


def remembers(x, seen):
    token = x.argmax().item()
    seen.add(token)
    return x * 2


def looks_up(x, known):
    return x * known.get(x.max().item(), 2)


def numbers_in_a_set(compiling):
    """An integer and a float out of tensors, which torch has symbols for, are hashed."""
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiling(remembers)(torch.ones(4), set())
        compiling(looks_up)(torch.ones(4), {})


class Stacked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).sigmoid()
        return x.softmax(-1)


def trained(compiling):
    """Alike layers that save a value each for the backward pass."""
    torch.compile(Stacked(), backend="aot_eager")(torch.ones(4, 8, requires_grad=True)).sum().backward()


class Renderer(nn.Module):
    """Counts its steps, which a test reads, and what it has seen."""

    def __init__(self):
        super().__init__()
        self.step = 0
        self.stats = {"rays": 0}

    def forward(self, rays):
        self.stats["rays"] += len(rays)
        return rays * 2 if self.step < 10 else rays


def counter_in_two_modes(compiling):
    """One version in the middle is for another thing."""
    model = Renderer()
    compiled = compiling(model)
    for step in range(4):
        model.step = step
        with torch.set_grad_enabled(step != 2):
            compiled(torch.ones(3))


def tested_at_the_end(compiled):
    def deep(x):
        for _ in range(20):
            x = torch.relu(x + 1)
        if torch.isnan(torch.sum(x)):
            x = x * 2
        return x

    run = compiled(deep)
    for size in (2, 3, 4):
        run(torch.ones(size))


def dates(compiling):
    """Features of the calendar, computed inside of what is compiled."""
    from datetime import datetime, timedelta

    def hours(start, number, daily):
        step = timedelta(days=1) if daily else timedelta(hours=1)
        return torch.tensor([(start + place * step).hour for place in range(number)])

    compiling(lambda x, start: x + hours(start, 3, False))(torch.ones(3), datetime(2024, 1, 1))


def array_in_inference_mode(compiling):
    """An error of torch 2.13's, behind a break: what it traced for the array its own guards refuse."""

    @compiling
    def scale(signal):
        torch._dynamo.graph_break()
        return torch.from_numpy(signal).float() * 2

    with torch.inference_mode():
        scale(torch.ones(2, 3).numpy())


def numbers_of_symbols(compiling):
    """With symbols for sizes torch raises an error where the numbers of such a tensor are taken."""

    @compiling
    def decode(scores):
        numbers = torch.unique_consecutive(scores.argmax(-1))
        return numbers.tolist()

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        decode(torch.eye(3))


def loss_over_lines(compiling):
    """An operator that torch names by its own name, in a statement of several lines."""
    import torch.nn.functional as F

    @compiling
    def loss(scores, targets):
        log_probs = F.log_softmax(scores, dim=-1)
        return F.ctc_loss(log_probs, targets, torch.full((1,), 6),
                          torch.full((1,), 2),
                          zero_infinity=True)

    loss(torch.ones(6, 1, 3), torch.tensor([[1, 2]]))


def positive(x):
    return x[x.sum(1) > 0] * 2


def two_calls_of_which_one_breaks(compiling):
    def caller(x):
        x = x + torch.tensor(x.sum().item())
        return positive(x)

    compiling(caller)(torch.ones(6, 4))


def rows_after_a_break(x):
    if x.sum() > 1e9:
        return x
    return [x[0, at] for at in range(x.shape[1])]


def size_that_a_resume_function_fixes(compiling):
    for length in (5, 7, 9):
        compiling(rows_after_a_break)(torch.ones(2, length))


def a_number_in_a_try(compiled):
    """Torch does not resume a function within a ``try``."""

    def step(x):
        y = (x * 2).relu()  # (two operations: torch makes no graph of one here)
        try:
            n = float(y.norm())
        except OverflowError:
            n = 0.0
        return y + n

    compiled(step)(torch.ones(2))
