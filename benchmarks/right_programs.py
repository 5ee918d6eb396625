"""Programs that torch compiles rightly: the zoo of the tests, models from tiny configs, and small ones.

``programs()`` yields ``(name, kind, run)``; ``run(compile_)`` runs a program with what stands for ``torch.compile``.
"""

from __future__ import annotations

import pathlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

ZOO = pathlib.Path(__file__).resolve().parent.parent / "tests" / "zoo"
#: Programs of the zoo that torch 2.13 compiles wrongly: a deque with a ``maxlen`` is not bounded.
WRONG = ("deque_and_defaultdict",)
#: A model for which torch 2.13 makes gradients of two parameters that share memory, so that ``clip_grad_norm_`` changes
#: them twice (tests/comparing, ``test_gradients_that_share_memory``).
WRONG_MODELS = ("vit",)
#: Architectures of which a model is run, forward at two lengths.
MODELS = 10


class Program(NamedTuple):
    """A program of the corpus.

    Attributes:
        name, kind: of it.
        backend: that it is compiled with.
        run: runs it with a compile decorator and returns what can be observed.
    """

    name: str
    kind: str
    backend: str
    run: Callable[[Any], Any]


def seeded() -> None:
    """Begin with the same random numbers."""
    torch.manual_seed(0)
    random.seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(0)


def programs() -> Iterator[Program]:
    """Yield all of them."""
    sys.path.insert(0, str(ZOO))
    from programs import PROGRAMS  # type: ignore[import-not-found]  # the folder of the tests

    for name, function in PROGRAMS.items():
        if name in WRONG:
            continue
        yield Program(name, "zoo", "eager", function)
    for name, function in small().items():
        for backend in ("aot_eager", "inductor"):
            yield Program(f"{name} ({backend})", "small", backend, function)
    for name, function in numeric().items():
        for backend in ("aot_eager", "inductor"):
            yield Program(f"{name} ({backend})", "numeric", backend, function)
    yield from models()


def numeric() -> dict[str, Callable[[Any], Any]]:
    """Return programs that compute with many operations in each dtype, on eight inputs each; one trains."""
    import torch.nn.functional as F

    def activations(x: Any) -> Any:
        return F.gelu(x), F.silu(x), torch.tanh(x * 3), F.softplus(x), torch.erf(x), torch.sigmoid(-x)

    def powers(x: Any) -> Any:
        return x.abs().sqrt(), (x.abs() + 0.1).rsqrt(), x ** 3, x.exp(), x.abs().log1p(), torch.atan2(x, x.flip(0))

    def reductions(x: Any) -> Any:
        return x.sum(), x.mean(-1), x.var(0), x.norm(), torch.logsumexp(x, -1), x.cumsum(0), x.amax(), x.prod(-1)

    def norms(x: Any) -> Any:
        return F.layer_norm(x, x.shape[-1:]), F.normalize(x, dim=-1), x * (x.pow(2).mean(-1, True) + 1e-6).rsqrt(), (
            x - x.mean(0)) / (x.std(0) + 1e-3)

    def attention(x: Any) -> Any:
        scores = x @ x.transpose(-1, -2) / 3
        mask = torch.ones_like(scores, dtype=torch.bool).tril()
        return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ x, F.scaled_dot_product_attention(
            x[None], x[None], x[None])

    def choices(x: Any) -> Any:
        return x.argmax(-1), x > x.mean(), x.sort(-1).values, x.topk(3).indices, torch.where(x > 0, x, x * 0.01), (
            x.round().long())

    def losses(x: Any) -> Any:
        target = torch.arange(x.shape[0]) % x.shape[1]
        return F.cross_entropy(x, target), F.mse_loss(x, x.flip(0)), F.huber_loss(x, x.roll(1)), F.kl_div(
            x.log_softmax(-1), x.softmax(-1), reduction="batchmean")

    def dropped(x: Any) -> Any:
        return F.dropout(x, 0.3).sum(-1), F.gelu(F.dropout(x, 0.1)) + torch.rand_like(x)

    def tiny(x: Any) -> Any:
        return (x * 1e-6).pow(2).mean(), (x * 1e-4) * (x * 1e-4), (x * 1e-3).std(-1)

    result: dict[str, Callable[[Any], Any]] = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        for function in (activations, powers, reductions, norms, attention, choices, losses, dropped, tiny):
            def run(compiled: Any, function: Any = function, dtype: Any = dtype) -> Any:
                generator = torch.Generator().manual_seed(7)
                call = compiled(function)
                return [call(torch.randn(12, 16, generator=generator).to(dtype)) for _ in range(8)]

            result[f"{function.__name__} {str(dtype)[6:]}"] = run

    def training(compiled: Any) -> Any:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Dropout(0.1),
                                    torch.nn.LayerNorm(32), torch.nn.Linear(32, 4))
        optimizer, losses_ = torch.optim.SGD(model.parameters(), 0.01), []

        def step(x: Any, y: Any) -> Any:
            return F.cross_entropy(model(x), y)

        call = compiled(step)
        for _ in range(8):
            loss = call(torch.randn(12, 16), torch.randint(4, (12,)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses_.append(loss.detach())
        return losses_

    return {**result, "training": training}


def models() -> Iterator[Program]:
    """Yield models of Hugging Face's library, built from tiny configs."""
    from architectures import ARCHITECTURES, LENGTHS, TRAINED

    chosen = [name for name in dict.fromkeys([*TRAINED, *ARCHITECTURES]) if name not in WRONG_MODELS][:MODELS]
    for name in chosen:
        def run(compiled: Any, name: str = name) -> Any:
            model = ARCHITECTURES[name].make()
            train = name in TRAINED
            model.train(train)
            call = compiled(model)
            results = []
            for length in LENGTHS:
                with torch.set_grad_enabled(train):
                    output = call(**ARCHITECTURES[name].inputs(length))
                results.append([each.detach().clone() for each in output.values() if isinstance(each, torch.Tensor)]
                               if isinstance(output, dict) else output)
            return results

        yield Program(name, "model", "aot_eager" if name in TRAINED else "eager", run)


def small() -> dict[str, Callable[[Any], Any]]:
    """Return programs where the numbers of a kernel matter: sums, low precision, random numbers, in-place changes."""
    def calls(function: Callable[..., Any], *inputs: tuple[Any, ...]) -> Callable[[Any], Any]:
        def run(compiled: Any) -> Any:
            call = compiled(function)
            return [call(*each) for each in inputs]
        return run

    def softmax(x: Any) -> Any:
        return torch.softmax(x * 3, -1).sum(0), torch.logsumexp(x, 0)

    def half(x: Any) -> Any:
        return torch.nn.functional.gelu(x.bfloat16() @ x.bfloat16().T) * 0.1 + x.bfloat16().mean()

    def dropout(x: Any) -> Any:
        return torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x)

    def in_place(x: Any) -> Any:
        x.add_(1)
        x[0] = 0
        return x.view(-1), x.T

    def far(x: Any) -> Any:
        return (x * 1e4).sum() - (x * 1e4).cumsum(0)[-1].sum(), x.var(), x.std(0)

    def scaled(x: Any, factor: float) -> Any:
        return x * factor, factor + 1

    def trained(x: Any, w: Any) -> Any:
        return torch.tanh(x @ w).pow(2).mean()

    def sorted_(x: Any) -> Any:
        return x.sort(-1).values, x.argmax(), x.topk(2).values

    def normalised(x: Any) -> Any:
        return torch.nn.functional.layer_norm(x, x.shape[-1:]), torch.nn.functional.batch_norm(
            x, None, None, training=True)

    x = torch.randn(6, 8, generator=torch.Generator().manual_seed(1))
    w = torch.randn(8, 4, generator=torch.Generator().manual_seed(2)).requires_grad_()
    return {
        "softmax": calls(softmax, (x,), (x[:3],)), "half": calls(half, (x,)), "dropout": calls(dropout, (x,), (x,)),
        "in_place": calls(in_place, (x.clone(),), (x.clone(),)), "far": calls(far, (x,)),
        "scaled": calls(scaled, (x, 0.5), (x, 1.5), (x, 2.5)), "trained": calls(trained, (x, w), (x[:2], w)),
        "sorted": calls(sorted_, (x,)), "normalised": calls(normalised, (x,))}
