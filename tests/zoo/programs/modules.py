"""``nn.Module``: parameters, buffers, hooks, modes, nesting, and training."""

import torch
from torch import nn

from .registry import program


def linear(rows, columns):
    """A layer with weights that need no random numbers."""
    layer = nn.Linear(columns, rows)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(rows * columns).view(rows, columns) / 10)
        layer.bias.fill_(0.5)
    return layer


def gradients(module):
    return {name: parameter.grad for name, parameter in module.named_parameters()}


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = linear(4, 3), linear(2, 4)

    def forward(self, x):
        x = self.first(x).relu()
        print("between")
        return self.second(x)


@program
def module_forward(compiled):
    """A compiled module with a break, trained one step."""
    module = Small()
    out = compiled(module)(torch.ones(2, 3))
    out.sum().backward()
    return out, gradients(module)


@program
def module_compile_in_place(compiled):
    """``module.compile()`` instead of ``torch.compile``."""
    module = Small()
    module.compile(backend=compiled.backend)
    return module(torch.ones(2, 3)), type(module).__name__


@program
def module_method(compiled):
    """Another method than ``forward`` is compiled."""
    class Model(Small):
        @compiled
        def embed(self, x, times=1):
            for _ in range(times):
                x = self.first(x)[:, :3]
            return x
    model = Model()
    return model.embed(torch.ones(2, 3)), model.embed(torch.ones(2, 3), times=2), model(torch.ones(1, 3))


@program
def train_and_eval(compiled):
    """Dropout: ``eval()`` and ``train()`` give two compiled versions."""
    module = nn.Sequential(linear(4, 3), nn.Dropout(0.5), nn.Tanh())
    step = compiled(module)
    results = [step(torch.ones(2, 3))]
    module.eval()
    results.append(step(torch.ones(2, 3)))
    module.train()
    return results, step(torch.ones(2, 3))


@program
def buffers(compiled):
    """Batch norm updates its running statistics; a counter buffer is replaced."""
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3)
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

        def forward(self, x):
            self.calls += 1
            y = self.norm(x)
            torch._dynamo.graph_break()
            self.calls = self.calls + 10
            return y
    module = Counting()
    step = compiled(module)
    x = torch.arange(6.0).view(2, 3)
    return step(x), step(x * 2), dict(module.named_buffers())


@program
def hooks(compiled):
    """Forward hooks and pre-hooks change what goes in and out; one prints."""
    module = Small()
    log = []
    module.first.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    module.second.register_forward_hook(lambda module, args, out: out + 1)

    def note(module, args, out):
        log.append(tuple(out.shape))
        print("hook")
    module.register_forward_hook(note)
    return compiled(module)(torch.ones(2, 3)), log


@program
def module_containers(compiled):
    """``ModuleList``, ``ModuleDict`` and ``ParameterList``, with a break in a nested module."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Small(), linear(3, 2)])
            self.heads = nn.ModuleDict({"a": linear(1, 3), "b": nn.Identity()})
            self.scales = nn.ParameterList([torch.ones(3), torch.full((3,), 2.0)])

        def forward(self, x, head):
            for layer in self.layers:
                x = layer(x)
            for scale in self.scales:
                x = x * scale
            return self.heads[head](x)
    model = compiled(Model())
    return model(torch.ones(2, 3), "a"), model(torch.ones(2, 3), "b")


@program
def attribute_of_module(compiled):
    """``forward`` writes Python attributes of the module, and one is a tensor."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.calls, self.last = linear(3, 3), 0, None

        def forward(self, x):
            self.calls += 1
            self.last = x = self.layer(x)
            print("calls", self.calls)
            if self.calls > 1:
                self.last = x * 2
            return x
    model = Model()
    step = compiled(model)
    return step(torch.ones(1, 3)), step(torch.ones(1, 3)), model.calls, model.last


@program
def parametrized(compiled):
    """A parametrized weight is computed at each call."""
    class Symmetric(nn.Module):
        def forward(self, weight):
            return weight.triu() + weight.triu(1).t()
    layer = linear(3, 3)
    nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    out = compiled(layer)(torch.arange(3.0))
    out.sum().backward()
    return out, gradients(layer)


@program
def training_steps(compiled):
    """Two steps of training with an optimizer that is not compiled."""
    model = Small()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    step, losses = compiled(model), []
    for _ in range(2):
        optimizer.zero_grad()
        loss = step(torch.ones(2, 3)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, list(model.parameters())


@program
def optimizer_step(compiled):
    """The optimizer's step is compiled."""
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=torch.tensor(0.1), momentum=0.9)

    @compiled
    def step():
        optimizer.step()
        optimizer.zero_grad()
    for value in (1.0, 2.0):
        weight.grad = torch.full((3,), value)
        step()
    return weight, weight.grad, optimizer.state[weight]["momentum_buffer"]


@program
def shared_module(compiled):
    """One layer is used at two places, a subclass extends ``forward``."""
    class Extended(Small):
        def __init__(self):
            super().__init__()
            self.again = self.first

        def forward(self, x, extra=None):
            y = super().forward(x) + self.again(x)[:, :2]
            return y if extra is None else y + extra
    module = Extended()
    step = compiled(module)
    out = step(torch.ones(2, 3)) + step(torch.ones(2, 3), extra=torch.ones(2))
    out.sum().backward()
    return out, gradients(module)


@program
def functional_call_(compiled):
    """``torch.func.functional_call`` with other parameters."""
    layer = linear(2, 3)

    @compiled
    def f(parameters, x):
        return torch.func.functional_call(layer, parameters, (x,))
    parameters = {name: p.detach() * 2 for name, p in layer.named_parameters()}
    return f(parameters, torch.ones(3)), layer(torch.ones(3))


@program
def module_made_inside(compiled):
    """Layers in a plain list, chosen by index behind a break."""
    layers = [linear(3, 3), nn.ReLU(), nn.Softmax(dim=-1)]

    @compiled
    def f(x, order):
        for i in order:
            x = layers[i](x)
        torch._dynamo.graph_break()
        return layers[order[0]](x)
    return f(torch.ones(2, 3), [0, 1]), f(torch.ones(2, 3), [2, 0])
