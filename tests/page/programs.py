"""Programs whose dumps the tests of the page read: ``python programs.py NAME DIRECTORY``."""

import logging
import os
import sys

import torch
from torch import nn

import depyf


def toy(backend="inductor"):
    """A graph break on data, and what goes on behind it."""

    @torch.compile(backend=backend)
    def toy_example(a, b):
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b

    for _ in range(20):
        toy_example(torch.randn(10), torch.randn(10))


def decoder(backend="eager"):
    """A Hugging Face decoder that generates: a break in each step, and a recompile as the text grows."""
    from transformers import LlamaConfig, LlamaForCausalLM

    class Generator(nn.Module):
        def __init__(self):
            super().__init__()
            config = LlamaConfig(
                hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, vocab_size=100, max_position_embeddings=64)
            self.model = LlamaForCausalLM(config).eval()

        def forward(self, tokens):
            logits = self.model(tokens, use_cache=False).logits[:, -1]
            token = logits.argmax(-1)
            if token.item() == 2:  # the end of the text
                return tokens
            return torch.cat([tokens, token[:, None]], dim=1)

    generator = torch.compile(Generator(), backend=backend)
    with torch.no_grad():
        tokens = torch.randint(3, 100, (1, 8))
        for _ in range(3):
            tokens = generator(tokens)


def gradient(backend="inductor"):
    """A function and its gradient: joint, forward and backward graphs, kernels of both, in little time."""

    @torch.compile(backend=backend)
    def waves(x):
        return x.sin().exp().sum()

    waves(torch.ones(4, requires_grad=True)).backward()


def training(backend="inductor"):
    """Layers of a decoder, trained."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "provenance"))
    import decoder as models

    model = torch.compile(models.Decoder(3), backend=backend)
    model(torch.randint(0, 24, (2, 6))).backward()


def shapes(backend="inductor"):
    """Dynamic shapes: a recompile that opens a size, a guard on it, a size that is fixed, a limit."""

    @torch.compile(backend=backend)
    def scaled(x, factor):
        if x.shape[0] > 6:
            return x * factor
        return x + factor

    @torch.compile(backend="eager")
    def numbered(x, n, mode):
        if mode == "twice":
            return x * 2 + n
        return x - n

    for size in (3, 4, 5, 9):
        scaled(torch.ones(size, 2), torch.ones(2))
    with torch._dynamo.config.patch(recompile_limit=3):
        for mode in ("twice", "once", "twice", "other", "more", "most"):
            numbered(torch.ones(3), 1, mode)


def ranks(backend="aot_eager"):
    """Two ranks, one of which breaks."""
    rank = int(os.environ["RANK"])

    @torch.compile(backend=backend)
    def step(x):
        y = x.sin()
        if rank == 1:
            torch._dynamo.graph_break()
        return y.cos().sum()

    step(torch.ones(4))


def main(name, directory):
    torch._logging.set_logs(all=logging.ERROR)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with depyf.prepare_debug(directory):
        globals()[name]()


if __name__ == "__main__":
    main(*sys.argv[1:])
