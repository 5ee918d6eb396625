"""A graph in readable form, made of torch's print of it.

Torch prints a graph such that it can be run::

    def forward(self, L_x_: "f32[2, 8][8, 1]cpu", L_self_modules_layers_modules_0_parameters_weight_: "f32[8, 8]..."):
        l_x_ = L_x_
        # File: /home/me/project/model.py:14 in forward, code: x = self.layers[0](x)
        linear: "f32[2, 8][8, 1]cpu" = torch._C._nn.linear(l_x_, l_self_modules_layers_modules_0_..., None);  l_x_ = ...

The view is the same program. Each parameter is on its own line, under a name made of the user's expression for it, and
is marked where the graph writes to it, or may do so (torch does not print that). Second names, names that nothing reads
and what deletes values are gone; running code still deletes them (:mod:`depyf.link.lifetimes`). Subscripts have ``a:b``
and ``...`` (:mod:`depyf.torch_text.parsed`), a statement that sets a mode has a comment. Paths, and sizes that are
computed of others (:mod:`depyf.torch_text.size_names`), are at the head.

The full code has it as a function that is called as the transformed code calls it (:meth:`GraphView.function`). A graph
within it is a function above the statements that call it; anything else that it reads of its module is read of the
function: ``__compiled_fn_1.linear(x)``.
"""

from __future__ import annotations

import ast
import builtins
import functools
import keyword
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...decompiler.dynamo.global_names import MODULE_DICTIONARIES
from ...decompiler.nodes import free_name
from ...model.arithmetic import plain
from ...model.graph import ROLES, AotValue, Graph, Input, Node, argument_index, last_name, mode_set, with_names
from ...model.graph_text import indentation, read_graph
from ...records.model import Caller, GraphInput, SourceLocation
from ...records.naming import legal_identifier
from ...torch_text import wrapping
from ...torch_text.global_names import plain_name
from ...torch_text.libraries import is_of
from ...torch_text.modules import parts_of_input
from ...torch_text.parsed import parsed_expression, with_slices
from ...torch_text.size_names import is_symbol, size_names, with_size_names
from ...torch_text.user_expressions import user_expression, with_sizes
from ...torch_text.wrapping import NOT_PYTHON
from ...values import frozen
from ..formatting import short_names
from .graph_writes import written_arguments

#: Names of built-in functions that no graph calls, and arguments often have.
_FREE = frozenset({"input", "id", "filter", "format", "hash", "dir", "vars", "open", "help", "compile"})
_RESERVED = frozenset({
    *keyword.kwlist, *(set(dir(builtins)) - _FREE), "torch", "device", "inf", "nan", "self", "operator", "NoneType",
    "fx_pytree", "pytree"})
_LONGEST_NAME = 60
#: Parts of sources that are no part of a name.
_TORCHS = frozenset({*MODULE_DICTIONARIES, "__closure__", "cell_contents"})


@dataclass
class _Written:
    """A graph of the view."""

    # graph, indent: the graph, and the indentation of its class
    graph: Graph
    indent: int
    role: Sequence[str]  # comments on its use
    signature: list[str] = field(default_factory=list)  # the lines of its `def`
    parameters: dict[str, int] = field(default_factory=dict)  # the line of the signature of each, from 0
    # `(node, its lines)`; comments and empty lines have no node
    body: list[tuple[Node | None, Sequence[str]]] = field(default_factory=list)
    names: Mapping[str, str] = field(default_factory=dict)  # new names of its nodes and parameters
    inner: list[_Written] = field(default_factory=list)  # the graphs within it

    def module(self, first: int, lines: dict[int, int]) -> list[str]:
        """Return the graph as torch prints it; ``lines`` (of the view, by line of torch's text) are extended."""
        out = [*self.role, f"{' ' * self.indent}class {self.graph.name}(torch.nn.Module):"]
        parameters = {name: first + len(out) + at for name, at in self.parameters.items()}
        lines.update((node.line, parameters[node.target]) for node in self.graph.nodes
                     if node.op == "placeholder" and not node.value and node.line and node.target in parameters)
        out += self.signature
        for node, written in self.body:
            if node is not None:
                lines[node.line] = first + len(out)
            out += written
        for inner in self.inner:
            out += ["", *inner.module(first + len(out) + 1, lines)]
        return out

    def function(self, name: str) -> list[str]:
        """Return the graph as a function of a name: graphs within it are functions above their callers."""
        cut = self.indent + 4
        signature = [line[cut:] for line in self.signature if line.strip() != "self,"]
        signature[0] = signature[0].replace("def forward(self, ", "def forward(").replace("(self)", "()").replace(
            "def forward(", f"def {name}(", 1)
        if len(signature) == 2:
            signature = [f"def {name}():"]
        body: list[str] = []
        inner = {each.graph.name: each for each in self.inner}
        read = {node.target for node in self.graph.nodes if node.op == "get_attr"}
        members: dict[str, str] = {}  # inner graphs that are defined -> the names of their functions

        def define(member: str, function: str) -> None:
            members[member] = function
            if body and body[-1]:
                body.append("")
            body.extend(f"    {line}" if line else "" for line in [
                *(line.strip() for line in inner[member].role), *inner[member].function(function), ""])

        for member in inner:
            if member not in read:
                define(member, member)
        paragraph: list[str] = []
        for node, written in self.body:
            member = node.target if node is not None and node.op in ("get_attr", "call_module") else ""
            if node is not None and node.op == "get_attr" and member in inner:
                if member not in members:
                    define(member, node.name)
                    continue
                if members[member] == node.name:
                    continue
            if node is None and written == [""]:
                body += [*paragraph, ""]
                paragraph = []
            for line in written if node is not None or written != [""] else ():
                code, mark, words = line[cut:].partition("  # ")
                if node is not None and "self" in code:
                    code = code.replace(f"self.{member}", members[member], 1) if member in members else (
                        with_names(code, {"self": name}))
                paragraph.append(code + mark + words)
        return [*signature, *body, *paragraph]

    def statements(self) -> Iterator[str]:
        """Yield the statements without types and comments; then those of graphs within it."""
        functions = {each.graph.name for each in self.inner}
        for node, _ in self.body:
            if node is not None and not (node.op == "get_attr" and node.target in functions):
                tree = parsed_expression(node.value) if "\n" in node.value else None
                value = node.value if tree is None else ast.unparse(tree)
                last = f"return {value}" if node.op == "output" else f"{node.name} = {value}" if node.name else value
                for code in (node.statement, last) if node.statement and not node.unused else (node.statement or last,):
                    yield with_names(with_slices(code), self.names)
        for inner in self.inner:
            yield from inner.statements()


@frozen
class GraphView:
    """A view of a graph, as :func:`graph_view` makes it."""

    text: str
    files: tuple[tuple[str, str], ...] = ()  # `(name in the text, path)` of the user's files, in order
    # new names of nodes, by torch's. Nodes of an inner graph are named `"cond_true_0.sin"`
    names: Mapping[str, str] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()  # of the graph, as they are named in the text
    writes: tuple[str, ...] = ()  # the arguments that the graph writes to, in the user's words
    # attributes of the graph's module that it writes to, by torch's names: an optimizer's parameters
    own_writes: tuple[str, ...] = ()
    # names of sizes that are computed of open ones: `("d0", "(s53 - 1) // 2 + 1")`
    sizes: tuple[tuple[str, str], ...] = ()
    # the open sizes among the inputs, in the user's words: `("s53", "x.shape[2]")`
    symbols: tuple[tuple[str, str], ...] = ()
    _lines: Mapping[int, int] = field(default_factory=dict)
    _written: _Written | None = None

    def line(self, line: int) -> int:
        """Return the line of the view with the node of a line of torch's text; 0 where there is none."""
        return self._lines.get(line, 0)

    def function(self, name: str) -> str:
        """Return the graph as a function of a name; as a comment where torch printed no Python."""
        return "\n".join(self._written.function(legal_identifier(name)) if self._written is not None else [
            f"# {line}" for line in self.text.strip("\n").splitlines()])

    @functools.cached_property
    def statements(self) -> Sequence[str]:
        """The statements of the graph, without types and comments."""
        return [*self._written.statements()] if self._written is not None else []


@functools.lru_cache(8)
def graph_view(
    text: str, inputs: tuple[GraphInput, ...] = (), captured: bool = True, callers: tuple[Caller, ...] = ()
) -> GraphView:
    """Return the view of a graph; torch's text as it is where it is no graph.

    Args:
        captured: this is that graph; a later stage keeps torch's names, and has the user's beside its parameters.
        callers: the user's lines for which torch prints places in its own code.
    """
    graph = read_graph(text)
    if not graph.is_module:
        return plain_view(text)
    view = _View(graph, inputs, captured, callers).view("\n" * text.endswith("\n"))
    if not text.startswith(NOT_PYTHON):
        return view
    lines, places = [text.partition("\n")[0]], {}
    for number, line in enumerate(view.text.rstrip("\n").split("\n"), 1):
        places[number] = len(lines) + 1
        lines += wrapping.comment(line, 0) if line.strip() else ["#"]
    return replace(view, text="\n".join(lines) + "\n" * text.endswith("\n"), _written=None,
                   _lines={line: places[shown] for line, shown in view._lines.items()})


def plain_view(text: str) -> GraphView:
    """Return the view of a text that is shown as it is."""
    return GraphView(text, _lines={number: number for number in range(1, text.count("\n") + 2)})


def parameter_words(name: str, inputs: Sequence[GraphInput]) -> str:
    """Return the user's expression for a parameter of a graph, as its view names it; else ``""``."""
    view = _View(Graph(""), inputs, False)
    return view.primal(name) or next((words for words in view.words if words and _identifier(words) == name), "")


class _View:
    """The view while it is written, graph by graph."""

    def __init__(
        self, graph: Graph, inputs: Sequence[GraphInput], captured: bool, callers: Sequence[Caller] = ()
    ) -> None:
        self.graph, self.inputs, self.captured = graph, inputs, captured
        graphs = [each for _, each in graph.walk()]
        types = [kind.text for each in graphs for kind in (*[given.type for given in each.inputs], *[
            node.type for node in each.nodes if node.op != "placeholder"]) if kind is not None]
        self.size_names = size_names(types, {name for each in graphs for name in _names(each)})
        self.callers = {node: caller.location for caller in callers for node in caller.nodes}
        self.called_from: SourceLocation | None = None  # of the place that was written last
        self.files = short_names([
            *[node.location.filename for each in graphs for node in (*each.nodes, *each.unread)
              if node.location is not None],
            *(caller.location.filename for caller in callers)])
        self.words = [with_sizes(user_expression(given.source)) if given.source else "" for given in inputs]
        self.words_by_name = {given.name: words for given, words in zip(inputs, self.words)}
        self.names: dict[str, str] = {}
        self.parameters: tuple[str, ...] = ()
        self.symbols = {given.name: words for given, words in zip(inputs, self.words)  # what open sizes are
                        if words and is_symbol(given.name)}
        self.written: list[str] = []
        self.argument_words: dict[str, str] = {}

    def view(self, end: str) -> GraphView:
        written = self.write(self.graph, "", 0, {}, [])
        lines: dict[int, int] = {}
        return GraphView(
            "\n".join(written.module(1, lines)) + end,
            tuple((short, path) for path, short in self.files.items()), self.names, self.parameters,
            tuple(words for name, words in self.argument_words.items() if name in self.written),
            tuple(name for name in self.written if name not in self.argument_words),
            tuple((name, plain(size)) for size, name in self.size_names.items()),
            tuple(self.symbols.items()), lines, written)

    def write(self, graph: Graph, prefix: str, indent: int, outer: Mapping[str, str], role: Sequence[str]) -> _Written:
        """Return a graph as it is shown.

        Args:
            prefix: of its nodes' names in records.
            outer: new names in the outermost graph, which inner graphs use.
        """
        written = _Written(graph, indent, role)
        other = {node.target: node.name for node in graph.nodes if node.op == "placeholder" and not node.value
                 and node.target != node.name}
        shown = self.shown_names(graph, other, outer, bool(prefix))
        written.names = {other.get(name, name): new for name, new in shown.items() if other.get(name, name) != new}
        self.names |= {prefix + old: new for old, new in written.names.items()}
        self.signature(written, shown, bool(prefix))
        self.body(written, prefix)
        known = _roles(graph)
        for inner in graph.subgraphs:
            use, caller = known.get(inner.name, ("", None))
            place = caller and (self.callers.get(prefix + caller.name) or caller.location)
            use += f" ({self.files[place.filename]}:{place.line})" if place else ""
            written.inner.append(self.write(
                inner, f"{prefix}{inner.name}.", indent + 4, outer or written.names,
                wrapping.comment(use, indent + 4) if use else []))
        return written

    # --- signatures -------------------------------------------------------------------------------
    def signature(self, written: _Written, shown: Mapping[str, str], is_inner: bool) -> None:
        """Write the signature of a graph: a line for each parameter, with its type and meaning."""
        graph, indent = written.graph, " " * (written.indent + 4)
        if [given.text for given in graph.inputs] in ([], ["args_list"]):
            written.signature = [f"{indent}def forward({', '.join(['self', *(each.text for each in graph.inputs)])}):"]
            return
        if not is_inner:
            self.written, self.parameters = written_arguments(graph), tuple(shown[each.name] for each in graph.inputs)
        written.signature = [f"{indent}def forward(", f"{indent}    self,"]
        for given in graph.inputs:
            written.parameters[given.name] = len(written.signature)
            written.signature += self.parameter(given, shown[given.name], is_inner, written.indent + 8)
        written.signature.append(f"{indent}):")

    def parameter(self, given: Input, shown: str, is_inner: bool, indent: int) -> list[str]:
        """Return the lines of a parameter, with its meaning in the user's words where its name does not say it."""
        if not self.captured and given.note is not None:
            label = self.words_of(given.note)
        else:
            label = "" if is_inner else self.words_by_name.get(given.name, "") if self.captured \
                else self.primal(given.name)
        label = "" if label == shown else label
        words = label or shown
        notes = [label, "written to" if not is_inner and given.name in self.written else ""]
        size = given.type.number if given.type is not None else ""
        if size:
            if words != size:
                self.symbols.setdefault(size, words)
            if is_symbol(given.name) and size != given.name:
                notes.append(f"equal to {plain(size)}")
        if not is_inner:
            self.argument_words[given.name] = words
        text = given.text[len(given.name) :]
        if given.type is not None:
            text = text.replace(given.type.text, with_size_names(given.type.text, self.size_names))
        return _with_comment(f"{shown}{text},", ", ".join(filter(None, notes)), indent)

    def shown_names(
        self, graph: Graph, other: Mapping[str, str], outer: Mapping[str, str], is_inner: bool
    ) -> dict[str, str]:
        """Return the name of each parameter in the view; ``other``: the names of their nodes, where they differ."""
        shown = {given.name: given.name for given in graph.inputs}
        wanted: Mapping[str, str] = {}
        if self.captured:
            wanted = outer if is_inner else {
                name: _identifier(words) for name, words in self.words_by_name.items() if words}
        changed = [name for name in shown if name in other or name in wanted and is_inner]
        # (What names the parameters now is free.)
        taken = _names(graph) - {*other.values(), *changed} | _RESERVED if changed else set()
        for name in changed:
            parts = parts_of_input(name)
            guessed = _plain("_".join(parts[1:] if parts[0] == "self" and len(parts) > 1 else parts))
            # torch counts its own names from 1, so a parameter is 0
            shown[name] = free_name(wanted.get(name, "") or guessed, taken, first=0)
            taken.add(shown[name])
        return shown

    def primal(self, name: str) -> str:
        """Return the user's words for ``primals_3`` or ``arg2_1``; else ``""``."""
        index = argument_index(name)
        return self.input(index) if index is not None else ""

    def input(self, index: int) -> str:
        return (self.words[index] or self.inputs[index].name) if 0 <= index < len(self.words) else ""

    def words_of(self, value: AotValue) -> str:
        match value:
            case AotValue(kind="PlainAOTInput", index=int(index)):
                return self.input(index) or f"input {index}"
            case AotValue(kind="PlainAOTOutput", index=int(index)):
                return f"result {index}"
            case AotValue(kind="ParamAOTInput" | "BufferAOTInput", name=name) if name:
                return name
            case AotValue(kind="TangentAOTInput" | "GradAOTOutput", of=AotValue() as of):
                return f"gradient of {self.words_of(of)}"
            case AotValue(kind="InputMutationAOTOutput", of=AotValue() as of):
                return f"new value of {self.words_of(of)}"
            case AotValue(kind=kind, index=int(index)) if kind.startswith("SavedForBackwards"):
                return f"saved for backward {index}"
            case AotValue(kind="ViewBaseAOTInput" | "SyntheticBaseAOTInput" | "IntermediateBaseAOTOutput",
                          of=AotValue() as of):
                return f"what {self.words_of(of)} is a view of"
        return value.text

    # --- bodies -----------------------------------------------------------------------------------
    def body(self, written: _Written, prefix: str) -> None:
        """Write the statements of a graph, under comments on their places."""
        graph, indent, lines = written.graph, written.indent + 8, written.body
        nodes = [node for node in graph.nodes if node.op != "placeholder" or node.value or node.statement]
        place: object = ()  # (no comment has said anything yet)
        for node in sorted([*nodes, *graph.unread], key=lambda each: each.line) if graph.unread else nodes:
            if node.value.startswith("#"):
                self.add_comment(lines, wrapping.comment(node.value.lstrip("# "), indent))
                continue
            if node.op not in ("placeholder", "output") and node.location is not place and (node.op or node.location):
                place = node.location
                self.add_comment(lines, self.comment(node, self.callers.get(prefix + node.name), indent))
            lines.append((node, self.statement(node, written.names, indent)))

    @staticmethod
    def add_comment(body: list[tuple[Node | None, Sequence[str]]], comment: Sequence[str]) -> None:
        """Write a comment, or an empty line where the scope of the last one ends."""
        if body and not body[-1][1][-1].lstrip().startswith("#"):
            body.append((None, [""]))
        if comment:
            body.append((None, comment))

    def comment(self, node: Node, caller: SourceLocation | None, indent: int) -> list[str]:
        """Return the comment on the place of nodes of which one is the first."""
        before, self.called_from = self.called_from, caller if node.location is not None else None
        if node.location is None:
            return []
        if caller is None:
            return self.place(node.location, node.remark, indent)
        inner = self.place(node.location, node.remark, indent, "  by ")
        return inner if caller == before else [*self.place(caller, "", indent), *inner]

    def place(self, place: SourceLocation, remark: str, indent: int, lead: str = "") -> list[str]:
        text = place.text.strip()
        if is_of("compiled autograd", place.filename):  # (Not where the program asked for it.)
            return wrapping.comment(f"{lead}node of autograd: {text}", indent)
        words = f"{lead}{self.files[place.filename]}:{place.line} in {plain_name(place.function)}"
        more = f"  [{remark}]" if remark else ""
        whole = f"{words}: {text}{more}" if text else words + more
        if not text or indent + 2 + len(whole) <= wrapping.WIDTH:
            return wrapping.comment(whole, indent)
        return [*wrapping.comment(f"{words}:{more}", indent), *wrapping.comment(
            " " * (4 if lead else 2) + text, indent)]

    def statement(self, node: Node, names: Mapping[str, str], indent: int) -> list[str]:
        kind = f': "{with_size_names(node.type.text, self.size_names)}"' if node.type is not None else ""
        binding = node.name + kind
        if not node.op:
            return wrapping.wrapped(with_names(with_slices(node.value), names), indent)
        if node.op == "placeholder":
            note = next(iter(node.notes), None)
            words = self.words_of(note) if note is not None else self.primal(node.name) if node.value else ""
            return _with_comment(f"{binding} = {node.value}" if node.value else binding, words, indent)
        if node.statement:
            parts = [node.statement, *([] if node.unused else [f"{binding} = {node.value}"])]
            return [line for each in parts for line in wrapping.wrapped(with_names(with_slices(each), names), indent)]
        first, *further = node.value.split("\n")
        if node.op == "output":
            first = f"return {first}"
        elif not node.unused or node.type is not None or not node.value.endswith(")"):
            first = f"{binding} = {first}"
        notes = [self.words_of(note) if note is not None else "" for note in node.notes] or [
            mode_set(node.target, node.value) if node.op == "call_function" else ""]
        lines = []
        for at, line in enumerate([first, *further]):
            code, deeper = (line.strip(), indentation(line)) if further else (with_slices(line), 0)
            lines += _with_comment(with_names(code, names), notes[at] if at < len(notes) else "", indent + deeper)
        return lines


def _names(graph: Graph) -> set[str]:
    """Return the names that the statements of a graph use: of values, and of the callees."""
    unread = {node.value.partition(" ")[0].rstrip(":") for node in graph.unread}
    return {node.name for node in graph.nodes} | unread | {
        node.target.partition(".")[0] for node in graph.nodes if node.op == "call_function"}


def _roles(graph: Graph) -> dict[str, tuple[str, Node]]:
    """Return for each inner graph, by name, ``(its use, the node that calls it)``."""
    inner = {each.name for each in graph.subgraphs}
    read = {node.name: node.target for node in graph.nodes if node.op == "get_attr" and node.target in inner}
    result: dict[str, tuple[str, Node]] = {}
    for node in graph.nodes if read else ():
        if node.target.startswith("torch.ops.higher_order."):
            operator = last_name(node.target)
            known = ROLES.get(operator, (f"a function that {operator} calls",))
            # (The graph of a mask is an item of the tuple that a block mask is passed on as.)
            for at, name in enumerate(name for name in node.inputs if name in read):
                result.setdefault(read[name], (known[min(at, len(known) - 1)], node))
    return result


def _with_comment(code: str, words: str, indent: int) -> list[str]:
    """Return a line of code and a comment, after it or above it."""
    if not words:
        return wrapping.wrapped(code, indent)
    if indent + len(code) + len(words) + 4 <= wrapping.WIDTH:
        return [f"{' ' * indent}{code}  # {words}"]
    return [*wrapping.comment(words, indent), *wrapping.wrapped(code, indent)]


def _identifier(words: str) -> str:
    """Return a name made of a user's expression: ``layers_0_norm_weight`` of ``self.layers[0].norm.weight``."""
    plain = "".join(each if each.isascii() and (each.isalnum() or each == "_") else " " for each in words)
    parts = [part.strip("_") for part in plain.split() if part not in _TORCHS]
    parts = [part for part in parts if part]
    if len(parts) > 1 and (parts[0] == "self" or parts[0] == "kwargs" and not parts[1][0].isdigit()):
        del parts[0]
    while len(parts) > 1 and len("_".join(parts)) > _LONGEST_NAME:
        del parts[0]
    return _plain("_".join(parts))


def _plain(name: str) -> str:
    """Return a legal name, without the underscores that torch puts around it."""
    name = name.strip("_") or "value"
    name = f"value_{name}" if name[0].isdigit() else name
    return f"{name}_" if name in _RESERVED else name
