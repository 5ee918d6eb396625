"""Looking at tensors of a running program without side effects."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from . import private_api


@contextlib.contextmanager
def without_side_effects() -> Iterator[None]:
    """Inside, no gradients are recorded, and the user's ``TorchDispatchMode`` and its like see no operations."""
    import torch

    with contextlib.ExitStack() as stack:
        for api in (private_api.NO_DISPATCH_MODES, private_api.NO_TORCH_FUNCTION):
            stack.enter_context(api.get_or(contextlib.nullcontext)())  # (without it such a mode sees what we do)
        stack.enter_context(torch.no_grad())
        yield


def holds_data(tensor: Any) -> bool:
    """Return whether there are numbers to look at: not in meta and fake tensors, nor while a CUDA graph records."""
    import torch

    if tensor.is_meta or tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        return False
    return not isinstance(tensor, private_api.FAKE_TENSOR.get_or(()))


def inner_tensors(tensor: Any) -> list[Any]:
    """Return the plain tensors that a tensor is made of: the parts of a subclass, the values of a sparse one."""
    import torch

    flatten = getattr(type(tensor), private_api.SUBCLASS.key, None)
    if flatten is not None:
        names, _ = flatten(tensor)
        return [each for name in names for each in inner_tensors(getattr(tensor, name))]
    if tensor.layout is not torch.strided:
        if tensor.layout is torch.sparse_coo:
            return [tensor._values()]
        return [tensor.values()] if hasattr(tensor, "values") and tensor.layout is not torch.jagged else []
    if tensor.is_quantized:
        return []
    return [tensor]


def version(tensor: Any) -> int | None:
    """Return torch's count of changes to the tensor's memory; ``None`` where torch has none."""
    with without_side_effects():
        return None if tensor.is_inference() else int(tensor._version)
