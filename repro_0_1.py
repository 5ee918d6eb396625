"""Version [0/1] after reset 3 of C.f, alone (/a/b.py:3).

    python THIS_FILE [BACKEND]

The captured graph, and inputs of the recorded sizes, strides, dtypes and devices. Their numbers are not in a dump: they
are drawn at random, the same in each run. Eager PyTorch and the backend run the graph; results, gradients and what it
changed in place are compared. Exit status: 0 equal, 1 different.
Recorded with torch 2.13.
"""

# The function that it was captured from:
#   def f(x): ...

import contextlib
import random
import sys

import torch
from torch import device, inf, nan

Max, Min = max, min

BACKEND = 'eager'

# files named below:
#   /a/b.py

class G: pass


def inputs():
    """Return the inputs of the graph, in order."""
    return []


def attributes():
    """Return what the graph reads from itself, by path."""
    return {}


@contextlib.contextmanager
def settings():
    """Set torch as it was when the graph was compiled."""
    with contextlib.ExitStack() as stack:
        torch.set_default_dtype(torch.float32)
        yield


def tensor(shape, stride, dtype, where, grad=False, parameter=False):
    """Return a tensor. Whole numbers are 0 or 1, so that they index whatever they index."""
    span = 1 + sum((size - 1) * step for size, step in zip(shape, stride or ())) if 0 not in shape else 0
    count = span if stride is not None else torch.Size(shape).numel()
    if dtype.is_floating_point or dtype.is_complex:
        wide = dtype if dtype.itemsize >= 4 else torch.float32
        flat = torch.randn(count, dtype=wide).to(dtype)
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
    """Return what a structure holds, in order."""
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in flat(item)]
    if isinstance(value, dict):
        return [each for item in value.values() for each in flat(item)]
    return [value]


def run(backend=None):
    """Run the graph from fresh inputs; return its results, the inputs afterwards, and gradients."""
    seed()
    args, graph = inputs(), built(GraphModule, attributes())
    call = graph if backend is None else torch.compile(graph, backend=backend)
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


def same(one, other):
    """Return why two values differ, an empty text if they are equal."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if one.stride() != other.stride() and one.numel():
            return f"strides {one.stride()} and {other.stride()}"
        try:
            torch.testing.assert_close(one, other, equal_nan=True)
        except AssertionError as error:
            return str(error)
        return ""
    equal = type(one) is type(other) and (one == other or one != one and other != other)
    return "" if equal else f"{one!r} and {other!r}"


def main():
    backend = sys.argv[1] if len(sys.argv) > 1 else BACKEND
    if backend == "inductor":
        import torch._inductor.config

        torch._inductor.config.fallback_random = True  # random numbers as eager PyTorch draws them
    without_inner(GraphModule)
    eager, compiled = run(), run(backend)
    differences = [f"value {number}: {why}" for number, (one, other) in enumerate(zip(eager, compiled))
                   if (why := same(one, other))]
    if len(eager) != len(compiled):
        differences.append(f"{len(eager)} values and {len(compiled)}")
    for difference in differences:
        print(f"eager and {backend} differ: {difference}")
    if not differences:
        print(f"equal: {len(eager)} values of eager and {backend}" if not str(eager[:1]).startswith("['raises")
              else f"equal: both {eager[0].replace('raises', 'raise')}")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
