"""A training step whose backward pass is compiled as a whole (compiled autograd), with a hook on a parameter."""

import torch

torch.manual_seed(0)


class Net(torch.nn.Module):
    """Two layers with an activation between them."""

    def __init__(self, width=8):
        super().__init__()
        self.first = torch.nn.Linear(width, width)
        self.second = torch.nn.Linear(width, 1)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return self.second(hidden)


net = Net()
net.first.weight.register_hook(lambda grad: grad * 0.5)
compiled = torch.compile(net)


def train(x, y):
    """Return the loss of a step."""
    loss = torch.nn.functional.mse_loss(compiled(x), y)
    loss.backward()
    return loss


with torch._dynamo.utils.maybe_enable_compiled_autograd(True):
    for size in (4, 4):
        print(round(train(torch.ones(size, 8), torch.ones(size, 1)).item(), 4))
print(round(net.first.weight.grad.abs().sum().item(), 4))
