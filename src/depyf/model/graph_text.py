"""Torch's print of a graph -> its nodes.

Every stage of a graph (captured, joint, forward, backward, after Inductor's passes) is recorded as the text that torch
printed, so the nodes can be read anywhere: from a running torch, from records, from a log of ``TORCH_TRACE``. What the
text says in comments and strings has a form of torch's own:

* ``"f32[2, s27][s27, 1]cuda:0"``: dtype, shape, stride, device (``CodeGen._gen_python_code`` in torch/fx/graph.py);
* ``# File: model.py:12 in forward, code: x = self.q(x)``: the user's line of the nodes below
  (``_ParsedStackTrace.get_summary_str``);
* ``# GradAOTOutput(grad_of=PlainAOTInput(idx=2))`` after a value: its role
  (torch/_functorch/_aot_autograd/descriptors.py).

The text is read statement by statement: one that was cut off, or that is not Python everywhere, gives the nodes that it
has. Nothing here raises for any text.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..decompiler.nodes import dotted_name
from ..records.model import SourceLocation
from ..torch_text.libraries import is_generated
from ..torch_text.parsed import UNREADABLE
from ..torch_text.wrapping import NOT_PYTHON, items, top_level
from .graph import DTYPES, AotValue, Graph, Input, Node, TensorType

_LOCATION = re.compile(
    r"# ?(?P<remark>.*?) ?File: (?P<file>.+?):(?P<line>\d+) in (?P<function>.+?), code: ?(?P<text>.*)$")
_NO_LOCATION = "No stacktrace found"  #: Torch found no user line for the nodes below.
#: By classes of syntax trees, functions of the module ``operator``.
OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Div: "truediv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and_", ast.BitOr: "or_",
    ast.BitXor: "xor", ast.MatMult: "matmul", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.Gt: "gt",
    ast.LtE: "le", ast.GtE: "ge", ast.UAdd: "pos", ast.USub: "neg", ast.Invert: "invert", ast.Not: "not_",
    ast.Is: "is_", ast.IsNot: "is_not", ast.In: "contains", ast.NotIn: "not_contains"}
_IN_PLACE = {name: "i" + name.rstrip("_") for name in OPERATORS.values()}
_CLASS = re.compile(r"class (?P<name>\w+)(?P<bases>\(.*\))?:")
#: The base of a graph's class.
_MODULE = "(torch.nn.Module)"
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_OBJECT = re.compile(r"<[^<>\n]*>")
_RELEASE = re.compile(r";  (?P<names>(?:\w+ = )+)None$")  #: What lets go of values after a statement.
#: The node's name for what an operation in place has changed.
_SECOND_NAME = re.compile(r'(?P<statement>.*);  (?P<node>\w+(?:: "[^"]*")? = \w+)$', re.S)
_ROLE = re.compile(r"(?P<code>.*?)  # (?P<role>[A-Z]\w*(?:\(.*\))?|None)$")
_AOT_VALUE = re.compile(r"(?P<kind>[A-Z]\w*)\((?P<key>\w+)=(?P<inner>.*)\)$")
#: What the calls of operators begin with that run an operator which they are given.
_HIGHER_ORDER = "torch.ops.higher_order."
_OPERATOR = re.compile(r"(?<![\w.'])torch\.ops\.\w+\.\w+(?:\.\w+)?")
_NUMBER = re.compile(r"Sym\((.*)\)")
_JOINS = 20  #: So often are lines joined, up to that on which all brackets are closed, that are no statement.


@functools.lru_cache(64)
def read_graph(text: str) -> Graph:
    """Return the graph that a text contains; one without nodes where it contains none.

    Those of a run are parsed once: who writes its files clears the cache then.
    """
    try:
        return _Text(text).graph()
    except (RecursionError, MemoryError, ValueError, AttributeError, IndexError, TypeError):
        return Graph("")


def locations(text: str) -> Iterator[SourceLocation]:
    """Yield the user's lines that the comments of a graph's text name; the statements are not read for it."""
    for line in dict.fromkeys(text.splitlines()) if "File: " in text else ():
        match = _LOCATION.match(line.strip())
        if match is not None:
            yield _location(match["file"], int(match["line"]), match["function"], match["text"])


class _Text:
    """Reads the classes of a text, of which each is a graph."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.first = 0
        if text.startswith(NOT_PYTHON):  # (then all is a comment)
            self.lines[1:] = [line.removeprefix("# ") for line in self.lines[1:]]
            self.first = 1
        self.root: _Graph | None = None
        self.open: list[_Graph] = []
        self.is_module = True
        self.joins = _JOINS

    def graph(self) -> Graph:
        at = self.first
        while at < len(self.lines):
            line = self.lines[at]
            code = line.strip()
            if code and code[0] != "#":
                while self.open and indentation(line) <= self.open[-1].indent:
                    self.open.pop()
                after = self._statement(at, self._end(at))
                if not after:  # (lines that were joined for nothing)
                    self.joins -= 1
                at = after or self._statement(at, at + 1) or at + 1
                continue
            at += 1
            if code and self.open:
                self.open[-1].comment(code, at)
            elif code:
                self.is_module = False
        return Graph("") if self.root is None else self.root.done(self.is_module)

    def _end(self, at: int) -> int:
        """Return the line after the statement that begins on a line: that on which all its brackets are closed."""
        depth, quotes = 0, ""
        for end in range(at, len(self.lines)):
            line = self.lines[end]
            if quotes or "'''" in line or '"""' in line:  # (a line of such a string may look like a statement)
                for each in ("'''", '"""'):
                    if quotes in ("", each) and line.count(each) % 2:
                        quotes = "" if quotes else each
            else:
                depth += _depth(line)
            if depth <= 0 and not quotes:
                return end + 1
            if self.joins <= 0:
                break
        self.joins = 0  # (a bracket is open up to the end of the text)
        return at + 1

    def _statement(self, at: int, end: int) -> int:
        """Read the lines up to one as a statement; return that line, 0 where they are none."""
        line = self.lines[at]
        code, indent = line.strip(), indentation(line)
        if code.startswith("class ") and (match := _CLASS.match(code)):
            if self.root is None or self.open:
                graph = _Graph(match["name"], indent)
                self.is_module &= match["bases"] == _MODULE
                if self.open:
                    self.open[-1].inner.append(graph)
                self.open.append(graph)
                self.root = self.root or graph
            else:
                self.is_module = False
            return end
        if code.startswith("def "):
            return self._function(at, end, indent)
        if not self.open:
            self.is_module = False
            return end
        return end if self.open[-1].statement(self.lines[at:end], at + 1) else 0

    def _function(self, at: int, end: int, indent: int) -> int:
        """Read a signature; the first of a class is that of its graph."""
        if self.root is None:
            self.root = _Graph(self.lines[at].strip()[len("def ") :].partition("(")[0], indent)
            self.open, self.is_module = [self.root], False
        if not self.open or self.open[-1].has_signature:
            self.is_module = False
            self.open.append(_Graph("", indent))  # (its statements are of no graph)
            return end
        return end if self.open[-1].signature(self.lines[at:end]) else 0


def indentation(line: str) -> int:
    """Return the column at which the text of a line begins."""
    return len(line) - len(line.lstrip())


def _parsed(code: str) -> list[ast.stmt]:
    """Return the statements of a text. The ``repr`` of an object in it, ``<Mesh 2>``, counts as a constant."""
    try:
        return ast.parse(code).body
    except SyntaxError:
        return ast.parse(_OBJECT.sub("...", code)).body


def _depth(line: str) -> int:
    """Return how many more brackets a line opens than it closes."""
    if sum(map(line.count, "([{")) == sum(map(line.count, ")]}")):
        return 0
    code = _STRING.sub("", line).partition("  # ")[0]
    return sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))


@dataclass
class _Graph:
    """A graph while it is read."""

    # name, indent: of its class
    name: str
    indent: int
    # inner, nodes, inputs, unread, results: as of :class:`Graph`
    inner: list[_Graph] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    unread: list[Node] = field(default_factory=list)
    results: tuple[str, ...] = ()
    names: set[str] = field(default_factory=set)  # of nodes
    # parameters that no statement has renamed so far, with their annotations
    arguments: dict[str, TensorType | None] = field(default_factory=dict)
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)  # names of argument lists -> the nodes in them
    # `(statement, target, inputs)` of an operation in place whose node is named next
    in_place: tuple[str, str, tuple[str, ...]] | None = None
    # location, remark: of the nodes that follow
    location: SourceLocation | None = None
    remark: str = ""
    flattened: bool = False  # its arguments come as a list or as trees
    has_signature: bool = False

    def done(self, is_module: bool) -> Graph:
        if not self.flattened:
            # A parameter whose node has its own name is a node without a statement.
            count = next((i for i, node in enumerate(self.nodes) if node.op != "placeholder"), len(self.nodes))
            first = self.nodes[:count]
            known = {node.target for node in first}
            first += [Node(name, "placeholder", name, (), kind) for name, kind in self.arguments.items()
                      if name not in known]
            order = {name: index for index, name in enumerate(self.arguments)}
            self.nodes[:count] = sorted(first, key=lambda node: order.get(node.target, -1))
        return Graph(self.name, _with_lines_of_items(self.nodes), tuple(each.done(is_module) for each in self.inner),
                     tuple(self.inputs), self.results, tuple(self.unread), is_module and self.has_signature)

    def signature(self, lines: Sequence[str]) -> bool:
        """Read the lines of a signature; return whether they are one."""
        texts, notes = [], {}
        for line in lines:
            code, _, note = line.partition("  # ")
            texts.append(code.strip())
            notes[code.partition(":")[0].strip(" ,*")] = aot_value(note) if note else None
        code = " ".join(texts)
        marks = list(top_level(code))
        try:
            definition = ast.parse(f"{code} pass").body[0]
        except UNREADABLE:
            return False
        closed = next((place for letter, place in marks if letter == ")"), 0)
        if not closed or not isinstance(definition, ast.FunctionDef):
            return False
        types = {each.arg: _type(each.annotation) for each in ast.walk(definition.args) if isinstance(each, ast.arg)}
        for text in items(code[marks[0][1] + 1 : closed]):
            match = re.match(r"\**(?P<name>\w+)", text)
            if match and match["name"] != "self":
                name = match["name"]
                self.arguments[name] = types.get(name)
                self.inputs.append(Input(name, text, types.get(name), notes.get(name)))
        self.has_signature = True
        return True

    def comment(self, comment: str, line: int) -> None:
        """Read a comment, which may say something of the nodes below."""
        match = _LOCATION.match(comment)
        if match is not None:
            place = _location(match["file"], int(match["line"]), match["function"], match["text"])
            if place is self.location:  # (another user stack with the same innermost line)
                place = replace(place)
            self.location, self.remark = place, match["remark"].strip()
        elif _NO_LOCATION in comment:
            self.location, self.remark = None, ""
        else:
            self._leave_unread(comment, line)

    def _leave_unread(self, code: str, line: int) -> None:
        self.unread.append(Node("", "", "", (), None, self.location, line, value=code, remark=self.remark))

    # --- statements -------------------------------------------------------------------------------
    def statement(self, lines: Sequence[str], line: int) -> bool:
        """Read the lines of a statement; return whether they are one."""
        notes = []
        parts = []
        indent = indentation(lines[0])
        for text in lines:
            role = _ROLE.match(text) if "  # " in text else None
            parts.append((text if role is None else role["code"])[indent:].rstrip())
            notes.append(aot_value(role["role"]) if role is not None else None)
        code = "\n".join(parts)
        released = _RELEASE.search(code)
        names = released["names"].replace("=", " ").split() if released is not None else []
        code = code[: released.start()] if released is not None else code
        second = _SECOND_NAME.match(code) if ";  " in code else None
        known = len(self.nodes)
        try:
            for part in (code,) if second is None else (second["statement"], second["node"]):
                trees = _parsed(part)
                for tree in trees:
                    text = part if len(trees) == 1 else ast.get_source_segment(part, tree) or ""
                    if not self._tree(tree, text, line, names):
                        self._leave_unread(text, line)
        except UNREADABLE:
            if len(lines) == 1:
                self._leave_unread(code, line)
            return len(lines) == 1
        if any(notes) and len(self.nodes) > known:
            self.nodes[-1] = self.nodes[-1]._replace(notes=tuple(notes))
        return True

    def _tree(self, tree: ast.stmt, code: str, line: int, released: Sequence[str]) -> bool:
        """Read a statement; return whether it is of a node, or only releases values."""
        match tree:
            case ast.AnnAssign(ast.Name(name), _, ast.expr() as value) | ast.Assign([ast.Name(name)], value):
                kind = _type(getattr(tree, "annotation", None))
                return self._assignment(value, Node(
                    name, "", "", (), kind, self.location, line, value=code.partition(" = ")[2], remark=self.remark,
                    unused=name in released))
            case ast.Return(value):
                returned = value.elts if isinstance(value, ast.Tuple | ast.List) else ()
                self.results = tuple(item.id if isinstance(item, ast.Name) else "" for item in returned)
                self._add(Node("output", "output", "output", self._inputs(value), None, None, line,
                               value=code.removeprefix("return ")))
            case ast.AugAssign(target, operator, value):
                name = _IN_PLACE.get(OPERATORS.get(type(operator), ""), "iadd")
                self.in_place = code, f"operator.{name}", self._inputs(target, value)
            case ast.Assign([ast.Subscript() as target], value):
                self.in_place = code, "operator.setitem", self._inputs(target, value)
            case ast.AnnAssign(ast.Name(name), annotation, None):
                self._add(Node(name, "placeholder", name, (), _type(annotation), None, line, statement=code))
            case ast.Assign([ast.Tuple(targets) | ast.List(targets)]):
                if "tree_flatten" in code:
                    for item in targets:
                        if isinstance(item, ast.Name):
                            self._add(Node(item.id, "placeholder", item.id, (), None, None, line))
                    self.flattened = True
                    self.arguments.clear()
                return False
            case ast.Assign([_, _, *_], ast.Constant(None)):  # ``a = b = None``
                return True
            case _:
                return False
        return True

    def _assignment(self, value: ast.expr, node: Node) -> bool:
        """Read what is assigned to the name of a node; return whether it is one."""
        in_place, self.in_place = self.in_place, None
        match value:
            case ast.Name(name) if in_place is not None:
                statement, target, inputs = in_place
                node = node._replace(op="call_function", target=target, inputs=inputs, value=name, statement=statement)
            case ast.Name(name) if name in self.arguments:
                node = Node(node.name, "placeholder", name, (), self.arguments[name] or node.type, None, node.line)
            case ast.Name():
                return False
            case ast.Constant(None):
                return True  # torch releases values that it needs no more
            case ast.List() | ast.Tuple():
                self.lists[node.name] = self._inputs(value)  # arguments, put together before a call that empties it
                return False
            case ast.Call(ast.Name("iter")):
                self.flattened = True  # the arguments come as one list
                self.arguments.clear()
                return False
            case ast.Call(ast.Name("next")):
                node = Node(node.name, "placeholder", node.name, (), node.type, None, node.line, value=node.value)
            case _:
                op, target = self._operation(value)
                if not op:
                    return False
                given = value.args if target.startswith(_HIGHER_ORDER) and isinstance(value, ast.Call) else ()
                runs = next((name for each in given if _OPERATOR.fullmatch(name := dotted_name(each))), "")
                node = node._replace(op=op, target=target, inputs=self._inputs(value), runs=runs)
        self._add(node)
        return True

    def _operation(self, value: ast.expr) -> tuple[str, str]:
        """Return ``(op, target)`` of an expression that torch prints for a node; empty texts for another."""
        if path := _attribute(value):
            return "get_attr", path.removeprefix("self.")
        match value:
            case ast.Call(function) if path := _attribute(function):
                return "call_module", path.removeprefix("self.")
            case ast.Call(function):
                name = dotted_name(function)
                root = name.partition(".")[0]
                is_global = name and root not in self.names and root not in self.arguments
                if isinstance(function, ast.Attribute) and not is_global:
                    return "call_method", function.attr
                return "call_function", name or ast.unparse(function)
            case ast.Subscript():
                return "call_function", "operator.getitem"
            case ast.Attribute():
                return "call_function", "getattr"
            case ast.BinOp(op=operator) | ast.UnaryOp(op=operator) | ast.Compare(ops=[operator, *_]) \
                    if type(operator) in OPERATORS:
                return "call_function", f"operator.{OPERATORS[type(operator)]}"
        return "", ""

    def _add(self, node: Node) -> None:
        if node.name not in self.names or node.op == "output":
            self.names.add(node.name)
            self.nodes.append(node)

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
    """Return the nodes; a call without a line of its own has that of the items that are taken out of its result.

    Torch's partitioner puts a call that saves the state of the random numbers in the place of another one. It copies
    nothing of what is known of that, but its items stay as they were.
    """
    lines: dict[str, SourceLocation] = {}
    for node in reversed(nodes):
        if node.target == "operator.getitem" and node.inputs:
            place = node.location or lines.get(node.name)
            if place is not None:
                lines[node.inputs[0]] = place
    return tuple([node._replace(location=lines[node.name])
                  if node.location is None and node.name in lines and node.is_call else node for node in nodes])


def _attribute(value: ast.expr) -> str:
    """Return ``"self.a.b"`` also for ``getattr(self, "a").b``; ``""`` for what is no attribute of the module."""
    match value:
        case ast.Attribute(inner, name) | ast.Call(ast.Name("getattr"), [inner, ast.Constant(str(name))]):
            owner = "self" if isinstance(inner, ast.Name) and inner.id == "self" else _attribute(inner)
            return f"{owner}.{name}" if owner else ""
    return ""


@functools.lru_cache(65536)
def aot_value(text: str) -> AotValue | None:
    """Read the role that AOTAutograd gives a value; ``None`` for ``"None"``."""
    match = _AOT_VALUE.match(text)
    if match is None:
        return None if text == "None" else AotValue(text)
    inner = match["inner"]
    return AotValue(text, match["kind"], int(inner) if inner.isdecimal() else None,
                    inner[1:-1] if inner[:1] in "'\"" else "", aot_value(inner) if "(" in inner else None)


@functools.lru_cache(65536)
def _location(filename: str, line: int, function: str, text: str) -> SourceLocation:
    # (Generated code releases values at the end of its lines.)
    return SourceLocation(filename, line, function, _RELEASE.sub("", text) if is_generated(filename) else text)


def _type(annotation: ast.expr | None) -> TensorType | None:
    if annotation is None:
        return None
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return tensor_type(annotation.value)
    return TensorType(ast.unparse(annotation))


@functools.lru_cache(65536)
def tensor_type(text: str) -> TensorType:
    """Read torch's annotation of a value. A subclass of tensors is printed around it: ``"DTensor(f32[2], ...)"``."""
    inner = re.fullmatch(r"[A-Za-z_]\w*\((?P<inner>\w+\[.*)\)", text)
    core = inner["inner"] if inner is not None else text
    begin = core.find("[")
    dtype = core[:begin]
    if begin <= 0 or not dtype.isidentifier():
        number = _NUMBER.fullmatch(text)
        return TensorType(text, number=number[1] if number is not None else "")
    shape, end = _sizes(core, begin)
    if shape is None:
        return TensorType(text)
    stride, after = _sizes(core, end) if core[end : end + 1] == "[" else (None, end)
    device = re.match(r"[a-z]+(?::\d+)?", core[after:])
    return TensorType(text, DTYPES.get(dtype, dtype), shape, stride, device.group(0) if device else "")


def _sizes(text: str, begin: int) -> tuple[tuple[str, ...] | None, int]:
    """Return the sizes in the bracket that begins there, and where it ends. Sizes may be expressions with commas."""
    closed = next((begin + place for letter, place in top_level(text[begin:]) if letter == "]"), 0)
    return (tuple(items(text[begin + 1 : closed])), closed + 1) if closed else (None, begin)
