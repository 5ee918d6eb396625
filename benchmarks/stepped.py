"""Ten small programs that differ in what torch.compile makes of them; each runs forward and backward.

``PROGRAMS`` maps a name to a :class:`Program`: a function (or module) to compile, and what makes its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch


class Program(NamedTuple):
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]


def vector(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (10,)), requires_grad=True)


def toy_example(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def one_graph(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() + 1).relu() * x


def three_breaks(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a = x * y
    torch._dynamo.graph_break()
    b = a + x
    torch._dynamo.graph_break()
    c = b * a - y
    torch._dynamo.graph_break()
    return c.tanh() + b


def containers(x: torch.Tensor) -> dict[str, Any]:
    parts = [x * i for i in range(1, 4)]
    return {"sum": sum(parts), "parts": parts, "kind": x.dtype, "shape": tuple(x.shape)}


def make_closure() -> Callable[..., torch.Tensor]:
    scale = torch.ones(1) * 3
    powers = [2.0]

    def closure(x: torch.Tensor, *rest: torch.Tensor, bias: float = 1.0) -> torch.Tensor:
        return x ** powers[0] * scale + sum(rest) + bias
    return closure


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(10, 10)
        self.second = torch.nn.Linear(10, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu()) + x


class Gated(torch.nn.Module):
    """A break inside a context, and a break in a method that it calls."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = torch.nn.Linear(10, 10)

    def decide(self, x: torch.Tensor) -> bool:
        return x.detach().mean().item() > 100

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            limit = x.abs().max()
            torch._dynamo.graph_break()
            limit = limit + 1
        if self.decide(x):
            return x
        return torch.sigmoid(self.gate(x)) * x / limit


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        (x,) = context.saved_tensors
        return gradients[0] * 2 * x


def own_gradient(x: torch.Tensor) -> torch.Tensor:
    return Doubled.apply(x) + x


def in_place(x: torch.Tensor, into: list[torch.Tensor]) -> torch.Tensor:
    y = x * 2
    y.mul_(x)
    into.append(y)
    torch._dynamo.graph_break()
    into.append(y + 1)
    return y + into[-1]


def printed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = (x + y).exp()
    print("shape", tuple(z.shape), flush=True)
    return z.log() * y


PROGRAMS: dict[str, Program] = {
    "toy_example": Program(toy_example, lambda: (vector(), vector())),
    "one_graph": Program(one_graph, lambda: (vector(),)),
    "three_breaks": Program(three_breaks, lambda: (vector(), vector())),
    "containers": Program(containers, lambda: (vector(),)),
    "closure": Program(make_closure(), lambda: (vector(), vector())),
    "layers": Program(Layers(), lambda: (vector(2, 10),)),
    "gated": Program(Gated(), lambda: (vector(2, 10),)),
    "own_gradient": Program(own_gradient, lambda: (vector(),)),
    "in_place": Program(in_place, lambda: (vector(), [])),
    "printed": Program(printed, lambda: (vector(), vector())),
}


def backward(result: Any) -> None:
    """From the sum of all tensors in the result."""
    tensors = [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
    if tensors:
        torch.stack([t.sum() for t in tensors]).sum().backward()


def step(function: Callable[..., Any], program: Program, seed: int = 0) -> list[torch.Tensor]:
    """One call and its backward: the results' tensors and the gradients of the arguments."""
    torch.manual_seed(seed)
    arguments = program.arguments()
    result = function(*arguments)
    backward(result)
    leaves = torch.utils._pytree.tree_leaves((result, arguments))
    return [t.detach() for t in leaves if isinstance(t, torch.Tensor)] + [
        t.grad for t in leaves if isinstance(t, torch.Tensor) and t.is_leaf and t.grad is not None]
