"""Four programs that are run under many conditions. Each prints what it computes, so that a difference shows."""

TRAIN = '''
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.down(torch.relu(self.up(x)))


def main():
    torch.manual_seed(0)
    model = Net()
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        loss = compiled(torch.randn(3 + step, 4)).square().mean()
        loss.backward()
        optimizer.step()
        print(step, f"{loss.item():.6f}", model.calls, flush=True)
    print(sorted(model.state_dict()), f"{sum(each.double().sum() for each in model.parameters()).item():.5f}")
'''

BREAKS = '''
import torch

log = []


def step(x, mode, scale=2):
    y = x * scale
    log.append(mode)
    print("in step", mode)
    if y.sum() > 3:
        y = y - 1
    return {"y": y, "n": len(log)}


def fails(x):
    y = x + 1
    raise ValueError(f"no {len(log)}")


def main():
    compiled = torch.compile(step, backend="eager")
    for number, mode in ((1, "a"), (2, "a"), (3, "b"), (4, None)):
        result = compiled(torch.ones(number), mode, scale=number)
        print(result["y"].tolist(), result["n"])
    try:
        torch.compile(fails, backend="eager")(torch.ones(2))
    except ValueError as error:
        print("caught", error, error.__cause__, error.__context__)
    print(log, compiled.__name__, step.__code__.co_name)
'''

COPIES = '''
import copy
import io
import pickle

import torch


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(3.0))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += 1
        return x * self.weight + self.seen


def main():
    model = Scaled()
    handle = model.register_forward_hook(lambda module, args, result: result + 1)
    compiled = torch.compile(model, backend="eager")
    print(compiled(torch.ones(3)).tolist())
    other = copy.deepcopy(model)
    print(torch.compile(other, backend="eager")(torch.ones(3)).tolist())
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    print({name: value.tolist() for name, value in torch.load(file, weights_only=True).items()})
    handle.remove()
    print(len(pickle.dumps(model.state_dict())), compiled(torch.ones(3)).tolist(), sorted(vars(model)))
    print([value for value in (compiled(torch.full((3,), float(n))).sum().item() for n in range(3))])
'''

FAILS = '''
import torch

done = []


def broken(x):
    done.append(x.shape[0])
    y = x @ x
    return y.reshape(7)


def main():
    print(torch.compile(torch.sin, backend="eager")(torch.zeros(2)).tolist(), flush=True)
    try:
        torch.compile(broken, backend="eager")(torch.ones(2, 2))
    except Exception as error:
        print(type(error).__name__, done)
    print("the end is an exception", flush=True)
    torch.compile(lambda x: [][x.shape[0]], backend="eager")(torch.ones(2))
'''

PROGRAMS = {"train": TRAIN, "breaks": BREAKS, "copies": COPIES, "fails": FAILS}
