"""A graph as its reader wants it, made of torch's print of it.

Torch prints a graph so that it can be run::

    def forward(self, L_x_: "f32[2, 8][8, 1]cpu", L_self_modules_layers_modules_0_parameters_weight_: "f32[8, 8]..."):
        l_x_ = L_x_
        l_self_modules_layers_modules_0_parameters_weight_ = L_self_modules_layers_modules_0_parameters_weight_

        # File: /home/me/project/model.py:14 in forward, code: x = self.layers[0](x)
        linear: "f32[2, 8][8, 1]cpu" = torch._C._nn.linear(l_x_, l_self_modules_layers_modules_0_..., None);  l_x_ = ...
        linear[0] = 2;  setitem = linear;  setitem = None

The view of it is the same program, but for these:

* each parameter stands on its own line, under a name made of what the user calls it, which a comment says; the
  assignments that give it another name are gone; behind one that the graph writes to stands ``written to`` (``may be
  written to`` where that depends on what torch does not print);
* what lets go of values (``linear = None``) is gone, as are names that nothing reads. What runs still lets go of them
  where torch does (:mod:`depyf.link.releases`);
* subscripts have ``a:b`` and ``...``, for ``slice(a, b, None)`` and ``Ellipsis`` (:mod:`.subscripts`);
* a statement that sets a mode says so in words; that torch knows no line of the user's for it says nothing;
* the paths of the user's files are said once, at the head, as are sizes that are computed of others
  (:mod:`.size_names`);
* no line is longer than :data:`.wrapping.WIDTH`.

The view is a pure function of the text and of what the inputs are called. The records keep torch's text.
"""

from __future__ import annotations

import builtins
import functools
import keyword
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ...decompiler.dynamo.global_names import MODULE_DICTIONARIES
from ...decompiler.names import free_name
from ...records.model import Caller, GraphInput, SourceLocation
from ...torch_text import wrapping
from ...torch_text.resumes import plain_name
from ...torch_text.size_names import SYMBOL, in_words, size_names, with_size_names
from ...torch_text.subscripts import with_slices
from ...torch_text.user_expressions import user_expression
from ...torch_text.wrapping import NOT_PYTHON
from .graph_writes import written_arguments
from .inner_graphs import roles

_CLASS = re.compile(r"class (?P<name>\w+)\b")
_ALIAS = re.compile(r" *(?P<name>\w+) = (?P<parameter>\w+)$")
_PARAMETER = re.compile(r"(?P<name>\*{0,2}\w+)")
_TYPE = re.compile(r': "([^"]*)"')
_NUMBER = re.compile(r"Sym\((.*)\)")
#: The name that a statement binds, and the first one that it reads: a global, if it calls one.
_NAMES = re.compile(r'(?m)^ *(\w+)(?:: "[^"\n]*")? = (\w*)')
_SECOND_NAMES = re.compile(r'(?m);  (\w+)(?:: "[^"\n]*")? = ')
_NAME_OR_STRING = re.compile(
    r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|\'[^\'\\\n]*(?:\\.[^\'\\\n]*)*\'|(?<![\w.])[A-Za-z_]\w*')
_RELEASE = re.compile(r";  (?P<names>(?:\w+ = )+)None$")
#: What torch prints behind an operation in place: the node's name for what was changed.
_SECOND_NAME = re.compile(r'(?P<first>.*);  (?P<name>\w+)(?P<type>: "[^"]*")? = (?P<base>\w+)$')
_UNUSED_CALL = re.compile(r"(?P<name>\w+) = (?P<call>.*\))$")
#: What a statement binds.
_BOUND = re.compile(r" *(?P<name>\w+)(?:: \"[^\"]*\")? = ")
_FILE = re.compile(r"#(?P<before>.*?) ?File: (?P<file>.+?):(?P<line>\d+) in (?P<function>.+?), code: ?(?P<code>.*)$")
_DESCRIBED = re.compile(r"(?P<code>.*?)  # (?P<comment>[A-Z]\w*\(.*\)|None)$")
#: Torch found no line of the user's for the nodes below.
_NO_PLACE = "# No stacktrace found for following nodes"
#: What sets a mode of torch, in words.
_MODES = tuple((re.compile(rf"(?:\w+ = )?torch\.{call}"), words) for call, words in {
    r"_C\._set_grad_enabled\(False\)$": "grad mode off",
    r"_C\._set_grad_enabled\(True\)$": "grad mode on",
    r"amp\.autocast_mode\._enter_autocast\('(\w+)', (?:torch\.(\w+)|None), True\b.*\)$": r"autocast on for \1: \2",
    r"amp\.autocast_mode\._enter_autocast\('(\w+)', [^,]+, False\b.*\)$": r"autocast off for \1",
    r"amp\.autocast_mode\._exit_autocast\(.*\)$": "autocast as before",
    r"autograd\.grad_mode\._enter_inference_mode\(True\)$": "inference mode on",
    r"autograd\.grad_mode\._enter_inference_mode\(False\)$": "inference mode off",
    r"autograd\.grad_mode\._exit_inference_mode\(.*\)$": "inference mode as before",
}.items())
_NEXT = re.compile(r"(?P<name>\w+) = next\(args_iter\)$")
_PRIMAL = re.compile(r"(?:primals_(?P<from_one>\d+)|arg(?P<from_zero>\d+)_1)$")
_AOT_VALUE = re.compile(r"(?P<kind>[A-Z]\w*)\((?P<key>\w+)=(?P<inner>.*)\)$")
_SIZE, _STRIDE = re.compile(r"\.size\(\)\[(\d+)\]"), re.compile(r"\.stride\(\)\[(\d+)\]")
#: Names of built-in functions that no graph calls, and arguments often have.
_FREE = frozenset({"input", "id", "filter", "format", "hash", "dir", "vars", "open", "help", "compile"})
_RESERVED = frozenset({
    *keyword.kwlist, *(set(dir(builtins)) - _FREE), "torch", "device", "inf", "nan", "self", "operator", "NoneType",
    "fx_pytree", "pytree"})
_LONGEST_NAME = 60
#: Parts of sources that are no part of a name.
_TORCHS = frozenset({*MODULE_DICTIONARIES, "__closure__", "cell_contents"})


#: A tensor that torch made an attribute of the graph.
_HELD = re.compile(r' *(\w+): "[^"]*\[[^"]*" = self\.\w+')


@dataclass(frozen=True)
class GraphView:
    """A view of a graph, as :func:`graph_view` makes it.

    Attributes:
        text: the view.
        files: ``(name in the text, path)`` of the user's files, in the order in which they come.
        names: new names of nodes, by torch's. Nodes of an inner graph are named ``"cond_true_0.sin"``.
        parameters: of the graph, as they are named in the text.
        writes: the arguments that the graph writes to, in the user's words.
        may_write: those that it may write to.
        writes_held: tensors that the graph holds itself, by torch's names, and writes to: an optimizer's parameters.
        sizes: names of sizes that are computed of open ones: ``("d0", "(s53 - 1) // 2 + 1")``.
        symbols: what the open sizes among the inputs are, in the user's words: ``("s53", "x.shape[2]")``.
    """

    text: str
    files: tuple[tuple[str, str], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    may_write: tuple[str, ...] = ()
    writes_held: tuple[str, ...] = ()
    sizes: tuple[tuple[str, str], ...] = ()
    symbols: tuple[tuple[str, str], ...] = ()
    _lines: Mapping[int, int] = field(default_factory=dict)

    def line(self, line: int) -> int:
        """Return the line of the view that shows what stands on a line of torch's text; 0 where none does."""
        return self._lines.get(line, 0)


@functools.lru_cache(8)
def graph_view(
    text: str, inputs: tuple[GraphInput, ...] = (), captured: bool = True, callers: tuple[Caller, ...] = ()
) -> GraphView:
    """Return the view of a graph.

    Args:
        text: torch's print of it, ``GraphStage.text``.
        inputs: those of the captured graph.
        captured: this is that graph; a later stage keeps torch's names, and has the user's beside its parameters.
        callers: the lines of the user's behind places in torch's own code.

    Returns:
        The view; torch's text as it is where it is no graph.
    """
    try:
        if text.startswith(NOT_PYTHON):
            return _commented(text, inputs, captured, callers)
        return _View(text, inputs, captured, callers).view()
    except (ValueError, IndexError, KeyError, AttributeError, RecursionError, StopIteration):
        return plain_view(text)


def plain_view(text: str) -> GraphView:
    """Return the view of a text that is shown as it is."""
    return GraphView(text, _lines={number: number for number in range(1, text.count("\n") + 2)})


def _commented(
    text: str, inputs: tuple[GraphInput, ...], captured: bool, callers: tuple[Caller, ...]
) -> GraphView:
    """Return the view of a graph that stands in a comment, as it is not Python."""
    head, *commented = text.split("\n")
    view = _View("\n".join(line.removeprefix("# ").rstrip() for line in commented), inputs, captured, callers).view()
    lines, places = [head], {}
    for number, line in enumerate(view.text.split("\n"), 1):
        places[number] = len(lines) + 1
        lines += wrapping.comment(line, 0) if line.strip() else ["#"]
    lines[-1:] = [""] if text.endswith("\n") else lines[-1:]
    shown = {number + 2: places[view.line(number + 1)] for number in range(len(commented)) if view.line(number + 1)}
    return GraphView("\n".join(lines), view.files, view.names, view.parameters, view.writes, view.may_write,
                     view.writes_held, view.sizes, view.symbols, shown)


def parameter_words(name: str, inputs: Sequence[GraphInput]) -> str:
    """Return what the user calls a parameter of a graph, as its view names it; ``""`` where that is not known."""
    view = _View("", inputs, False)
    return view.primal(name) or next((words for words in view.words if words and _identifier(words) == name), "")


class _View:
    """The view while it is written: line by line, function by function."""

    def __init__(
        self, text: str, inputs: Sequence[GraphInput], captured: bool, callers: Sequence[Caller] = ()
    ) -> None:
        lines = text.split("\n")
        sizes = size_names(lines)
        self.source = [with_size_names(line, sizes) for line in lines] if sizes else lines
        self.sizes = tuple((name, in_words(size)) for size, name in sizes.items())
        self.callers = {node: caller.location for caller in callers for node in caller.nodes}
        self.called_from: SourceLocation | None = None  # of the place that was written last
        self.inputs = inputs
        self.captured = captured
        self.out: list[str] = []
        self.lines: dict[int, int] = {}
        self.names: dict[str, str] = {}
        self.places = {line: match for line in dict.fromkeys(line.strip() for line in self.source if "File: " in line)
                       if (match := _FILE.match(line))}
        self.comments: dict[tuple[str, int], list[str]] = {}  # what these and their indentation become
        self.files = _short_names(dict.fromkeys([
            *(match["file"] for match in self.places.values()), *(caller.location.filename for caller in callers)]))
        self.words = [_words(given.source) if given.source else "" for given in inputs]
        self.words_by_name = {given.name: words for given, words in zip(inputs, self.words)}
        self.scopes: list[tuple[int, str]] = []  # indentations and names of classes that are open
        self.renamed: dict[str, str] = {}
        self.parameters: tuple[str, ...] = ()
        self.symbols = {given.name: words for given, words in zip(inputs, self.words)  # what open sizes are
                        if words and SYMBOL.fullmatch(given.name)}
        self.writes: tuple[str, ...] = ()
        self.may_write: tuple[str, ...] = ()
        self.writes_held: tuple[str, ...] = ()
        self.roles: dict[str, tuple[str, int]] | None = None  # of graphs within the graph, and where they are called
        self.outer: dict[str, str] = {}  # what is renamed in the graph itself; inner graphs have the same names

    def view(self) -> GraphView:
        number = 1
        while number <= len(self.source):
            line = self.source[number - 1]
            code = line.strip()
            if code.startswith("def forward("):
                number = self.signature(number)
            elif not code:
                self.write(number, "")
                number += 1
            else:
                number = self.body_line(number, code, len(line) - len(line.lstrip()))
        if not self.scopes:
            raise ValueError("no graph")
        return GraphView(
            "\n".join(self.out), tuple((short, path) for path, short in self.files.items()), self.names,
            self.parameters, self.writes, self.may_write, self.writes_held, self.sizes,
            tuple(self.symbols.items()), self.lines)

    def write(self, number: int, *lines: str) -> None:
        """Write what a line of the text has become."""
        self.lines[number] = len(self.out) + 1
        self.out += lines

    @property
    def prefix(self) -> str:
        """The text that names of nodes begin with in records here."""
        return "".join(f"{name}." for _, name in self.scopes[1:])

    # --- signatures -------------------------------------------------------------------------------
    def signature(self, first: int) -> int:
        """Write the signature that begins on a line; the other names of parameters are left out.

        Returns:
            The line that comes next.
        """
        indent = len(self.source[first - 1]) - len(self.source[first - 1].lstrip())
        last = first
        while not self.source[last - 1].endswith(":"):
            last += 1
        code, comments = _joined_signature(self.source[first - 1 : last])
        marks = list(wrapping.top_level(code))
        opened, closed = marks[0][1], next(place for letter, place in marks if letter == ")")
        parameters = wrapping.items(code[opened + 1 : closed])
        names = [_name_of(parameter) for parameter in parameters]
        aliases = self.aliases(last + 1, names)
        other = dict(aliases)
        after = last + 1 + len(aliases)
        shown = self.shown_names(names, other, after, indent)
        self.renamed = {other.get(name, name): new for name, new in shown.items() if other.get(name, name) != new}
        self.outer = self.outer or dict(self.renamed)
        self.names |= {self.prefix + old: new for old, new in self.renamed.items()}
        if parameters == ["self"] or parameters == ["self", "args_list"]:
            self.write(first, f"{' ' * indent}{code}")
        else:
            self.write(first, f"{' ' * indent}def forward(")
            places = self.write_parameters(dict(zip(names, parameters)), shown, comments, self.body(last), indent)
            self.out.append(f"{' ' * indent}{code[closed:]}")
            self.lines.update((number, places[parameter]) for number, (parameter, _) in enumerate(aliases, last + 1))
        while after <= len(self.source) and not self.source[after - 1].strip():
            after += 1
        return after

    def aliases(self, line: int, names: Sequence[str]) -> list[tuple[str, str]]:
        """Return the other names of parameters, which lines from this one on give them: ``x = l_x_``."""
        result: list[tuple[str, str]] = []
        while line <= len(self.source) and (alias := _ALIAS.match(self.source[line - 1])) \
                and alias["parameter"] in names and alias["name"] not in names:
            result.append((alias["parameter"], alias["name"]))
            line += 1
        return result

    def write_parameters(
        self, parameters: Mapping[str, str], shown: Mapping[str, str], comments: Mapping[str, str], body: Sequence[str],
        indent: int,
    ) -> dict[str, int]:
        """Write a line for each parameter: its type, what it is, and whether the graph writes to it.

        Args:
            parameters: their texts by name.
            shown: the names that they get.
            comments: what torch's comments say of them.
            body: of the graph, whose outermost function says what is written to.
            indent: of the signature.

        Returns:
            The line of each.
        """
        types = {name: match[1] for name, text in parameters.items() if (match := _TYPE.search(text, len(name)))}
        outermost = len(self.scopes) < 2
        held = [match[1] for line in body if outermost and "= self." in line and (match := _HELD.fullmatch(line))]
        written = written_arguments([*parameters, *held], body, types) if outermost else {}
        places, words = {}, {}
        for name, parameter in parameters.items():
            places[name] = len(self.out) + 1
            label = self.label(name, shown[name], comments.get(name, ""))
            words[name] = label or shown[name]
            notes = [label, ("written to" if written[name] else "may be written to") if name in written else ""]
            if size := _NUMBER.fullmatch(types.get(name, "")):
                if words[name] != size[1]:
                    self.symbols.setdefault(size[1], words[name])
                if SYMBOL.fullmatch(name) and size[1] != name:
                    notes.append(f"equal to {in_words(size[1])}")
            text = shown[name] + parameter[len(name) :] + ","
            self.out += _with_comment(text, ", ".join(filter(None, notes)), indent + 4)
        if outermost:
            self.parameters = tuple(shown[name] for name in parameters if name != "self")
            self.writes_held = tuple(name for name in held if written.pop(name, False))
            self.writes = tuple(words[name] for name, certain in written.items() if certain)
            self.may_write = tuple(words[name] for name, certain in written.items() if not certain)
        return places

    def body(self, signature: int) -> list[str]:
        """Return the lines of a function behind the last line of its signature."""
        lines = self.source[signature:]
        end = next((at for at, line in enumerate(lines) if "class " in line and line.lstrip().startswith("class ")),
                   len(lines))
        return lines[:end]

    def shown_names(self, names: Sequence[str], other: Mapping[str, str], first: int, indent: int) -> dict[str, str]:
        """Return the name of each parameter in the view."""
        shown = {name: name for name in names}
        wanted = {}
        if self.captured:
            wanted = self.outer if len(self.scopes) > 1 else {
                name: _identifier(words) for name, words in self.words_by_name.items() if words}
        changed = [name for name in names if name in other or name in wanted and len(self.scopes) > 1]
        if not changed:
            return shown
        body = []
        for line in self.source[first - 1 :]:
            if line.startswith("class ", indent) or line.startswith("def ", indent):
                break
            body.append(line)
        # (What names the parameters now is free.)
        text = "\n".join(body)
        taken = {name for pair in _NAMES.findall(text) for name in pair} | set(_SECOND_NAMES.findall(text))
        taken = taken - set(other.values()) | {name for name in names if name not in changed} | _RESERVED
        for name in changed:
            # torch counts its own names from 1, so a parameter is 0
            shown[name] = free_name(wanted.get(name, "") or _guessed(name), taken, first=0)
            taken.add(shown[name])
        return shown

    def label(self, name: str, shown: str, comment: str) -> str:
        """Return the meaning of a parameter, in the user's words; ``""`` where its name says it.

        Args:
            comment: what torch says of it.
        """
        if self.captured:
            words = self.words_by_name.get(name, "") if len(self.scopes) < 2 else ""
        else:
            words = self.words_of(comment) if comment else self.primal(name)
        return "" if words == shown else words

    def primal(self, name: str) -> str:
        """Return the user's words for ``primals_3`` or ``arg2_1``; ``""`` for anything else."""
        match = _PRIMAL.match(name) if len(self.scopes) < 2 else None
        if match is None:
            return ""
        return self.input(int(match["from_one"]) - 1 if match["from_one"] else int(match["from_zero"]))

    def input(self, index: int) -> str:
        if not 0 <= index < len(self.words):
            return ""
        return self.words[index] or self.inputs[index].name

    def words_of(self, comment: str) -> str:
        """Return in words what AOTAutograd says of a value.

        ``GradAOTOutput(grad_of=PlainAOTInput(idx=2))`` (torch/_functorch/_aot_autograd/descriptors.py).
        """
        match = _AOT_VALUE.match(comment)
        if match is None:
            return "" if comment == "None" else comment
        kind, inner = match["kind"], match["inner"]
        if kind == "PlainAOTInput" and inner.isdigit():
            return self.input(int(inner)) or comment
        if kind == "PlainAOTOutput" and inner.isdigit():
            return f"result {inner}"
        if kind in ("ParamAOTInput", "BufferAOTInput") and inner[:1] in "'\"":
            return inner[1:-1]
        if kind in ("TangentAOTInput", "GradAOTOutput"):
            return f"gradient of {self.words_of(inner)}"
        return comment

    # --- bodies -----------------------------------------------------------------------------------
    def body_line(self, number: int, code: str, indent: int) -> int:
        """Write what a line becomes; return the line that comes next."""
        if code.startswith("#"):
            if self.out[-1].strip() and not self.out[-1].endswith("):") and not self.out[-1].lstrip().startswith("#"):
                self.out.append("")
            if code == _NO_PLACE:
                self.called_from = None
                return number + 1
            # (Up to torch 2.6 comments stand one column further in.)
            self.write(number, *self.comment(code, indent - indent % 4, self.caller(number)))
        elif code.endswith(("(", "[", "{")):
            return self.broken_already(number, indent)
        elif code.startswith("class ") and (match := _CLASS.match(code)):
            self.scopes = [scope for scope in self.scopes if scope[0] < indent] + [(indent, match["name"])]
            if len(self.scopes) > 1:
                self.out += self.role(match["name"], indent)
            self.write(number, " " * indent + code)
        else:
            self.statement(number, code, indent)
        return number + 1

    def role(self, name: str, indent: int) -> list[str]:
        """Return a comment that says what a graph within the graph is; no lines where that is not known."""
        if self.roles is None:
            self.roles = {}
            for inner, role, number in roles(self.source):
                self.roles.setdefault(inner, (role, number))
        role, number = self.roles.get(name, ("", 0))
        if not role:
            return []
        callers = self.callers_of(number)
        if len(callers) == 1:  # (The graph that holds the call may be any.)
            (caller,) = callers
            return wrapping.comment(f"{role} ({self.files[caller.filename]}:{caller.line})", indent)
        above = (self.places.get(line.strip()) for line in reversed(self.source[:number]))
        place = next(filter(None, above), None)
        return wrapping.comment(role + (f" ({self.files[place['file']]}:{place['line']})" if place else ""), indent)

    def callers_of(self, number: int) -> set[SourceLocation]:
        """Return the user's lines behind the nodes of the name that a line binds, in whatever graph."""
        bound = _BOUND.match(self.source[number - 1])
        return set() if bound is None else {place for node, place in self.callers.items()
                                            if node.rpartition(".")[2] == bound["name"]}

    def caller(self, number: int) -> SourceLocation | None:
        """Return the user's line behind the node that follows on a comment."""
        if not self.callers:
            return None
        lines = map(self.source.__getitem__, range(number, len(self.source)))
        following = next((line for line in lines if line.strip()[:1] not in ("", "#")), "")
        name = _BOUND.match(following)
        return self.callers.get(self.prefix + name["name"]) if name is not None else None

    def comment(self, code: str, indent: int, caller: SourceLocation | None = None) -> list[str]:
        match = self.places.get(code)
        before, self.called_from = self.called_from, caller if match is not None else None
        if match is None:
            return wrapping.comment(code.lstrip("# "), indent)
        if caller is None:  # (layers share their lines)
            known = self.comments.get((code, indent))
            if known is None:
                known = self.comments[code, indent] = self.place(
                    match["file"], match["line"], match["function"], match["code"], match["before"], indent)
            return known
        inner = self.place(
            match["file"], match["line"], match["function"], match["code"], match["before"], indent, "  by ")
        if caller == before:
            return inner
        return [*self.place(caller.filename, str(caller.line), caller.function, caller.text, "", indent), *inner]

    def place(
        self, file: str, line: str, function: str, text: str, before: str, indent: int, lead: str = ""
    ) -> list[str]:
        place = f"{lead}{self.files[file]}:{line} in {plain_name(function)}"
        before = before.strip()
        more = f"  [{before}]" if before else ""
        text = text.strip()
        if not text:
            return wrapping.comment(place + more, indent)
        whole = f"{place}: {text}{more}"
        if indent + 2 + len(whole) <= wrapping.WIDTH:
            return wrapping.comment(whole, indent)
        return [*wrapping.comment(f"{place}:{more}", indent), *wrapping.comment(
            " " * (4 if lead else 2) + text, indent)]

    def broken_already(self, number: int, indent: int) -> int:
        """Return a statement that torch breaks itself, with what it says of each value behind it."""
        while True:
            line = self.source[number - 1]
            match = _DESCRIBED.match(line)
            inner = len(line) - len(line.lstrip())
            if match:
                self.write(number, *_with_comment(match["code"].strip(), self.words_of(match["comment"]), inner))
            else:
                self.write(number, *wrapping.wrapped(line.strip(), inner))
            number += 1
            if number > len(self.source) or inner == indent and line.strip()[:1] in ")]}":
                return number

    def statement(self, number: int, code: str, indent: int) -> None:
        released, second = "", None
        if ";  " in code:
            match = _RELEASE.match(code, code.rfind(";  ")) if code.endswith(" = None") else None
            if match:
                released = match["names"]
                code = code[: match.start()]
            second = _SECOND_NAME.match(code) if ";  " in code else None
            if second:
                code = second["first"]
            elif match and (unused := _UNUSED_CALL.match(code)) and _is_among(unused["name"], released):
                code = unused["call"]
        code = with_slices(code)
        if "  # " in code and (described := _DESCRIBED.match(code)):
            self.write(number, *_with_comment(described["code"], self.words_of(described["comment"]), indent))
        elif code.endswith("next(args_iter)") and (given := _NEXT.match(code)):
            self.write(number, *_with_comment(code, self.primal(given["name"]), indent))
        else:
            words = _mode(code)
            if self.renamed:
                code = self.with_new_names(code)
            if words or indent + len(code) > wrapping.WIDTH:
                self.write(number, *_with_comment(code, words, indent))
            else:  # (most statements)
                self.lines[number] = len(self.out) + 1
                self.out.append(" " * indent + code)
        if second and not _is_among(second["name"], released):
            code = f"{second['name']}{second['type'] or ''} = {second['base']}"
            self.out += wrapping.wrapped(self.with_new_names(code), indent)

    def with_new_names(self, code: str) -> str:
        if not self.renamed:
            return code
        return _NAME_OR_STRING.sub(lambda match: self.renamed.get(match[0], match[0]), code)


def _is_among(name: str, released: str) -> bool:
    """Return whether a name is one of those that ``x = y = `` lets go of."""
    return name in released.replace("=", " ").split()


def _words(source: str) -> str:
    """Return ``input_ids.shape[1]`` for ``L['input_ids'].size()[1]``."""
    return _STRIDE.sub(r".stride(\1)", _SIZE.sub(r".shape[\1]", user_expression(source)))


def _joined_signature(lines: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return a signature on one line, and what torch's comments say of its parameters."""
    comments: dict[str, str] = {}
    code = ""
    for line in lines:
        match = _DESCRIBED.match(line)
        line = (match["code"] if match else line).strip()
        name = _PARAMETER.match(line)
        if match and name is not None:
            comments[name[0]] = match["comment"]
        code += (" " if code and not code.endswith("(") else "") + line
    return code, comments


def _name_of(parameter: str) -> str:
    match = _PARAMETER.match(parameter)
    if match is None:
        raise ValueError(parameter)
    return match[0]


def _with_comment(code: str, words: str, indent: int) -> list[str]:
    """Return a line of code and a comment, behind it or above it."""
    if not words:
        return wrapping.wrapped(code, indent)
    if indent + len(code) + len(words) + 4 <= wrapping.WIDTH:
        return [f"{' ' * indent}{code}  # {words}"]
    return [*wrapping.comment(words, indent), *wrapping.wrapped(code, indent)]


def _mode(code: str) -> str:
    """Return the change that a statement makes to the modes of torch; ``""`` where it sets none."""
    if "grad" not in code and "autocast" not in code and "inference_mode" not in code:
        return ""
    matches = ((pattern.match(code), words) for pattern, words in _MODES)
    return next((match.expand(words).removesuffix(": ") for match, words in matches if match), "")


def _short_names(paths: Iterable[str]) -> dict[str, str]:
    """Return each path by as much of its end as tells it from the others."""
    result: dict[str, str] = {path: os.path.basename(path) for path in paths}
    for path, name in list(result.items()):
        same = [other for other in result if os.path.basename(other) == name]
        if len(same) > 1:
            parts = path.replace("\\", "/").split("/")
            for length in range(2, len(parts) + 1):
                name = "/".join(parts[-length:])
                if not any(other != path and other.replace("\\", "/").endswith("/" + name) for other in same):
                    break
            result[path] = name
    return result


def _identifier(words: str) -> str:
    """Return a name made of an expression of the user's: ``layers_0_norm_weight`` of ``self.layers[0].norm.weight``."""
    parts = [part.strip("_") for part in re.split(r"[^A-Za-z0-9_]+", words) if part not in _TORCHS]
    parts = [part for part in parts if part]
    if len(parts) > 1 and (parts[0] == "self" or parts[0] == "kwargs" and not parts[1][0].isdigit()):
        del parts[0]
    while len(parts) > 1 and len("_".join(parts)) > _LONGEST_NAME:
        del parts[0]
    return _plain("_".join(parts))


def _guessed(name: str) -> str:
    """Return a name for a parameter of which only torch's name is known."""
    parts = re.split(r"_(?:modules|parameters|buffers)_", re.sub(r"^[LG]_", "", name))
    return _plain("_".join(parts[1:] if parts[0] == "self" and len(parts) > 1 else parts))


def _plain(name: str) -> str:
    """Return a name that can stand in source, without the underscores that torch puts around it."""
    name = name.strip("_") or "value"
    name = f"value_{name}" if name[0].isdigit() else name
    return f"{name}_" if name in _RESERVED else name
