"""Recompiles by shape, type and value; dynamic and data-dependent sizes."""

import torch

from .registry import outcome, program

SWITCH = None


@program
def dynamic_shapes(compiled):
    """``dynamic=True``: one version for all sizes; the size is used as a number."""
    @compiled(dynamic=True)
    def f(x):
        y = x.view(-1) * x.shape[0]
        torch._dynamo.graph_break()
        return y + x.numel(), x.size(1) + 1
    return [f(torch.ones(n, n + 1)) for n in (2, 3, 4)]


@program
def automatic_dynamic(compiled):
    """The second size makes the dimension dynamic."""
    @compiled
    def f(x, y):
        return torch.cat([x, y]) * x.shape[0]
    return [f(torch.ones(n), torch.zeros(3)) for n in (2, 4, 7, 1)]


@program
def static_shapes(compiled):
    """``dynamic=False``: a version for each size, until a size comes again."""
    @compiled(dynamic=False)
    def f(x):
        return x.reshape(x.shape[0], -1).sum(0)
    return [f(torch.ones(n, 2)) for n in (2, 3, 2)]


@program
def mark_dynamic(compiled):
    """``torch._dynamo.mark_dynamic`` with bounds, and ``mark_static``."""
    @compiled
    def f(x, y):
        return x.sum(1) + y.shape[0], x.shape[0] * 2
    results = []
    for n in (3, 5):
        x, y = torch.ones(n, 4), torch.ones(2)
        torch._dynamo.mark_dynamic(x, 0, min=2, max=10)
        torch._dynamo.mark_static(y, 0)
        results.append(f(x, y))
    return results


@program
def symbolic_arithmetic(compiled):
    """Sizes are divided, compared, minimised and returned across a break."""
    @compiled(dynamic=True)
    def f(x):
        n = x.shape[0]
        half, rest = n // 2, n % 2
        y = x[:half] if n > 4 else x[: max(half, 1)] * 2
        print(half, rest)
        return y, half * n + rest, float(n), [n, -n], n % 3 == 0
    return [f(torch.arange(float(n))) for n in (6, 9, 3)]


@program
def unbacked_sizes(compiled):
    """Data-dependent sizes stay in one graph with ``capture_dynamic_output_shape_ops``."""
    @compiled
    def f(x):
        index = torch.nonzero(x)
        return index * 2, index.shape[0] + 1
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        return f(torch.tensor([0, 1, 2])), f(torch.tensor([3, 0, 0]))


@program
def captured_scalar(compiled):
    """``.item()`` stays in the graph with ``capture_scalar_outputs``."""
    @compiled
    def f(x, y):
        n = y.item()
        torch._check(n >= 0)
        return x * n, torch.zeros(n) + 1, n
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        return f(torch.ones(2), torch.tensor(3)), f(torch.ones(2), torch.tensor(5))


@program
def nonzero_break(compiled):
    """A data-dependent size breaks the graph; the resume function sees many sizes."""
    @compiled
    def f(x):
        chosen = x[x > 1]
        return chosen * 2, chosen.shape[0]
    return [f(torch.arange(float(n))) for n in (3, 5, 8)]


@program
def int_specialisation(compiled):
    """An int is specialised first and dynamic then; 0 and 1 are always special."""
    @compiled
    def f(x, n):
        return x * n + n, n + 1
    return [f(torch.ones(3), n) for n in (2, 3, 4, 1, 0)]


@program
def float_argument(compiled):
    """A float argument that changes, and one that is ``inf``."""
    @compiled
    def f(x, k):
        y = x * k
        print(k)
        return y + k
    return [f(torch.ones(3), k) for k in (0.5, 1.5, 2.5, float("inf"))]


@program
def type_recompiles(compiled):
    """The argument is an int, a float, ``None``, a string, a list, a tensor."""
    @compiled
    def f(x, k):
        if k is None:
            return x
        if isinstance(k, str):
            return x + len(k)
        if isinstance(k, list):
            return x + sum(k)
        return x * k
    return [f(torch.ones(3), k) for k in (2, 2.5, None, "four", [1, 2], torch.arange(3.0))]


@program
def bool_recompiles(compiled):
    """A bool argument and an optional tensor."""
    @compiled
    def f(x, flag, bias=None):
        y = x + 1 if flag else x - 1
        torch._dynamo.graph_break()
        return y if bias is None else y + bias
    x = torch.ones(3)
    return f(x, True), f(x, False), f(x, True, x), f(x, bias=x, flag=False)


@program
def global_recompiles(compiled):
    """A global decides; it changes between the calls."""
    global SWITCH

    @compiled
    def f(x):
        return x * 2 if SWITCH == "double" else x - 1
    results = []
    for SWITCH in (None, "double", "other"):
        results.append(f(torch.ones(3)))
    SWITCH = None
    return results


@program
def tensor_properties_recompile(compiled):
    """Dtype, rank, stride, ``requires_grad`` and class of the tensor change."""
    @compiled
    def f(x):
        return x * 2 + 1
    base = torch.arange(4.0).view(2, 2)
    inputs = [base, base.double(), base.t(), base[0], base.clone().requires_grad_(), torch.nn.Parameter(base.clone())]
    return [f(x) for x in inputs]


@program
def recompile_limit(compiled):
    """More versions than torch keeps: it runs the original from then on."""
    compiling = []

    @compiled(dynamic=False)
    def f(x):
        compiling.append(torch.compiler.is_compiling())
        return x + x.shape[0]
    with torch._dynamo.config.patch(recompile_limit=2):
        return [f(torch.ones(n)) for n in (2, 3, 4, 5)], compiling


@program
def closure_value_recompiles(compiled):
    """A closed-over value and a list's length are guarded."""
    k, items = 2, [1]

    def change():
        nonlocal k
        k = 5
        items.append(2)

    @compiled
    def f(x):
        return x * k + len(items)
    first = f(torch.ones(3))
    change()
    return first, f(torch.ones(3))


@program
def size_guards(compiled):
    """A branch on a dynamic size; a wrong size raises."""
    @compiled(dynamic=True)
    def f(x, y):
        if x.shape[0] > 2 * y.shape[0]:
            return x[: y.shape[0]] + y
        return x + y
    return f(torch.ones(7), torch.ones(3)), f(torch.ones(3), torch.ones(3)), outcome(f, torch.ones(3), torch.ones(4))[0]
