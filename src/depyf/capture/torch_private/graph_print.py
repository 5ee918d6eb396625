"""Graph modules as text: what torch prints of them, character for character, in a third of the time.

Torch parses the stack trace of each node anew, looks names up again and imports inside of the loop (torch/fx/graph.py,
``CodeGen._gen_python_code``; torch/fx/graph_module.py, ``_print_readable``). A deep model has thousands of nodes in
three graphs, and they are printed while the user waits. Here nodes of the usual kinds are written; for a graph that
holds any other, torch prints.

Whether this torch still prints in the form that is written here is found out once in a process: its code uses the names
that it did when the form was written down, so that it tells no more of a node, and a small graph comes out the same.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any

from ...guarded import warn_of
from . import private_api

#: As every printed graph here is asked for.
_AS_ASKED = {"print_output": False, "include_stride": True, "include_device": True}
_INDENT = " " * 8
#: What torch writes above nodes that have no stack trace.
_NO_STACK = "No stacktrace found for following nodes"
#: Digests of the names that torch's code uses, where its form is as here (torch 2.13 and 2.15), with whether it marks
#: the nodes of a backward pass.
_LEARNED = {"a20caab6597af9ad": False, "b997d868808f283f": True}
_BACKWARD = "Backward of forward node: "
#: What reading a torch that is otherwise raises.
_OTHERWISE = (AttributeError, TypeError, KeyError, ValueError)


class _Unusual(Exception):
    """A graph holds something that is left to torch."""


class _Torch:
    """What is known of this torch.

    Attributes:
        same: it prints as is written here; ``None`` until a graph with a tensor came.
        marks_backward: it marks the nodes of a backward pass.
    """

    def __init__(self) -> None:
        try:
            digest = _digest(private_api.GRAPH_WRITER.get().__code__)
        except _OTHERWISE:
            digest = ""
        self.same: bool | None = None if digest in _LEARNED else False
        self.marks_backward = _LEARNED.get(digest, False)


@functools.cache
def _this_torch() -> _Torch:
    """Return what is known of this torch: one object in a process."""
    return _Torch()


def readable(gm: Any) -> str:
    """Return the graph as Python: shapes, strides, dtypes and devices as annotations, user lines as comments.

    Raises:
        AttributeError: this torch prints no graphs.
    """
    known = _this_torch()
    if known.same is not False:
        try:
            writer = _Writer()
            text = "".join(writer.module(gm, gm._get_name()))
            if known.same is None and writer.tensor is not None:
                known.same = _as_torch_prints(writer)
            if known.same:
                return text
        except (_Unusual, *_OTHERWISE):
            pass  # (torch's own print has the last word, and its errors)
        except Exception as error:
            known.same = False
            warn_of(error, "torch prints its graphs itself, which takes longer")
    return _printed_by_torch(gm)


def _digest(code: CodeType) -> str:
    """Return a digest of the names that code uses, and of the strings in it that could be names: keys, attributes.

    These are the same whatever Python compiled it.
    """
    names: set[str] = set()
    pending: list[Any] = [code]
    while pending:
        value = pending.pop()
        if isinstance(value, CodeType):
            names.update(value.co_names)
            pending += value.co_consts
        elif isinstance(value, str) and value.isidentifier():
            names.add(value)
        elif isinstance(value, (tuple, frozenset)):
            pending += value
    return hashlib.sha256(" ".join(sorted(names)).encode()).hexdigest()[:16]


def _printed_by_torch(gm: Any) -> str:
    return str(getattr(gm, private_api.READABLE_GRAPH.attribute)(**_AS_ASKED))


class _Writer:
    """Writes a graph module and those inside of it.

    Attributes:
        tensor: a tensor that was described, to be used in the sample.
    """

    def __init__(self) -> None:
        import torch

        self.fx = private_api.GRAPH_CODE.get()
        self.tensor: Any = None
        self._graph_module = torch.fx.GraphModule
        self._node = torch.fx.Node
        self._plain_tensors = (private_api.FAKE_TENSOR.get(), torch.Tensor)
        self._parameter = torch.nn.Parameter
        self._symbolic = (torch.SymInt, torch.SymFloat, torch.SymBool)
        #: Declared types of nodes in whose place torch writes what it knows of the value.
        self._declared = (torch.Tensor, torch.nn.Parameter, *self._symbolic)
        #: Of other values torch writes nothing.
        self._described_otherwise = (torch.Tensor, *self._symbolic)
        self._dense = torch.strided
        self._device = torch.device
        self._as_repr = frozenset({int, str, bool, float, type(None), type(...), torch.dtype, torch.device,
                                   torch.layout, torch.memory_format})
        self._tuples = (tuple, torch.Size)
        self._dtypes: Mapping[Any, str] = self.fx.dtype_abbrs
        self._reserved = self.fx._illegal_names
        self._marks_backward = _this_torch().marks_backward
        self._device_text: Callable[[Any], str] = getattr(self.fx, "_device_annotation", str)  # (since 2.15)
        #: By stack trace, and by function: both are few beside the nodes.
        self._places: dict[Any, str] = {}
        self._functions: dict[Any, str] = {}
        #: By the expression of an open size: sympy takes longer to print one than all else of a node does.
        self._sizes: dict[Any, str] = {}

    def module(self, gm: Any, name: str) -> Iterator[str]:
        """Yield the pieces of the text of a graph module, called ``name``."""
        yield f"class {name}(torch.nn.Module):\n"
        signature, lines = self._graph(gm.graph)
        for line in signature.split("\n"):
            yield f"    {line}\n" if line.strip() else "\n"
        yield "\n".join(lines)
        for inner, child in gm.named_children():
            if isinstance(child, self._graph_module):
                # (Torch indents the lines of a class within a class, and leaves blank ones blank.)
                for line in "".join(self.module(child, inner)).split("\n"):
                    yield f"\n    {line}" if line.strip() else "\n"

    def _graph(self, graph: Any) -> tuple[str, list[str]]:
        """Return the signature of a graph and the lines under it, from the first that is not blank."""
        made = graph._codegen
        usual = self.fx.CodeGen
        if type(made)._gen_python_code is not usual._gen_python_code or made._body_transformer is not None \
                or made.additional_globals():
            raise _Unusual
        nodes = list(graph.nodes)
        self._check_names([node.name for node in nodes])
        ends = _last_uses(nodes)
        parameters: list[str] = []
        lines: list[str] = []
        above = ""
        for node in nodes:
            kind, name = node.op, node.name
            if kind == "output":
                if node.type is not None:
                    raise _Unusual
                lines += (_INDENT + made.generate_output(node.args[0], repr_fn=self._value), "")
                continue
            annotation = self._annotation(node)
            if kind == "placeholder":
                default = f" = {self._value(node.args[0])}" if node.args else ""
                parameters.append(f"{node.target}{annotation}{default}")
                plain = node.target.replace("*", "")
                if plain != name:
                    lines.append(f"{_INDENT}{name} = {plain}")
                continue
            place = self._place(node)
            if place != above:
                above = place
                lines += ("", place)
            over = ends.get(node, [])
            if not node.users:
                over = [*over, name]
            statement = self._statement(node, kind, f"{name}{annotation}")
            lines.append(f"{_INDENT}{statement};  {' = '.join(over)} = None" if over else _INDENT + statement)
        first = next((index for index, line in enumerate(lines) if line), None)
        if first is None:
            raise _Unusual
        return made.gen_fn_def(parameters, ""), lines[first:]

    def _check_names(self, names: list[str]) -> None:
        """Raise an error where torch would write a node by another name than its own."""
        if len(set(names)) < len(names) or not "".join(names).isascii() \
                or not all(map(str.isidentifier, names)) or not self._reserved.keys().isdisjoint(names):
            raise _Unusual

    def _place(self, node: Any) -> str:
        """Return the line of comment above a node: the line of the program that it comes from."""
        meta = node.meta
        if meta.get("custom") or meta.get("recompute") is not None or meta.get("ac_graph_id") is not None:
            raise _Unusual  # torch tells of these there
        stack, marked = node.stack_trace, self._marks_backward and bool(meta.get("autograd_backward"))
        place = self._places.get((stack, marked))
        if place is None:
            innermost = self.fx._parse_stack_trace(stack) if stack else None
            shown = f"{_BACKWARD if marked else ''}{innermost.get_summary_str()}" if innermost else _NO_STACK
            place = self._places[stack, marked] = f"{_INDENT}# {shown}"
        return place

    def _annotation(self, node: Any) -> str:
        """Return what is known of the value of a node, as an annotation."""
        meta = node.meta
        if "val" in meta:
            value = meta["val"]
        elif "tensor_meta" not in meta:
            value = meta.get("example_value")
        else:
            raise _Unusual
        kind = type(value)
        if node.type is not None and node.type not in self._declared:
            raise _Unusual
        if kind in self._plain_tensors:
            self.tensor = value
            return f': "{self._described(value)}"'
        if kind is self._parameter:
            return f': "{kind.__name__}({self._described(value)})"'
        if kind in self._symbolic:
            return f': "Sym({value!r})"'
        if node.type is not None or isinstance(value, self._described_otherwise):
            raise _Unusual
        return ""

    def _described(self, value: Any) -> str:
        if value.layout is not self._dense:
            raise _Unusual
        sizes, strides = ", ".join(map(self._size, value.shape)), ", ".join(map(self._size, value.stride()))
        return f"{self._dtypes[value.dtype]}[{sizes}][{strides}]{self._device_text(value.device)}"

    def _size(self, size: Any) -> str:
        if type(size) is int:
            return str(size)
        expression = size.node.expr  # (``SymNode.str``)
        text = self._sizes.get(expression)
        if text is None:
            text = self._sizes[expression] = str(size)
        return text

    def _statement(self, node: Any, kind: str, target: str) -> str:
        """Return the statement of a node.

        Args:
            node: any but a parameter or the output.
            kind: its ``op``.
            target: its name and annotation.
        """
        what, args = node.target, node.args
        if kind == "call_function":
            return self._call(node, what, target)
        if kind == "call_method":
            called = self.fx._format_target(self._value(args[0]), what)
            return f"{target} = {called}({self._arguments(args[1:], node.kwargs)})"
        if kind == "get_attr":
            return f"{target} = {self.fx._format_target('self', what)}"
        if kind == "call_module":
            return f"{target} = {self.fx._format_target('self', what)}({self._arguments(args, node.kwargs)})"
        raise _Unusual

    def _call(self, node: Any, function: Callable[..., Any], target: str) -> str:
        args = node.args
        if getattr(function, "__module__", "") == "_operator":
            form = self.fx.magic_methods.get(function.__name__)
            if form is not None:
                return f"{target} = {form.format(*map(self._value, args))}"
            form = self.fx.inplace_methods.get(function.__name__)
            if form is not None:
                return f"{form.format(*map(self._value, args))};  {target} = {self._value(args[0])}"
        boxed = node.meta.get("boxed_arg_indices", getattr(function, "_boxed_arg_indices", ()))
        if node.meta.get("is_wrapped") or boxed:
            raise _Unusual
        if function is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return f"{target} = {self.fx._format_target(self._value(args[0]), args[1])}"
        return f"{target} = {self._function(function)}({self._arguments(args, node.kwargs)})"

    def _function(self, function: Callable[..., Any]) -> str:
        name = self._functions.get(function)
        if name is None:
            name = str(self.fx._get_qualified_name(function))
            if getattr(builtins, name, None) is not function and (
                    function is self._device or not self.fx._is_from_torch(function)):
                raise _Unusual  # torch finds a free name for it
            self._functions[function] = name
        return name

    def _arguments(self, args: Any, kwargs: Mapping[str, Any]) -> str:
        given = [self._value(each) for each in args]
        if kwargs:
            given += [f"{key} = {self._value(value)}" for key, value in kwargs.items()]
        return ", ".join(given)

    def _value(self, value: Any) -> str:
        """Return an argument as text."""
        kind = type(value)
        if kind is self._node:
            return str(value.name)
        if kind in self._as_repr:
            return repr(value)
        if kind is complex and value.real and value.imag and math.isfinite(value.real) and math.isfinite(value.imag):
            return repr(value)  # (Others are written in other ways by torch 2.15.)
        if kind in self._tuples:
            return f"({self._value(value[0])},)" if len(value) == 1 else f"({', '.join(map(self._value, value))})"
        if isinstance(value, list):
            return f"[{', '.join(map(self._value, value))}]"
        if kind is slice:
            return f"slice({self._value(value.start)}, {self._value(value.stop)}, {self._value(value.step)})"
        raise _Unusual


def _last_uses(nodes: list[Any]) -> dict[Any, list[str]]:
    """Return, by the node that uses them last, the names of the nodes that are let go after it."""
    ended: set[Any] = set()
    ends: dict[Any, list[str]] = {}
    for user in reversed(nodes):
        for used in user._input_nodes:
            if used not in ended:
                ended.add(used)
                ends.setdefault(user, []).append(used.name)
    return ends


class _Sample:
    """What torch needs of a module to print its graph, without the code that a graph module makes of it."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph

    def _get_name(self) -> str:
        return "Sample"

    def named_children(self) -> tuple[()]:
        return ()


def _as_torch_prints(writer: _Writer) -> bool:
    """Return whether torch and the writer make the same text of a graph with one node of each kind."""
    import torch

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    nodes = [
        graph.get_attr("weight.0"),
        graph.call_function(torch.add, (x, 1.5), {"alpha": -2}),
        graph.call_function(getattr, (x, "T")),
        graph.call_method("view", (x, [2, (3,), slice(None, 1)])),
        graph.call_function(operator.mul, (x, x)),
        graph.call_module("layer", (x, "a"), {"dtype": torch.float32}),
    ]
    nodes.append(graph.call_function(operator.iadd, (nodes[1], nodes[4])))
    nodes.append(graph.call_function(abs, (nodes[-1],)))
    graph.output((nodes[3], None))
    for line, node in enumerate((x, *nodes)):
        node.meta["val"] = writer.tensor if line != 3 else (writer.tensor, 1)
        if line % 3:
            node.stack_trace = f'  File "a.py", line 1, in f\n    g()\n  File "b.py", line {line}, in g\n    h(x)\n'
    sample = _Sample(graph)
    printed = getattr(torch.fx.GraphModule, private_api.READABLE_GRAPH.attribute)(sample, **_AS_ASKED)
    return "".join(writer.module(sample, sample._get_name())) == printed
