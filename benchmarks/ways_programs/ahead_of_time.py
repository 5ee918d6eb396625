"""``torch.compile(...).aot_compile``: compiled ahead of the first call, saved and loaded."""

import os
import tempfile

import torch


def scaled(x, y):
    """Return a sum of products."""
    return (x * 2 + y.sin()).sum(-1)


compiled = torch.compile(scaled, fullgraph=True).aot_compile(((torch.ones(4, 3), torch.ones(4, 3)), {}))
print(compiled(torch.ones(4, 3), torch.zeros(4, 3)).tolist())
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "scaled.bin")
    compiled.save_compiled_function(path)
    with open(path, "rb") as file:
        loaded = torch.compiler.load_compiled_function(file)
    print(loaded(torch.ones(4, 3), torch.zeros(4, 3)).tolist())
