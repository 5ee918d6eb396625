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
    yield from models()


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
