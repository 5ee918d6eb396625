"""Everything that a call can change, by name: what its arguments and its function lead to.

Named roots become a flat dictionary, ``{"args[0].seen": Plain(3), "global log": Kind("list of 2"),
"global log[0]": ...}``, in an order that depends on the program only. An object is described where it is met first;
:class:`Same` names that place where it is met again. So two runs from the same state can be compared name by name.
"""

from __future__ import annotations

import array
import collections
import contextlib
import functools
import os
import random
import sys
import sysconfig
import types
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from ..capture.object_facts import own_attributes
from ..capture.torch_private import compiled_callables
from ..capture.torch_private.operations import inner_tensors, without_side_effects
from ..capture.torch_private.private_api import COMPILER_MODULES, LEFT_BY_TORCH
from ..decompiler.dynamo.global_names import OWN_GLOBALS
from ..values import frozen
from .reference import Reference, Values

RESULT = "result"  #: The name of what a call returns.
GRADIENT = "gradient of "  #: What names of gradients begin with.
MOST = 50_000  #: After so many objects the rest is left out, and reported as not judged.
_SMALL = 4096  #: A tensor of more elements is copied only if it changed since the call began.
#: Packages of objects that hold no state of the user's.
_NOT_ENTERED = tuple(f"{name}." for name in (
    *COMPILER_MODULES, "logging", "threading", "_thread", "weakref", "importlib", "depyf", "_pytest"))
_LIBRARIES = tuple({os.path.join(path, "") for path in (
    sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"],
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))})
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_IMMUTABLE = (bool, int, float, complex, str, bytes, type(None), type(...), range, slice, torch.dtype, torch.device,
              torch.layout, torch.memory_format)


@frozen
class Plain:
    """A number, text, or another value that is compared as it is."""

    value: Any


@frozen
class Kind:
    """The type of an object and its contents: ``"list of 2"``, ``"dict with keys 'a', 'b'"``."""

    text: str


@frozen
class Same:
    """The object that was met before, at another place."""

    place: str


ALONE = "has memory of its own"  #: What a tensor has that shares memory with no other.


@frozen
class TensorState:
    """A tensor."""

    value: torch.Tensor | None  # a copy; `None` where it is large and was not changed
    #: Type, dtype, shape, device, ...; the place of the first tensor with the same memory, unless that is a result.
    facts: dict[str, object]
    reference: Values | None = None  # its exact and disturbed values, where the run had a `reference.Reference`


class Reachable:
    """A walk over objects, from named roots; large tensors with the ``checksums`` of an earlier walk are not copied."""

    def __init__(
        self, roots: Mapping[str, Any] | None = None, checksums: Mapping[int, int] | None = None,
        reference: Reference | None = None,
    ) -> None:
        self._reference = reference
        self.states: dict[str, Any] = {}  # by name
        self.left_out = False  # something could not be described
        self._before = checksums or {}
        self.checksums: dict[int, int] = {}  # of the large tensors that were met, by id
        self._places: dict[int, str] = {}
        self._memory: dict[int, str] = {}
        self._alive: list[Any] = []
        self._names: set[str] = set()
        self._modules: list[tuple[str, types.ModuleType]] = []
        self._named: collections.Counter[str] = collections.Counter()
        for place, value in (roots or {}).items():
            self.add(place, value)

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors that were met."""
        return [each for each in self._alive if isinstance(each, torch.Tensor)]

    def add(self, place: str, value: Any) -> None:
        """Describe an object and all that it leads to, up to ``MOST`` objects."""
        pending: collections.deque[tuple[str, Any]] = collections.deque([(place, value)])
        most = len(self.states) + MOST
        while pending:
            if len(self.states) >= most:
                self.left_out = True
                return
            pending.extend(self._described(*pending.popleft()))

    def _described(self, place: str, value: Any) -> Iterable[tuple[str, Any]]:
        """Describe one object; return what it leads to, by name."""
        self._named[place] += 1
        if place in self.states:  # (two modules of one name, two parameters as keys: in the same order in each run)
            place = f"{place} ({self._named[place]})"
        if type(value) in _IMMUTABLE:
            self.states[place] = Plain(value)
            return ()
        if isinstance(value, (int, float, str, bytes)):  # (of a class of its own: an enumeration, NumPy's)
            self.states[place] = Plain(float(value)) if isinstance(value, float) else Kind(
                f"{type(value).__qualname__} {value!r}")
            return ()
        known = self._places.get(id(value))
        if known is not None:
            self.states[place] = Same(known)
            return ()
        self._places[id(value)] = place
        self._alive.append(value)
        self._met(place, value)
        if isinstance(value, torch.Tensor):
            return self._tensor(place, value)
        if isinstance(value, types.FunctionType):
            return self._function(place, value)
        if isinstance(value, types.MethodType):
            self.states[place] = Kind(f"method {value.__func__.__qualname__}")
            return ((f"{place}.__self__", value.__self__), (f"{place}.__func__", value.__func__))
        if isinstance(value, type):
            return self._class(place, value)
        if isinstance(value, types.ModuleType):
            self.states[place] = Kind(f"module {value.__name__}")
            if is_library(getattr(value, "__file__", None) or ""):
                return ()
            self._modules.append((place, value))
            return [(f"{place}.{name}", vars(value)[name]) for name in sorted(self._names) if name in vars(value)]
        if isinstance(value, types.CellType):
            try:
                value = value.cell_contents
            except ValueError:
                self.states[place] = Kind("nothing")
                return ()
            return self._described(place, value)
        if type(value).__module__ == "numpy" and getattr(getattr(value, "dtype", None), "kind", "") in tuple("biufc"):
            with contextlib.suppress(TypeError, ValueError):  # (torch has no such dtype)
                self.states[place] = TensorState(torch.tensor(value), {
                    "type": type(value).__name__, "dtype": str(value.dtype), "shape": value.shape})
                return ()
        return self._object(place, value)

    def _met(self, place: str, value: Any) -> None:
        """Do what a subclass does with an object, before what it leads to is described."""

    def _object(self, place: str, value: Any) -> Iterator[tuple[str, Any]]:
        cls = type(value)
        kind = cls.__qualname__
        if isinstance(value, (list, tuple, collections.deque)):
            kind += f" of {len(value)}"
        elif isinstance(value, (set, frozenset)):
            self.left_out |= any(not isinstance(each, (*_IMMUTABLE, int, float, tuple, frozenset)) and not _is_builtin(
                type(each)) and not isinstance(each, type) for each in value)  # (they have no order)
            kind += f" with {', '.join(sorted(map(_short, value)))}"
        elif isinstance(value, dict):
            kind += f" with keys {', '.join(map(_short, value))}"
        elif (own := own_state(value)) is not None:
            kind += f" {own.text()}"
        self.states[place] = Kind(kind)
        if f"{cls.__module__}.".startswith(_NOT_ENTERED) and not isinstance(value, (list, tuple, dict)):
            return
        yield from _items(place, value)
        for name, item in _attributes(value):
            yield f"{place}.{name}", item
        if not _is_builtin(cls) and is_users(cls):
            yield f"class {cls.__qualname__}", cls

    def _class(self, place: str, cls: type) -> Iterator[tuple[str, Any]]:
        self.states[place] = Kind(f"class {cls.__qualname__}")
        if not is_users(cls):
            return
        for name, value in vars(cls).items():
            if name in ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__") \
                    or name.startswith("_abc_") \
                    or isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType)):
                continue
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            elif isinstance(value, property):
                value = value.fget
            yield f"{place}.{name}", value
        for base in filter(is_users, cls.__bases__):
            yield f"class {base.__qualname__}", base

    def _function(self, place: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
        self.states[place] = Kind(f"function {function.__qualname__}")
        code = function.__code__
        if is_library(code.co_filename):
            given = compiled_callables.given_to_compile(function)
            inner = given if given is not None else getattr(function, "__wrapped__", None)
            if inner is not None:
                yield f"{place}.__wrapped__", inner
            return
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            yield f"{name} (captured)", cell
        for number, default in enumerate(function.__defaults__ or ()):
            yield f"{place}.__defaults__[{number}]", default
        for name, default in (function.__kwdefaults__ or {}).items():
            yield f"{place}.__kwdefaults__[{name!r}]", default
        for name, value in vars(function).items():
            if not name.startswith(LEFT_BY_TORCH):
                yield f"{place}.{name}", value
        names = dict.fromkeys(names_read(code))
        for where, module in self._modules:
            for name in names:
                if name not in self._names and name in vars(module):
                    yield f"{where}.{name}", vars(module)[name]
        self._names.update(names)
        for name in names:
            if name in function.__globals__ and not name.startswith(OWN_GLOBALS):
                yield f"global {name}", function.__globals__[name]

    def _tensor(self, place: str, tensor: torch.Tensor) -> Iterable[tuple[str, Any]]:
        with without_side_effects():
            self.states[place] = self._tensor_state(place, tensor)
            items: list[tuple[str, Any]] = []
            if tensor.requires_grad and (tensor.is_leaf or tensor.retains_grad):
                items.append((f"{GRADIENT}{place}", tensor.grad))
            if type(tensor) not in _PLAIN and len(parts := inner_tensors(tensor)) > 1:
                items += [(f"{place}, part {number}", each) for number, each in enumerate(parts)]
        items += [(f"{place}.{name}", value) for name, value in getattr(tensor, "__dict__", {}).items()
                  if not name.startswith("_")]
        return items

    def _tensor_state(self, place: str, tensor: torch.Tensor) -> TensorState | Kind:
        try:
            facts: dict[str, object] = {
                "type": type(tensor).__name__, "dtype": tensor.dtype, "shape": tuple(tensor.shape),
                "device": tensor.device, "requires_grad": tensor.requires_grad, "layout": str(tensor.layout)}
            if tensor.layout is torch.strided and type(tensor) in _PLAIN:
                # (Of dimensions with one element no stride counts; results may share memory as torch likes.)
                facts["stride"] = tuple(
                    step for size, step in zip(tensor.shape, tensor.stride()) if size > 1 and tensor.numel())
                storage = tensor.untyped_storage()
                first = self._memory.setdefault(storage.data_ptr(), place) if storage.nbytes() else place
                is_alone = first == place or first.startswith(RESULT)
                facts["it"] = ALONE if is_alone else f"shares memory with {first}"
                facts["its offset"] = 0 if is_alone else tensor.storage_offset()
            value = self._copied(tensor)
            reference = self._reference.of(tensor) if self._reference is not None and value is not None else None
            return TensorState(value, facts, reference)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            return Kind(f"{type(tensor).__name__} ({type(error).__name__})")

    def _copied(self, tensor: torch.Tensor) -> torch.Tensor | None:
        if tensor.is_meta:
            return None
        if type(tensor) not in _PLAIN:
            parts = inner_tensors(tensor)
            return parts[0].detach().cpu().clone() if len(parts) == 1 and parts[0] is not tensor else None
        plain = tensor.detach().cpu()
        if plain.layout is not torch.strided:
            return plain.to_dense()
        if tensor.numel() > _SMALL:
            sum_ = self.checksums[id(tensor)] = zlib.adler32(plain.contiguous().reshape(-1).view(torch.uint8).numpy())
            if self._before.get(id(tensor)) == sum_:
                return None
        return plain.clone()


def _items(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (dict, types.MappingProxyType)):
        for key, item in value.items():
            yield f"{place}[{_short(key)}]", item
    elif isinstance(value, (list, tuple, collections.deque, type({}.values()), type({}.items()))):
        for number, item in enumerate(value):
            yield f"{place}[{number}]", item
    elif isinstance(value, functools.partial):
        yield f"{place}.func", value.func
        yield f"{place}.args", value.args
        yield f"{place}.keywords", value.keywords


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that an object stores; none is computed."""
    for name, item in own_attributes(value).items():
        if not str(name).startswith(LEFT_BY_TORCH):
            yield str(name), item
    for name, member in slots_of(type(value)):
        with contextlib.suppress(AttributeError):
            yield name, member.__get__(value, type(value))


def slots_of(cls: type) -> Iterator[tuple[str, types.MemberDescriptorType]]:
    """Yield the slots of a class that is none of Python's or torch's own."""
    for each in cls.__mro__:
        if each.__module__ not in ("builtins", "torch"):
            yield from ((name, member) for name, member in vars(each).items()
                        if isinstance(member, types.MemberDescriptorType))


class OwnState(NamedTuple):
    """The state of an object that Python, torch or NumPy hides, as it is now."""

    text: Callable[[], str]
    put_back: Callable[[], object] | None = None  # `None`: the state cannot be restored


def own_state(value: Any) -> OwnState | None:
    """Return the state of an object that is in none of its attributes or items; ``None`` for other objects."""
    numpy = sys.modules.get("numpy")
    if isinstance(value, torch.Generator):
        state = value.get_state()
        return OwnState(lambda: f"state {zlib.adler32(state.numpy())}", lambda: value.set_state(state))
    if isinstance(value, random.Random):
        numbers = value.getstate()
        return OwnState(lambda: f"state {zlib.adler32(repr(numbers).encode())}", lambda: value.setstate(numbers))
    if numpy is not None and isinstance(value, numpy.random.Generator):
        generator, before = value.bit_generator, value.bit_generator.state
        return OwnState(lambda: f"state {before!r}", lambda: setattr(generator, "state", before))
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        is_fixed = isinstance(value, numpy.generic) or not value.flags.writeable
        items = None if is_fixed else value.copy()
        return OwnState(lambda: f"{value.dtype} {value.shape} {value.tolist()!r}",
                        lambda: items is None or value.__setitem__(..., items))
    if hasattr(value, "cache_info") and callable(value.cache_info):
        return OwnState(lambda: str(value.cache_info()))
    if isinstance(value, types.GeneratorType):
        return OwnState(lambda: "ended" if value.gi_frame is None else "not ended")
    if _is_builtin(type(value)) and hasattr(type(value), "__length_hint__"):
        return OwnState(lambda: f"with {value.__length_hint__()} left")
    if isinstance(value, (bytearray, array.array)):
        content: Any = value[:]
        return OwnState(lambda: repr(value), lambda: value.__setitem__(slice(None), content))
    if isinstance(value, torch.Size):
        return OwnState(lambda: repr(value), lambda: None)
    return OwnState(lambda: repr(value)) if type(value).__module__ == "itertools" else None


def _short(value: Any) -> str:
    if isinstance(value, (*_IMMUTABLE, int, float, str, bytes)):
        return repr(value)
    if isinstance(value, (tuple, frozenset)):
        return f"({', '.join(sorted(map(_short, value)) if isinstance(value, frozenset) else map(_short, value))})"
    return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>"


def names_read(code: types.CodeType) -> Iterator[str]:
    """Yield the names that a code object, and those in it, read as globals or attributes."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from names_read(const)


def is_library(file: str) -> bool:
    """Return whether a file belongs to Python or an installed package, or is none."""
    return not file or file.startswith(("<frozen", *_LIBRARIES))


def _is_builtin(cls: type) -> bool:
    return cls.__module__ in ("builtins", "collections", "types", "itertools")


def is_users(cls: type) -> bool:
    """Return whether a class belongs to the program that is judged, not to a library."""
    if cls.__module__.partition(".")[0] in sys.stdlib_module_names and cls.__module__ != "__main__":
        return False
    module = sys.modules.get(cls.__module__)
    return not is_library(getattr(module, "__file__", None) or "<program>")
