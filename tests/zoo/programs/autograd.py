"""Gradients: backward through compiled code, custom functions, grad modes, autocast, checkpoints, hooks."""

import torch
from torch.utils.checkpoint import checkpoint

from .registry import program


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


@program
def backward_through_break(compiled):
    """Backward goes through two graphs and what is between them."""
    @compiled
    def f(x, w):
        y = (x * w).sin()
        print("between")
        return (y * w).sum()
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    out = f(x, w)
    out.backward()
    return out, x.grad, w.grad


@program
def backward_inside(compiled):
    """``backward()`` is called in the compiled function."""
    @compiled
    def f(x, w):
        loss = (x * w).pow(2).sum()
        loss.backward()
        return loss.detach() + 1
    x, w = torch.ones(2), leaf(3.0, 4.0)
    return f(x, w), w.grad, f(x, w), w.grad


@program
def autograd_grad(compiled):
    """``torch.autograd.grad`` of a compiled function, twice for a double gradient of what is outside."""
    @compiled
    def f(x):
        return (x.exp() * 2).sum()
    x = leaf(0.5, 1.0)
    return torch.autograd.grad(f(x) * 3, x), f(x).requires_grad


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x ** 3 * scale

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * 3 * x ** 2 * ctx.scale, None


@program
def custom_function(compiled):
    """An ``autograd.Function`` inside a graph, with a break after it."""
    @compiled
    def f(x):
        y = Cube.apply(x, 2)
        torch._dynamo.graph_break()
        return (y + Cube.apply(y, 1)).sum()
    x = leaf(1.0, 0.5)
    f(x).backward()
    return x.grad


@program
def custom_function_breaks(compiled):
    """An ``autograd.Function`` whose forward and backward print."""
    class Loud(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            print("forward")
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            print("backward")
            return grad * 2

    @compiled
    def f(x):
        return (Loud.apply(x + 1) * x).sum()
    x = leaf(1.0, 2.0)
    out = f(x)
    out.backward()
    return out, x.grad


@program
def no_grad_function(compiled):
    """``torch.no_grad`` as a decorator, inside and outside of the compiled function."""
    @torch.no_grad()
    def frozen(x):
        return x * 2

    @compiled
    def f(x):
        y = frozen(x)
        return y, x + y

    @torch.no_grad()
    @compiled
    def g(x):
        return x * 3
    x = leaf(1.0, 2.0)
    y, z = f(x)
    z.sum().backward()
    return y.requires_grad, z.requires_grad, x.grad, g(x).requires_grad


@program
def grad_mode_recompiles(compiled):
    """Called with and without grad mode: two versions of one function."""
    @compiled
    def f(x):
        return x * 2 + 1
    x = leaf(1.0, 2.0)
    with torch.no_grad():
        first = f(x)
    second = f(x)
    with torch.inference_mode():
        third = f(torch.ones(2)) + 0
    return first.requires_grad, second.requires_grad, first, second, third.is_inference()


@program
def set_grad_enabled(compiled):
    """The grad mode is switched off by a call, across a break, and on again."""
    @compiled
    def f(x):
        torch.set_grad_enabled(False)
        y = x * 2
        print(torch.is_grad_enabled())
        torch.set_grad_enabled(True)
        return y, x * y
    y, z = f(leaf(1.0, 2.0))
    return y, z, y.requires_grad, z.requires_grad, torch.is_grad_enabled()


@program
def autocast(compiled):
    """A break under ``torch.autocast``."""
    @compiled
    def f(x, w):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ w
            torch._dynamo.graph_break()
            z = y @ w
        return y, z @ w.to(z.dtype)
    x = torch.ones(2, 2)
    return f(x, x * 2)


@program
def checkpointed(compiled):
    """Activation checkpointing inside the compiled function."""
    def block(x, w):
        return torch.sin(x @ w).relu()

    @compiled
    def f(x, w):
        y = checkpoint(block, x, w, use_reentrant=False)
        return (y * 2).sum()
    x, w = torch.ones(2, 2), torch.full((2, 2), 0.3, requires_grad=True)
    f(x, w).backward()
    return w.grad


@program
def tensor_hook(compiled):
    """A hook on an intermediate tensor changes its gradient."""
    def double(grad):
        return grad * 2

    @compiled
    def f(x):
        y = x * 3
        y.register_hook(double)
        return y.sin()
    x = leaf(1.0, 2.0)
    f(x).sum().backward()
    return x.grad


@program
def hook_on_argument(compiled):
    """A hook on an argument, in code that breaks after it."""
    seen = []

    @compiled
    def f(x):
        x.register_hook(lambda grad: grad + 1)
        y = x * 2
        print("hooked")
        return y * x
    x = leaf(1.0, 2.0)
    f(x).sum().backward()
    return x.grad, seen


@program
def retain_and_accumulate(compiled):
    """Gradients add up over two backwards; the second input has another shape."""
    @compiled
    def f(x, w):
        return (x * w).sum()
    w = leaf(3.0)
    for x in (torch.ones(2), torch.arange(3.0), torch.arange(4.0)):
        f(x, w).backward()
    return w.grad


@program
def functorch(compiled):
    """``torch.func.grad`` and ``vmap`` inside."""
    @compiled
    def f(x):
        slope = torch.func.grad(lambda t: (t ** 3).sum())(x)
        return slope, torch.func.vmap(lambda row: row.dot(row))(x.view(2, 2))
    return f(torch.arange(4.0))


@program
def partly_frozen(compiled):
    """Some inputs need gradients, some outputs do not, one output is an input."""
    @compiled
    def f(a, b, c):
        return a * b, c + 1, b, (a > b).float()
    a, b, c = leaf(1.0, 2.0), leaf(3.0, 1.0), torch.ones(2)
    results = f(a, b, c)
    (results[0] + results[1]).sum().backward()
    return results, [r.requires_grad for r in results], results[2] is b, a.grad, b.grad
