"""Known values of a call, by the user's names for them, and by look-ups.

A tensor is described by its shape, strides, dtype and device; other values are as they are.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..model.graph import SHORT_DTYPES
from ..model.guards import State
from ..model.reading import condition_of
from ..records.model import Capture, Frame
from ..torch_text.guard_failures import STATES, is_autocast
from ..torch_text.parsed import literal, parsed_expression, parsed_file
from ..torch_text.user_expressions import user_expression


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class TensorValue:
    """A tensor without its numbers; the same object is the same tensor."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str = "float32"  # `"float32"`
    device: str = "cpu"  # `"cpu"`, `"cuda:0"`
    requires_grad: bool = False
    cls: str = "Tensor"  # `"Tensor"`, `"Parameter"`
    inference: bool = False  # it was made in inference mode

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value, usual in (
            ("stride", self.stride, contiguous(self.shape)), ("device", self.device, "cpu"),
            ("grad", self.requires_grad, False), ("inference", self.inference, False), ("cls", self.cls, "Tensor"))
            if value != usual)
        sizes = ", ".join(map(str, self.shape))
        return f"{SHORT_DTYPES.get(self.dtype, self.dtype)}[{sizes}]" + (f"({options})" if options else "")

    def with_shape(self, shape: Sequence[int]) -> TensorValue:
        """Return the tensor with other sizes, and strides with which its dimensions have the same order in memory."""
        stride = list(contiguous(shape))
        if len(shape) == len(self.shape) and self.stride != contiguous(self.shape):
            # Outermost first; of those with one stride a size of 1 is the outer one.
            order = sorted(range(len(shape)), key=lambda at: (-self.stride[at], self.shape[at] != 1, at))
            dense, inner = (contiguous([sizes[at] for at in order]) for sizes in (self.shape, shape))
            for place, at in enumerate(order):
                stride[at] = inner[place] if self.stride[at] == dense[place] else self.stride[at]
        return replace(self, shape=tuple(shape), stride=tuple(stride))


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


def type_name(value: Any) -> str:
    """Return the name of a value's class, as guards have it: ``"int"``, ``"torch.Tensor"``."""
    if isinstance(value, TensorValue):
        return {"Tensor": "torch.Tensor", "Parameter": "torch.nn.parameter.Parameter"}.get(value.cls, value.cls)
    if isinstance(value, Symbol | Opaque):
        return value.type_name
    return type(value).__name__


def shown(value: Any, limit: int = 80) -> str:
    """Return a value as it is written on the command line."""
    if type(value) in (list, tuple):
        inner = ", ".join(shown(item, limit) for item in value)
        text = f"[{inner}]" if type(value) is list else f"({inner}{',' if len(value) == 1 else ''})"
    elif type(value) is dict:
        text = "{" + ", ".join(f"{shown(key)}: {shown(item, limit)}" for key, item in value.items()) + "}"
    else:
        text = str(value) if isinstance(value, TensorValue | Symbol | Opaque) else repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


# --- Known values of a call --------------------------------------------------------------------------
#: Marks a name that has no value.
UNKNOWN = object()
_MOST_NAMES = 40  #: Most known names that a message lists.


class Given:
    """The known values of a call.

    Args:
        values: by the user's expression: ``{"x": TensorValue(...), "self.training": False}``.
        state: of torch, by the names of ``check_global_state``: ``{"grad_mode": True}``.
        look: finds what is not in ``values`` in a running program; ``UNKNOWN`` where that cannot be done.
    """

    def __init__(
        self, values: Mapping[str, Any], state: Mapping[str, Any] | None = None,
        look: Callable[[ast.expr], Any] | None = None,
    ) -> None:
        self.values = dict(values)
        self.state = dict(state or {})
        self._look = look
        self.roots = {_root(name) for name in self.values}

    def get(self, node: ast.expr) -> Any:
        """Return the value of an expression of torch's (``L['x']``); ``UNKNOWN`` if it is not given as a whole."""
        name = words(node)
        if name in self.values:
            return self.values[name]
        # (A part of what changed, `x.size()[0]`, is read from the new value: the program has the old one.)
        return UNKNOWN if self._look is None or self.names(name) else self._look(node)

    def names(self, expression: str) -> bool:
        """Return whether an expression in the user's words is of something that was given."""
        return any(expression == name or expression.startswith((f"{name}.", f"{name}[", f"{name} "))
                   for name in self.values)

    def may_know(self, names: frozenset[str]) -> bool:
        """Return whether any of these locals or globals could be given: most conditions of a model are on others."""
        return self._look is not None or not self.roots.isdisjoint(names)

    def with_state(self, state: Mapping[str, Any]) -> Given:
        """Return the same call with further settings of torch."""
        return Given(self.values, {**state, **self.state}, self._look)

    def changed(self, changes: Mapping[str, Any]) -> Given:
        """Return the same call with other values."""
        state = {name: item for name, item in changes.items() if name in self.state and name not in self.values}
        return Given({**self.values, **{name: item for name, item in changes.items() if name not in state}},
                     {**self.state, **state}, self._look)


#: Returns the syntax tree of a condition, which is shared and must not be changed.
parsed = functools.lru_cache(maxsize=16384)(parsed_expression)


def words(node: ast.expr) -> str:
    """Return a source expression of torch's in the user's words: ``L['self']._modules['norm']`` is ``self.norm``."""
    return user_expression(ast.unparse(node))


def _root(name: str) -> str:
    tree = parsed_expression(name)
    while isinstance(tree, ast.Attribute | ast.Subscript):
        tree = tree.value
    return tree.id if isinstance(tree, ast.Name) else name


def described_call(frame: Frame, values: Mapping[str, Any], state: Mapping[str, Any] | None = None) -> Given:
    """Return a call of a recorded function; parameters that were left out have their defaults (literals)."""
    tree = _signature(frame)
    named = [*tree.posonlyargs, *tree.args]
    pairs = (*zip(named[len(named) - len(tree.defaults):], tree.defaults), *zip(tree.kwonlyargs, tree.kw_defaults))
    return Given({**{parameter.arg: value for parameter, default in pairs
                     if default is not None and (value := literal(default)) is not ...}, **values}, state)


def known_names(frame: Frame, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by names that the function knows; of keyword arguments in ``**kwargs`` the name alone will do.

    Raises:
        ValueError: a name is neither a parameter nor read by a condition; the message has the closest ones.
    """
    title = frame.title or frame.name
    tree = _signature(frame)
    packed = tree.kwarg.arg if tree.kwarg is not None else ""
    nodes = [node for entry in frame.entries for guard in entry.guards
             for node in ast.walk(parsed(guard.expression) or ast.Pass())]
    read, keys = set[str](), set[str]()
    for node in nodes:
        match node:
            case ast.Subscript(ast.Name("L" | "G"), ast.Constant(str(name))):
                read.add(name)
            case ast.Subscript(owner, ast.Constant(str(name))) if packed and words(owner) == packed:
                keys.add(name)
    parameters = {each.arg for each in (*tree.posonlyargs, *tree.args, *tree.kwonlyargs)}
    known = {*read, *parameters, *frame.arguments, *frame.freevars}
    paths: set[str] | None = None  # what conditions are on
    result: dict[str, Any] = {}
    for name, value in values.items():
        root = name.partition(".")[0].partition("[")[0].partition("(")[0]
        if root in keys and root not in parameters:
            result[f"{packed}[{root!r}]{name[len(root):]}"] = value
            continue
        if known and root not in known and root.isidentifier():
            raise unknown_name(title, root, {*known - {packed}, *keys})
        if name != root:
            if paths is None:
                paths = {words(node) for node in nodes if isinstance(node, ast.Attribute | ast.Subscript)}
            as_read = name.replace(".shape[", ".size()[")
            if paths.isdisjoint((name, as_read)):
                raise unknown_name(f"what versions of {title} ask for", name,
                                   {each for each in paths if each != root and _root(each) == root})
            name = name if name in paths else as_read
        result[name] = value
    return result


def known_state(frame: Frame, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of torch by their names in ``check_global_state``, or ``inference_mode``.

    They may be written as the calls that return them, ``torch.is_grad_enabled()``.

    Raises:
        ValueError: torch guards no such setting; the message has the closest ones.
    """
    settings = {**STATES, "inference_mode": "torch.is_inference_mode_enabled()"}  # (conditions on tensors are of it)
    calls = {call: name for name, call in settings.items()}
    states = (condition_of(guard) for entry in frame.entries for guard in entry.guards if guard.kind == "GLOBAL_STATE")
    known = {*settings, "autocast", *(name for one in states if isinstance(one, State) for name, _ in one.settings)}
    named = {calls.get(name, name): value for name, value in values.items()}
    for name in named:
        if name not in known:
            if is_autocast(name):
                raise ValueError(f"{name}: say it with the dtype, autocast={{'cpu': torch.bfloat16}}, or autocast={{}}")
            raise unknown_name("what torch guards", name, known | calls.keys())
    return named


def unknown_name(owner: str, name: str, known: Collection[str]) -> ValueError:
    """Return the error for an unknown name; its message has the closest one, and the known ones."""
    close = difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean {close[0]}?" if close else "."
    users = sorted(each for each in known if not each.startswith("__"))  # (others are torch's, for modules)
    there = f" It has {', '.join(users[:_MOST_NAMES])}{', ...' if len(users) > _MOST_NAMES else ''}."
    return ValueError(f"{owner} has no {name}{meant}{there if users else ''}")


def _signature(frame: Frame) -> ast.arguments:
    """Return the parameters of a function; none where they are not known."""
    function = parsed_file(f"def f({frame.signature}): pass") or ast.parse("def f(): pass")
    return next(each for each in ast.walk(function) if isinstance(each, ast.arguments))


def symbol_of(node: ast.expr) -> Symbol | None:
    """Return a constant of torch's that an expression names: ``torch.float32``, ``device(type='cpu')``."""
    match node:
        case ast.Attribute(ast.Name("torch"), str(name)):
            return Symbol(f"torch.{name}", "torch.dtype")
        case ast.Call(ast.Name("device"), [], [ast.keyword("type"), *_]):
            return Symbol(ast.unparse(node), "torch.device")
    return None


# --- functions of a dump by name ----------------------------------------------------------------------
class NoSuchFunction(ValueError):
    """A dump has no function of a name; the message lists those that it has."""


def frame_of(capture: Capture, name: str) -> Frame:
    """Return the function or resume function of a name, without versions whose compilation failed.

    Args:
        name: ``"Decoder.forward"``, ``"forward"``, ``"__resume_at_10_2"``; or the id of a version, ``"0/1"``.

    Raises:
        NoSuchFunction: there is none, or several; the message lists those that there are.
    """
    lost, frames = capture.lost, list[tuple[Frame, str, list[str]]]()  # with its name, and the ids of its versions
    for function in capture.functions:
        for number, frame in enumerate(function.frames):
            entries = tuple(each for each in frame.entries if each.compile_id.key not in lost)
            title = frame.title or frame.name if number == 0 else frame.name
            ids = [f"{each.compile_id.frame}/{each.compile_id.recompile}" for each in entries]
            frames += [(replace(frame, entries=entries), title, ids)] if entries else []
    of_version = name.removeprefix("[").removesuffix("]")
    is_version = all(each.isdecimal() for each in of_version.split("/"))
    found = [frame for frame, title, ids in frames if (
        of_version in ids if is_version else name in (frame.name, title, title.rpartition(".")[2]))]
    if len(found) == 1:
        return found[0]
    there = ", ".join(f"{title} ({', '.join(ids[:4])})" for _, title, ids in frames)
    raise NoSuchFunction(
        f"{len(found)} functions are called {name}; give the id of one of their versions: {there}" if found else
        f"there is no compiled {name}; there is {there or 'no compiled function'}")
