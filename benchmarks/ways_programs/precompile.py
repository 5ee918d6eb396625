"""Precompilation: what Dynamo and Inductor make is put into a package, and compiled from it after a reset."""

import torch


def scaled(x):
    """Return a sum after a graph break."""
    y = x * 2
    torch._dynamo.graph_break()
    return (y + 1).sum(-1)


with torch._dynamo.config.patch(caching_precompile=True):
    compiled = torch.compile(scaled)
    print(compiled(torch.ones(4, 3)).tolist())
    saved, info = torch.compiler.save_cache_artifacts()
    print(sorted(info.artifacts))
    torch._dynamo.reset()
    torch.compiler.load_cache_artifacts(saved)
    print(torch.compile(scaled)(torch.ones(4, 3)).tolist())
