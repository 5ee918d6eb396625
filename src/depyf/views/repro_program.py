"""The parts of a program of `depyf repro` that are the same in all: imports, and the check."""

IMPORTS = """\
import contextlib
import random
import sys

import torch
from torch import device, inf, nan

Max, Min = max, min
"""

CHECK = '''\
moving = 0  # the number of the run in which each number of the inputs is moved by about its last digit
digit = 0.0  # the last digit of what autocast computes in, relative to a number


def tensor(shape, stride, dtype, where, grad=False, parameter=False):
    """Return a tensor. Whole numbers are 0 or 1, so that they index whatever they index."""
    span = 1 + sum((size - 1) * step for size, step in zip(shape, stride or ())) if 0 not in shape else 0
    count = span if stride is not None else torch.Size(shape).numel()
    if dtype.is_floating_point or dtype.is_complex:
        wide = dtype if dtype.itemsize >= 4 else torch.float32
        flat = torch.randn(count, dtype=wide)
        if moving:
            ways = torch.randint(0, 2, (count,), generator=torch.Generator().manual_seed(moving)) * 2 - 1
            flat = flat * (1 + max(torch.finfo(dtype).eps, digit) * ways)
        flat = flat.to(dtype)
    else:
        flat = torch.randint(0, 2, (count,)).to(dtype)
    flat = flat.to(where)
    made = flat.as_strided(shape, stride) if stride is not None else flat.reshape(shape)
    if parameter:
        return torch.nn.Parameter(made, requires_grad=grad)
    return made.requires_grad_(grad)


def without_inner(kind):
    """Take classes of inner graphs out of their class, where their names would hide the members."""
    inner = {name: value for name, value in vars(kind).items()
             if isinstance(value, type) and issubclass(value, torch.nn.Module)}
    for name, value in inner.items():
        delattr(kind, name)
        without_inner(value)
    kind.inner_graphs = inner


def built(kind, own=None):
    """Return an instance of a graph with its inner graphs and what it reads from itself."""
    made = kind()
    for name, inner in kind.inner_graphs.items():
        setattr(made, name, as_graph(inner))
    for path, value in (own or {}).items():
        *owners, name = path.split(".")
        holder = made
        for owner in owners:
            if not hasattr(holder, owner):
                setattr(holder, owner, torch.nn.Module())
            holder = getattr(holder, owner)
        setattr(holder, name, value)
    return made


def as_graph(kind):
    """Return an inner graph in the form that operators ask for that read it."""
    inner = built(kind)
    if kind.inner_graphs:
        return inner
    try:
        return torch.fx.symbolic_trace(inner)
    except Exception:
        return inner


def seed():
    torch.manual_seed(0)
    random.seed(0)


def flat(value):
    """Return the items of a structure, in order."""
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in flat(item)]
    if isinstance(value, dict):
        return [each for item in value.values() for each in flat(item)]
    return [value]


def run(backend=None):
    """Run the graph from fresh inputs; return its results, the inputs afterwards, and gradients."""
    seed()
    args, graph = inputs(), built(GraphModule, attributes())
    call = graph if backend is None else torch.compile(graph, backend=backend, **ARGUMENTS.get(backend, {}))
    with settings():
        seed()
        try:
            results = flat(call(*args))
        except Exception as error:
            if backend is None:
                return [f"raises {type(error).__name__}"]
            print(f"{backend} raises {type(error).__name__}: {str(error).strip().splitlines()[0]}")
            return [f"raises {type(error).__name__}"]
        leaves = [each for each in (*flat(args), *graph.parameters()) if isinstance(each, torch.Tensor)
                  and each.requires_grad and each.is_leaf]
        sums = [each.sum() for each in results if isinstance(each, torch.Tensor) and each.requires_grad
                and each.is_floating_point()]
        gradients = torch.autograd.grad(sum(sums), leaves, allow_unused=True) if sums and leaves else ()
        gradients = [each if each is None else each.contiguous() for each in gradients]  # (their layout is free)
    return [*results, *flat(args), *gradients]


def strides(one, other):
    """Return how two tensors lie otherwise in memory, an empty text if they do not."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and one.shape == other.shape:
        if one.stride() != other.stride() and one.numel():
            return f"strides {one.stride()} and {other.stride()}"
    return ""


def same(one, other):
    """Return why two values differ, an empty text if they are equal."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        try:
            torch.testing.assert_close(one, other, equal_nan=True)
        except AssertionError as error:
            return str(error)
        return ""
    equal = type(one) is type(other) and (one == other or one != one and other != other)
    return "" if equal else f"{one!r} and {other!r}"


def distance(one, other):
    """Return the largest difference between numbers of two tensors; infinite where there is none."""
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
            and (one.shape, one.dtype) == (other.shape, other.dtype)):
        return inf
    wide = torch.complex128 if one.dtype.is_complex else torch.float64
    one, other = one.detach().to(wide), other.detach().to(wide)
    alike = (one == other) | (one.isnan() & other.isnan())
    return max((one - other).abs().masked_fill(alike, 0).nan_to_num(nan=inf).flatten().tolist(), default=0.0)


def moved():
    """Return what eager PyTorch gives for inputs that are moved by about their last digit, twice."""
    global moving, digit
    runs = []
    with settings():
        digit = max((torch.finfo(torch.get_autocast_dtype(kind)).eps for kind in ("cpu", "cuda")
                     if torch.is_autocast_enabled(kind)), default=0.0)
    for moving in (1, 2):
        runs.append(run())
    moving = 0
    return runs


def main():
    backend = sys.argv[1] if len(sys.argv) > 1 else BACKEND
    if backend == "inductor":
        from torch._inductor import config

        config.fallback_random = True  # random numbers as eager PyTorch draws them
    without_inner(GraphModule)
    eager, compiled = run(), run(backend)
    pairs = list(zip(eager, compiled))
    differences = {number: why for number, pair in enumerate(pairs) if (why := same(*pair))}
    rounded = {}
    if any(distance(*pairs[number]) < inf for number in differences):
        others = [each for each in moved() if len(each) == len(eager)]
        for number in list(differences):
            far = distance(*pairs[number])
            noise = max((distance(eager[number], each[number]) for each in others), default=0.0)
            if far <= 10 * noise and far < inf:
                largest = distance(eager[number], torch.zeros_like(eager[number]))
                rounded[number] = (f"value {number} (at most {largest:.2g}) by {far:.2g}, "
                                   f"{noise:.2g} if the inputs move by their last digit")
                del differences[number]
    for number, pair in enumerate(pairs):
        if why := strides(*pair):
            numbers = "equal up to rounding" if number in rounded else "equal"
            differences[number] = f"{why}; {differences.get(number, f'its numbers are {numbers}')}"
    for number, why in differences.items():
        print(f"eager and {backend} differ: value {number}: {why}")
    if len(eager) != len(compiled):
        print(f"eager and {backend} differ: {len(eager)} values and {len(compiled)}")
    if rounded:
        print(f"different by no more than 10 times what rounding does: {'; '.join(rounded.values())}")
    if differences or len(eager) != len(compiled):
        return 1
    if str(eager[:1]).startswith("['raises"):
        print(f"not judged: both {eager[0].replace('raises', 'raise')}; no value was compared")
        return 2
    print(f"equal{' up to rounding' * bool(rounded)}: {len(eager)} values of eager and {backend}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
