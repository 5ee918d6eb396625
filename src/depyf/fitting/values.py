"""Described values of a call: tensors by shape, strides, dtype and device, other values as they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

#: Short name of a dtype, as torch prints it in graphs -> its name.
DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "c128": "complex128", "c64": "complex64",
    "c32": "complex32", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32",
    "u16": "uint16", "u8": "uint8", "b8": "bool", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
_SHORT = {name: short for short, name in DTYPES.items()}


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class TensorValue:
    """A tensor without its numbers; the same object is the same tensor.

    Attributes:
        dtype: ``"float32"``.
        device: ``"cpu"``, ``"cuda:0"``.
        cls: ``"Tensor"``, ``"Parameter"``.
        inference: it was made in inference mode.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str = "float32"
    device: str = "cpu"
    requires_grad: bool = False
    cls: str = "Tensor"
    inference: bool = False

    def __str__(self) -> str:
        text = f"{_SHORT.get(self.dtype, self.dtype)}[{', '.join(map(str, self.shape))}]"
        options = [
            *([] if self.stride == contiguous(self.shape) else [f"stride={self.stride}"]),
            *([] if self.device == "cpu" else [f"device={self.device!r}"]),
            *(["grad=True"] if self.requires_grad else []),
            *(["inference=True"] if self.inference else []),
            *([] if self.cls == "Tensor" else [f"cls={self.cls!r}"])]
        return f"{text}({', '.join(options)})" if options else text

    def with_shape(self, shape: Sequence[int]) -> TensorValue:
        """Return the tensor with other sizes, and strides that keep its layout."""
        return dataclasses.replace(self, shape=tuple(shape), stride=_same_layout(self, tuple(shape)))


@dataclasses.dataclass(frozen=True, slots=True)
class Symbol:
    """A constant of torch, by its text: ``torch.float32``, ``device(type='cpu')``."""

    text: str
    type_name: str

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Opaque:
    """An object of which only the type is known, ``""`` if not even that."""

    type_name: str

    def __str__(self) -> str:
        return f"an object of type {self.type_name.rpartition('.')[2]}" if self.type_name else "..."


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _same_layout(tensor: TensorValue, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides for a shape, with dimensions in the same order in memory as those of the tensor."""
    if len(shape) != len(tensor.shape) or tensor.stride == contiguous(tensor.shape):
        return contiguous(shape)
    # Outermost first; of those with one stride a size of 1 is the outer one.
    order = sorted(range(len(shape)), key=lambda at: (-tensor.stride[at], tensor.shape[at] != 1, at))
    inner = contiguous([shape[at] for at in order])
    result = [0] * len(shape)
    dense = contiguous([tensor.shape[at] for at in order])
    for place, at in enumerate(order):
        result[at] = inner[place] if tensor.stride[at] == dense[place] else tensor.stride[at]
    return tuple(result)


def type_name(value: Any) -> str:
    """Return the name of a value's class, as guards have it: ``"int"``, ``"torch.Tensor"``."""
    if isinstance(value, TensorValue):
        return {"Tensor": "torch.Tensor", "Parameter": "torch.nn.parameter.Parameter"}.get(value.cls, value.cls)
    if isinstance(value, Symbol | Opaque):
        return value.type_name
    return type(value).__name__


def shown(value: Any, limit: int = 80) -> str:
    """Return a value as it is written on the command line."""
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        inner = ", ".join(shown(item, limit) for item in value)
        text = f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    elif type(value) is dict:
        text = "{" + ", ".join(f"{shown(key)}: {shown(item, limit)}" for key, item in value.items()) + "}"
    elif isinstance(value, TensorValue | Symbol | Opaque):
        text = str(value)
    else:
        text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
