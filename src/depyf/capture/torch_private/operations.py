"""Each of torch's operations as it runs, below autograd and autocast: its kind and memory; tensors between them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from . import private_api


def watched(
    on_operation: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any],
) -> contextlib.AbstractContextManager[Any]:
    """Have ``on_operation(operation, args, kwargs)`` run each operation and return its result.

    Raises:
        MissingPrivateApi: this torch has no such modes, or does not distinguish free memory.
    """
    base: Any = private_api.DISPATCH_MODE.get()
    for api in (private_api.PYTREE, private_api.STORAGE_REFERENCE):
        api.get()

    class Mode(base):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return on_operation(func, args, kwargs or {})

    mode: contextlib.AbstractContextManager[Any] = Mode()
    return mode


def tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors in arguments or results, in order."""
    return [each for each in private_api.PYTREE.get().tree_leaves(value) if isinstance(each, torch.Tensor)]


def replaced(value: Any, replace: Callable[[Any], Any]) -> Any:
    """Return arguments with other tensors and dtypes."""
    return private_api.PYTREE.get().tree_map_only((torch.Tensor, torch.dtype), replace, value)


def written(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Return the tensors that an operation is declared to change, of its arguments."""
    result: list[torch.Tensor] = []
    for number, parameter in enumerate(func._schema.arguments):
        if parameter.alias_info is not None and parameter.alias_info.is_write:
            result += tensors(args[number] if number < len(args) else kwargs.get(parameter.name))
    return result


def as_read(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return a view of some memory that conjugates and negates as another tensor does when it is read."""
    result = tensor.conj() if like.is_conj() else tensor
    negated: torch.Tensor = private_api.NEGATED.get()(result) if like.is_neg() else result
    return negated


class Memory:
    """Memory of tensors, by which one may find what else uses it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._reference = private_api.STORAGE_REFERENCE.get()(tensor.untyped_storage())

    @staticmethod
    def key(tensor: torch.Tensor) -> int:
        """Return a key of a tensor's memory, as long as a :class:`Memory` of it exists."""
        return int(tensor.untyped_storage()._cdata)

    @property
    def is_free(self) -> bool:
        """Whether no tensor uses it any more."""
        return bool(self._reference.expired())


# --- tensors of a running program, looked at without side effects ----------------------------------------
@contextlib.contextmanager
def without_side_effects() -> Iterator[None]:
    """Inside, no gradients are recorded, and the user's ``TorchDispatchMode`` and its like see no operations."""
    with contextlib.ExitStack() as stack:
        for api in (private_api.NO_DISPATCH_MODES, private_api.NO_TORCH_FUNCTION):
            stack.enter_context(api.get_or(contextlib.nullcontext)())  # (without it such a mode sees what we do)
        stack.enter_context(torch.no_grad())
        yield


def holds_data(tensor: Any) -> bool:
    """Return whether there are numbers to look at: not in meta and fake tensors, nor while a CUDA graph records."""
    if tensor.is_meta or tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        return False
    return not isinstance(tensor, private_api.FAKE_TENSOR.get_or(()))


def inner_tensors(tensor: Any) -> list[Any]:
    """Return the plain tensors that a tensor is made of: the parts of a subclass, the values of a sparse one."""
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
