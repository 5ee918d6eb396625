"""Torch's print of a graph -> its nodes.

Every stage of a graph (captured, joint, forward, backward, after Inductor's passes) is kept as the text that torch
printed, so the nodes can be read anywhere: from a running torch, from records, from a log of ``TORCH_TRACE``. The
code is read with ``ast``. What the text says in comments and strings has a form of torch's own:

* ``"f32[2, s27][s27, 1]cuda:0"``: dtype, shape, stride, device (``CodeGen._gen_python_code`` in torch/fx/graph.py);
* ``# File: model.py:12 in forward, code: x = self.q(x)``: the user's line of the nodes below
  (``_ParsedStackTrace.get_summary_str``).

Nothing here raises for any text: what is not understood is left out.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ..decompiler.trees import dotted_name
from ..records.model import SourceLocation

#: Torch's short names of dtypes (torch/utils/_dtype_abbrs.py). Others stay as they are.
DTYPES = {
    "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "c32": "complex32",
    "c64": "complex64", "c128": "complex128", "bc32": "bcomplex32", "b8": "bool", "b1x8": "bits1x8",
    "b2x4": "bits2x4", "b4x2": "bits4x2", "b8x1": "bits8", "b16x1": "bits16", "f8e5m2": "float8_e5m2",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2fnuz": "float8_e5m2fnuz", "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e8m0fnu": "float8_e8m0fnu", "f4e2m1fnx2": "float4_e2m1fn_x2"}
_SHORT = {name: short for short, name in DTYPES.items()}

_LOCATION = re.compile(r"File: (?P<file>.+?):(?P<line>\d+) in (?P<function>.+?), code: ?(?P<text>.*)$")
#: Torch found no user line for the nodes below.
_NO_LOCATION = "No stacktrace found"
_BACKWARD = "Backward of forward node"
_OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Div: "truediv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_", ast.BitOr: "or_",
    ast.BitXor: "xor", ast.MatMult: "matmul", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.Gt: "gt",
    ast.LtE: "le", ast.GtE: "ge", ast.UAdd: "pos", ast.USub: "neg", ast.Invert: "invert", ast.Not: "not_",
    ast.Is: "is_", ast.IsNot: "is_not", ast.In: "contains", ast.NotIn: "not_contains"}
_IN_PLACE = {name: "i" + name.rstrip("_") for name in _OPERATORS.values()}
#: A call that stands in one line, as most statements of a large graph do; its arguments hold no call within a call.
_CALL = re.compile(
    r'(?P<indent> +)(?P<name>[A-Za-z_]\w*)(?:: "(?P<type>[^"\\]*)")? = (?P<root>[A-Za-z_]\w*)\.(?P<path>[\w.]+)'
    r'\((?P<arguments>[^()"#;{}\\]*(?:\([^()"#;{}\\]*\)[^()"#;{}\\]*)*)\)(?:;  (?:\w+ = )+None)?$')
#: A line that gives a value another name.
_ALIAS = re.compile(r" +(?P<name>[A-Za-z_]\w*) = (?P<value>(?!(?:None|True|False)$)[A-Za-z_]\w*)$")
#: Lines that are read without Python's parser, by number, with their match of one of these.
_Simple: TypeAlias = Mapping[int, "re.Match[str]"]
#: In arguments: a string; a name that is neither an attribute nor that of an argument.
_STRING_OR_NAME = re.compile(r"'[^']*'|(?<![\w.])(?P<name>[A-Za-z_]\w*)\b(?!\s?=(?!=))")
#: What a graph returns, on one line or on several, of which the last one stands where the first does.
_RETURN = re.compile(r"^        return (?P<value>.*[(\[]\n(?:         .*\n)*        [)\]].*|.*)$", re.M)
#: What the calls of operators begin with that run an operator which they are given.
_HIGHER_ORDER = "torch.ops.higher_order."
_OPERATOR = re.compile(r"(?<![\w.'])torch\.ops\.\w+\.\w+(?:\.\w+)?")


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type that torch prints for a value: ``"f32[2, s27][s27, 1]cpu"``.

    Attributes:
        text: as torch prints it; ``"Sym(s27)"`` for a number.
        dtype: ``"float32"``; empty for what is no tensor.
        shape, stride: sizes as text, so that symbols stay: ``("2", "s27")``. ``None`` where torch says nothing.
        device: ``"cuda:0"``, or empty.
    """

    text: str
    dtype: str = ""
    shape: tuple[str, ...] | None = None
    stride: tuple[str, ...] | None = None
    device: str = ""

    @property
    def short(self) -> str:
        """Dtype and shape in torch's form: ``"f32[2, s27]"``."""
        return self.text if self.shape is None else f"{_SHORT.get(self.dtype, self.dtype)}[{', '.join(self.shape)}]"


class Node(NamedTuple):
    """One node of a graph.

    (A tuple, which is quickly made: a large model has tens of thousands of nodes.)

    Attributes:
        name: torch's.
        op: ``"placeholder"``, ``"call_function"``, ``"call_method"``, ``"call_module"``, ``"get_attr"`` or
            ``"output"``, as in ``torch.fx``.
        target: what is called, ``"torch.ops.aten.mm.default"``; ``"operator.add"`` for ``a + b``; the method's name;
            the path of a module or an attribute; the parameter's name of a placeholder.
        inputs: names of the nodes that it takes, each once, in order.
        type: torch's annotation, if there is one. Nodes that give tuples have none.
        location: the user's line, if torch knows one.
        line: line of the text, from 1.
        backward: torch says that it is of the backward pass, or in a graph of it (it does so from 2.14 on; see the
            stage otherwise).
        runs: the operator that a higher-order call is given: ``"torch.ops.aten.mm.default"`` of
            ``torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten.mm.default, a, b)``; empty for others.
    """

    name: str
    op: str
    target: str
    inputs: tuple[str, ...] = ()
    type: TensorType | None = None
    location: SourceLocation | None = None
    line: int = 0
    backward: bool = False
    runs: str = ""

    @property
    def is_call(self) -> bool:
        """Return whether the node calls something."""
        return self.op[:5] == "call_"

    @property
    def operation(self) -> str:
        """The operation in short: ``"aten.mm"``, ``"linear"``, ``"add"``, ``"view"``."""
        return operation_of(self.target)


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph, with those that it holds for ``torch.cond`` and the like.

    Attributes:
        name: of its class (``"GraphModule"``), or the attribute by which the outer graph calls it.
        nodes: in order, placeholders first.
        subgraphs: in order.
    """

    name: str
    nodes: tuple[Node, ...] = ()
    subgraphs: tuple[Graph, ...] = ()

    def walk(self, prefix: str = "") -> Iterator[tuple[str, Graph]]:
        """Yield this graph and all within it, each with what its nodes' names begin with in records: ``"body."``."""
        yield prefix, self
        for inner in self.subgraphs:
            yield from inner.walk(f"{prefix}{inner.name}.")

    def named_nodes(self) -> Iterator[tuple[str, Node]]:
        """Return ``(name in records, node)`` of all nodes; those of inner graphs behind the others."""
        return ((prefix + node.name, node) for prefix, graph in self.walk() for node in graph.nodes)

    def node(self, name: str) -> Node | None:
        """Return a node by its name."""
        return next((node for node in self.nodes if node.name == name), None)


@functools.lru_cache(65536)
def operation_of(target: str) -> str:
    """Return the operation in short, as of :attr:`Node.operation`."""
    parts = target.split(".")
    if parts[:2] == ["torch", "ops"] and len(parts) >= 4:
        return ".".join(parts[2:4])
    return parts[-1]


def is_gradient(name: str) -> bool:
    """Return whether a name is of a gradient that a backward graph is given."""
    return name.startswith("tangents_")


def returned_names(text: str) -> list[str]:
    """Return the names of the nodes that a graph returns, in order, ``""`` for what is no node."""
    match = _RETURN.search(text)
    try:
        body = ast.parse(match["value"]).body if match is not None else []
    except SyntaxError:
        return []
    value = body[0].value if body and isinstance(body[0], ast.Expr) else None
    if not isinstance(value, (ast.Tuple, ast.List)):
        return []
    return [item.id if isinstance(item, ast.Name) else "" for item in value.elts]


def read_graph(text: str) -> Graph:
    """Return the graph that a text holds; one without nodes where it holds none.

    Args:
        text: ``GraphStage.text``.
    """
    try:
        return _read(text)
    except (RecursionError, MemoryError, ValueError, AttributeError, IndexError, TypeError):
        return Graph("")


def _read(text: str) -> Graph:
    lines = text.split("\n")
    if '"""' in text or "'''" in text:  # (a line of such a string may look like a statement)
        return _parsed(lines, {}) or _damaged(lines)
    # To parse all lines takes most of the time: Python's parser gets those that are not read without it.
    simple = {number: match for number, line in enumerate(lines, 1)
              if (match := _CALL.match(line) or _ALIAS.match(line)) is not None}
    return _parsed(lines, simple) or _parsed(lines, {}) or _damaged(lines)


def _parsed(lines: list[str], simple: _Simple) -> Graph | None:
    """Return the graph that Python's parser finds; ``None`` where the text without the simple lines is not Python."""
    left = "\n".join("" if number in simple or line.lstrip().startswith("#") else line
                     for number, line in enumerate(lines, 1))
    try:
        body = ast.parse(left).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    parts = list(zip(body, _ends(body, len(lines))))
    for item, end in parts:
        if isinstance(item, ast.ClassDef):
            return _class(item, end, lines, simple)
    for item, end in parts:
        if isinstance(item, ast.FunctionDef):
            return Graph(item.name, _Reader(lines, simple).function(item, end))
    return None


def _ends(body: Sequence[ast.stmt], last: int) -> list[int]:
    """Return the last line that belongs to each statement: the simple ones are not in the tree."""
    return [*(following.lineno - 1 for following in body[1:]), last]


def _class(definition: ast.ClassDef, last: int, lines: list[str], simple: _Simple) -> Graph:
    nodes: tuple[Node, ...] = ()
    inner = []
    for item, end in zip(definition.body, _ends(definition.body, last)):
        if isinstance(item, ast.FunctionDef) and not nodes:
            nodes = _Reader(lines, simple).function(item, end)
        elif isinstance(item, ast.ClassDef):
            inner.append(_class(item, end, lines, simple))
    return Graph(definition.name, nodes, tuple(inner))


def _damaged(lines: list[str]) -> Graph:
    """Read a text line by line that is not Python as a whole.

    It was cut off, or printed in a form of torch's.

    Where it begins with several classes only the first is read.
    """
    # legal_graph makes comments of a text that is not Python.
    commented = bool(lines) and lines[0].startswith("# (torch printed")
    reader = _Reader(lines, {})
    name = ""
    for number, line in enumerate(lines, 1):
        code = (line[2:] if commented and line.startswith("# ") else line).strip()
        if code.startswith("class "):
            if name:
                break
            name = code[len("class ") :].partition("(")[0].rstrip(":")
        elif code.startswith("#"):
            reader.comment(code)
        elif code and not code.startswith("#"):
            try:
                body = ast.parse(code + " pass" if code.startswith("def ") and code.endswith(":") else code).body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            for statement in body:
                if isinstance(statement, ast.FunctionDef):
                    reader.parameters(statement)
                else:
                    reader.statement(statement, number)
    return Graph(name, reader.done())


class _Reader:
    """Reads the body of one ``forward``.

    Args:
        lines: of the text.
        simple: those that are not in the tree.
    """

    def __init__(self, lines: list[str], simple: _Simple) -> None:
        self.lines = lines
        self.simple = simple
        self.nodes: list[Node] = []
        self.names: set[str] = set()
        #: Parameters that no statement has renamed so far, with their annotations.
        self.arguments: dict[str, TensorType | None] = {}
        self.lists: dict[str, tuple[str, ...]] = {}  # names of argument lists -> the nodes in them
        self.in_place: tuple[str, tuple[str, ...]] | None = None
        self.location: SourceLocation | None = None
        self.backward = False
        self.flattened = False

    # --- a function as a whole --------------------------------------------------------------------
    def function(self, definition: ast.FunctionDef, end: int) -> tuple[Node, ...]:
        """Read the function whose last line is ``end``."""
        self.parameters(definition)
        parsed: dict[int, list[ast.stmt]] = {}
        for statement in definition.body:
            parsed.setdefault(statement.lineno, []).append(statement)
        number = min(definition.body[0].lineno, definition.lineno + 1)
        while number <= end:
            match = self.simple.get(number)
            if match is not None:
                if match.re is _ALIAS:
                    self.alias(match, number)
                else:
                    self.call_in_one_line(match, number)
            elif number in parsed:
                last = number
                for statement in parsed[number]:
                    self.statement(statement, number)
                    last = max(last, statement.end_lineno or number)
                number = last
            else:
                line = self.lines[number - 1].lstrip()
                if line.startswith("#"):
                    self.comment(line)
            number += 1
        return self.done()

    def parameters(self, definition: ast.FunctionDef) -> None:
        arguments = definition.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        if arguments.vararg is not None:
            every.append(arguments.vararg)
        for argument in every:
            if argument.arg != "self":
                self.arguments[argument.arg] = _type(argument.annotation)

    def done(self) -> tuple[Node, ...]:
        if not self.flattened:
            # A parameter whose node has its own name is a node without a statement.
            missing = [Node(name, "placeholder", name, (), kind) for name, kind in self.arguments.items()]
            count = next((i for i, node in enumerate(self.nodes) if node.op != "placeholder"), len(self.nodes))
            order = {name: index for index, name in enumerate(self.arguments)}
            first = self.nodes[:count]
            if missing:
                known = {node.target for node in first}
                first = sorted(
                    [*first, *(node for node in missing if node.target not in known)],
                    key=lambda node: order.get(node.target, -1))
            self.nodes[:count] = first
        return _with_lines_of_items(self.nodes)

    def comment(self, line: str) -> None:
        place = _place(line)
        if place is not None:
            self.location, self.backward = place

    # --- statements -------------------------------------------------------------------------------
    def statement(self, statement: ast.stmt, line: int) -> None:
        if isinstance(statement, ast.Return):
            self._add(Node("output", "output", "output", self._inputs(statement.value), None, None, line))
        elif isinstance(statement, ast.AugAssign):
            name = _IN_PLACE.get(_OPERATORS.get(type(statement.op), ""), "iadd")
            self.in_place = f"operator.{name}", self._inputs(statement.target, statement.value)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if statement.value is None:
                self._placeholder(statement.target.id, statement.target.id, _type(statement.annotation), line)
            else:
                self._assignment(statement.target.id, statement.value, _type(statement.annotation), line)
        elif isinstance(statement, ast.Assign):
            first = statement.targets[0]
            if isinstance(first, ast.Subscript) and len(statement.targets) == 1:
                self.in_place = "operator.setitem", self._inputs(first.value, first.slice, statement.value)
            elif isinstance(first, ast.Name):
                if _is_none(statement.value):
                    return  # torch lets go of values that it needs no more
                self._assignment(first.id, statement.value, None, line)
            elif isinstance(first, (ast.Tuple, ast.List)) and "tree_flatten" in ast.unparse(statement.value):
                self._flattened(first, line)

    def call_in_one_line(self, call: re.Match[str], line: int) -> None:
        """Add the node of a line; what :meth:`statement` does for its tree."""
        _, name, annotation, root, path, arguments = call.groups()
        kind = None if annotation is None else tensor_type(annotation)
        inputs = self._named(arguments)
        self.in_place = None
        if root == "self":
            self._call(name, "call_module", path, inputs, kind, line)
        elif root in self.names or root in self.arguments:
            inputs = tuple(dict.fromkeys((root, *inputs)))
            self._call(name, "call_method", path.rpartition(".")[2], inputs, kind, line)
        else:
            target = f"{root}.{path}"
            given = _OPERATOR.search(arguments) if target.startswith(_HIGHER_ORDER) else None
            self._call(name, "call_function", target, inputs, kind, line, "" if given is None else given[0])

    def alias(self, alias: re.Match[str], line: int) -> None:
        """Add the node of a line that gives a value another name."""
        self._renamed(alias["name"], alias["value"], None, line)

    def _named(self, arguments: str) -> tuple[str, ...]:
        """Return what :meth:`_inputs` does, of the text of arguments."""
        result: dict[str, None] = {}
        for name in _STRING_OR_NAME.findall(arguments):
            if name in self.lists:
                result.update(dict.fromkeys(self.lists[name]))
            elif name in self.names or name in self.arguments:
                result[name] = None
        return tuple(result)

    def _assignment(self, name: str, value: ast.expr, kind: TensorType | None, line: int) -> None:
        if isinstance(value, ast.Name):
            self._renamed(name, value.id, kind, line)
            return
        self.in_place = None
        if isinstance(value, (ast.List, ast.Tuple)):
            self.lists[name] = self._inputs(value)  # arguments, put together before a call that empties the list
            return
        if isinstance(value, ast.Call):
            function = value.func
            if isinstance(function, ast.Name) and function.id == "iter":
                self.flattened = True
                self.arguments.clear()  # the arguments come as one list
                return
            if isinstance(function, ast.Name) and function.id == "next":
                self._placeholder(name, name, kind, line)
                return
        op, target, inputs = self._described(value)
        if op:
            self._call(name, op, target, inputs, kind, line, _operator_given(target, value))

    def _renamed(self, name: str, value: str, kind: TensorType | None, line: int) -> None:
        in_place, self.in_place = self.in_place, None
        if in_place is not None:
            self._call(name, "call_function", in_place[0], in_place[1], kind, line)
        elif value in self.arguments:
            self._placeholder(name, value, self.arguments[value] or kind, line)

    def _described(self, value: ast.expr) -> tuple[str, str, tuple[str, ...]]:
        """Return ``(op, target, inputs)`` of an expression that torch prints for a node."""
        if isinstance(value, ast.Call):
            attribute = _attribute(value)
            if attribute is not None:
                return attribute[0], attribute[1], self._inputs(value)
            function = value.func
            inputs = self._inputs(function, *value.args, *(keyword.value for keyword in value.keywords))
            if isinstance(function, ast.Attribute) and not self._is_global(function):
                return "call_method", function.attr, inputs
            return "call_function", dotted_name(function) or ast.unparse(function), inputs
        inputs = self._inputs(value)
        attribute = _attribute(value)
        if attribute is not None:
            return attribute[0], attribute[1], inputs
        operator = ""
        if isinstance(value, (ast.BinOp, ast.UnaryOp)):
            operator = _OPERATORS.get(type(value.op), "")
        elif isinstance(value, ast.Compare):
            operator = _OPERATORS.get(type(value.ops[0]), "")
        elif isinstance(value, ast.Subscript):
            operator = "getitem"
        elif isinstance(value, ast.Attribute):
            return "call_function", "getattr", inputs
        return ("call_function", f"operator.{operator}", inputs) if operator else ("", "", ())

    def _flattened(self, names: ast.Tuple | ast.List, line: int) -> None:
        self.flattened = True
        for item in names.elts:
            if isinstance(item, ast.Name) and item.id not in self.names:
                self._placeholder(item.id, item.id, None, line)
        self.arguments.clear()

    def _placeholder(self, name: str, target: str, kind: TensorType | None, line: int) -> None:
        self._add(Node(name, "placeholder", target, (), kind, None, line))

    def _call(
        self, name: str, op: str, target: str, inputs: tuple[str, ...], kind: TensorType | None, line: int,
        runs: str = "",
    ) -> None:
        self._add(Node(name, op, target, inputs, kind, self.location, line, self.backward, runs))

    def _add(self, node: Node) -> None:
        if node.name not in self.names or node.op == "output":
            self.names.add(node.name)
            self.nodes.append(node)

    def _is_global(self, value: ast.expr) -> bool:
        """Return a dotted name that begins with none of the nodes: ``torch.ops.aten.mm.default``."""
        while isinstance(value, ast.Attribute):
            value = value.value
        return isinstance(value, ast.Name) and value.id not in self.names and value.id not in self.arguments

    def _inputs(self, *expressions: ast.expr | None) -> tuple[str, ...]:
        result: dict[str, None] = {}
        pending: list[ast.AST] = [item for item in reversed(expressions) if item is not None]
        while pending:
            item = pending.pop()
            if isinstance(item, ast.Name):
                if item.id in self.lists:
                    result.update(dict.fromkeys(self.lists[item.id]))
                elif item.id in self.names or item.id in self.arguments:
                    result[item.id] = None
            elif isinstance(item, ast.Attribute):
                pending.append(item.value)
            elif not isinstance(item, ast.Constant | ast.expr_context):
                pending.extend(reversed(list(ast.iter_child_nodes(item))))
        return tuple(result)


def _with_lines_of_items(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the nodes; a call without a line of its own has that of the items that are taken out of what it gives.

    Torch's partitioner puts a call that saves the state of the random numbers in the place of another one. It copies
    nothing of what is known of that, but its items stay as they were.
    """
    lines: dict[str, SourceLocation] = {}
    for node in reversed(nodes):
        if node.target == "operator.getitem" and node.inputs:
            place = node.location or lines.get(node.name)
            if place is not None:
                lines[node.inputs[0]] = place
    return tuple(node._replace(location=lines[node.name])
                 if node.is_call and node.location is None and node.name in lines else node for node in nodes)


def _operator_given(target: str, value: ast.expr) -> str:
    """Return the operator that a higher-order call is given, as of :attr:`Node.runs`."""
    if not target.startswith(_HIGHER_ORDER) or not isinstance(value, ast.Call):
        return ""
    return next((name for argument in value.args if _OPERATOR.fullmatch(name := dotted_name(argument))), "")


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _attribute(value: ast.expr) -> tuple[str, str] | None:
    """Return ``("get_attr", path)`` for ``self.a.b`` and ``getattr(self, "0").b``.

    ``("call_module", path)`` where that is called; ``None`` for anything else.
    """
    op = "get_attr"
    if isinstance(value, ast.Call) and _attribute_asked(value) is None:
        value, op = value.func, "call_module"
    parts: list[str] = []
    while True:
        if isinstance(value, ast.Attribute):
            parts.append(value.attr)
            value = value.value
        elif isinstance(value, ast.Call) and (name := _attribute_asked(value)) is not None:
            parts.append(name)
            value = value.args[0]
        else:
            break
    if isinstance(value, ast.Name) and value.id == "self" and parts:
        return op, ".".join(reversed(parts))
    return None


def _attribute_asked(value: ast.Call) -> str | None:
    """Return ``"0"`` of ``getattr(x, "0")``; ``None`` for other calls."""
    if isinstance(value.func, ast.Name) and value.func.id == "getattr" and len(value.args) == 2 \
            and isinstance(value.args[1], ast.Constant):
        return str(value.args[1].value)
    return None


@functools.lru_cache(65536)
def _place(comment: str) -> tuple[SourceLocation | None, bool] | None:
    """Return the place that a comment gives the nodes below, and whether they are of the backward pass.

    ``None`` for a comment that says nothing of a place. (Layers share their comments.)
    """
    match = _LOCATION.search(comment)
    if match is not None:
        return (_location(match["file"], int(match["line"]), match["function"], match["text"]),
                _BACKWARD in comment[: match.start()])
    return (None, False) if _NO_LOCATION in comment else None


@functools.lru_cache(65536)
def _location(filename: str, line: int, function: str, text: str) -> SourceLocation:
    return SourceLocation(filename, line, function, text)


def _type(annotation: ast.expr | None) -> TensorType | None:
    if annotation is None:
        return None
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return tensor_type(annotation.value)
    return TensorType(ast.unparse(annotation))


@functools.lru_cache(65536)
def tensor_type(text: str) -> TensorType:
    """Read torch's annotation of a value. A subclass of tensors stands around it: ``"DTensor(f32[2], ...)"``."""
    inner = re.fullmatch(r"[A-Za-z_]\w*\((?P<inner>\w+\[.*)\)", text)
    core = inner["inner"] if inner is not None else text
    begin = core.find("[")
    dtype = core[:begin]
    if begin <= 0 or not dtype.isidentifier():
        return TensorType(text)
    shape, end = _sizes(core, begin)
    if shape is None:
        return TensorType(text)
    stride, after = _sizes(core, end) if core[end : end + 1] == "[" else (None, end)
    device = re.match(r"[a-z]+(?::\d+)?", core[after:])
    return TensorType(text, DTYPES.get(dtype, dtype), shape, stride, device.group(0) if device else "")


def _sizes(text: str, begin: int) -> tuple[tuple[str, ...] | None, int]:
    """Return the sizes in the bracket that begins there, and where it ends. Sizes may be expressions with commas."""
    depth, item, sizes = 0, begin + 1, []
    for index in range(begin, len(text)):
        letter = text[index]
        if letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        if depth == 0 or (depth == 1 and letter == ","):
            size = text[item:index].strip()
            if size:
                sizes.append(size)
            item = index + 1
        if depth == 0:
            return tuple(sizes), index + 1
    return None, begin
