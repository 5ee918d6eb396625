"""What a user can tell torch: leave this alone, take this whole, compile without breaks or not at all."""

import torch

from .registry import outcome, program


@program
def disabled_helper(compiled):
    """``torch._dynamo.disable``: the helper runs as it is, between two graphs."""
    calls = []

    @torch._dynamo.disable
    def helper(x):
        calls.append(torch.compiler.is_compiling())
        return x * 2

    @compiled
    def f(x):
        return helper(x + 1) - 1
    return f(torch.ones(3)), calls


@program
def disabled_not_recursive(compiled):
    """``torch.compiler.disable(recursive=False)``: what the helper calls is compiled again."""
    def leaf(x):
        return x.sin() + x.cos()

    @torch.compiler.disable(recursive=False)
    def helper(x):
        return leaf(x) * 2

    @compiled
    def f(x):
        return helper(x + 1) - 1
    return f(torch.ones(3))


@program
def allowed_in_graph(compiled):
    """``allow_in_graph``: the helper is one node of the graph."""
    @torch._dynamo.allow_in_graph
    def helper(x):
        return x * 2 + 1

    @compiled
    def f(x):
        return helper(x) - x
    return f(torch.ones(3)), f(torch.zeros(3))


@program
def is_compiling(compiled):
    """A branch on ``torch.compiler.is_compiling()``."""
    @compiled
    def f(x):
        if torch.compiler.is_compiling():
            return x + 1
        return x - 1
    return f(torch.ones(3))


@program
def full_graph(compiled):
    """``fullgraph=True`` of a function without breaks."""
    def square(x):
        return x * x

    @compiled(fullgraph=True)
    def f(x, y):
        return {"sum": square(x) + square(y), "pair": (x, y)}
    return f(torch.arange(3.0), torch.ones(3))


@program(skipped_by_torch=True)
def full_graph_fails(compiled):
    """``fullgraph=True`` of a function that breaks: torch raises."""
    @compiled(fullgraph=True)
    def f(x):
        y = x + 1
        print("no")
        return y
    return outcome(f, torch.ones(3))[0]


@program
def eager_stance(compiled):
    """``torch.compiler.set_stance``: the second call runs the original."""
    seen = []

    @compiled
    def f(x):
        seen.append(torch.compiler.is_compiling())
        return x + 1
    first = f(torch.ones(3))
    with torch.compiler.set_stance("force_eager"):
        return first, f(torch.ones(4)), seen
