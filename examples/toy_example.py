"""The smallest program with a graph break: a branch on the values of a tensor."""

import sys

import torch

import depyf


@torch.compile(backend=sys.argv[2] if len(sys.argv) > 2 else "eager")
def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


if __name__ == "__main__":
    with depyf.prepare_debug(sys.argv[1] if len(sys.argv) > 1 else "depyf_toy"):
        for _ in range(20):
            toy_example(torch.randn(10), torch.randn(10))
