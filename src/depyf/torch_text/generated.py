"""The text of a module that Inductor generated -> the kernels that it defines and calls.

Which nodes of a graph a call computes is found in :mod:`depyf.provenance.kernel_mapping`. The form of the text is
torch's (torch/_inductor/codegen/wrapper.py, cpp.py, triton.py):

* a kernel is assigned at the top, ``name = async_compile.cpp_pybinding([...], r'''...''')`` or
  ``async_compile.triton('name', '''...''')``, a Triton kernel after comments with its nodes
  (``get_kernel_metadata`` in torch/_inductor/utils.py).
* ``call`` unpacks its arguments, allocates buffers, calls kernels and returns; parts of it may be functions
  ``partition_0``, ``partition_1``, ... A comment before a call of a library or a Triton kernel names its source nodes.

Nothing here raises for any text: unknown forms are left out.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..decompiler.nodes import dotted_name
from ..values import frozen

_SOURCES = re.compile(r"#\s*(?:Topologically Sorted|Unsorted) Source Nodes: \[(?P<nodes>.*?)\], Original ATen: \[")
_FRAGMENT_NODE = re.compile(r"#\s+%(?P<name>\w+) : .*= call_\w+\[target=")
_ORIGIN = re.compile(r"#\s+(?P<source>\S+) => (?P<nodes>.+)")
_CPP_PARAMETERS = re.compile(r'extern "C"[^(]*\((?P<parameters>[^)]*)\)')
_TRITON_PARAMETERS = re.compile(r"^def \w+\((?P<parameters>[^)]*)\)", re.M)
#: Parameters of kernels for buffers (torch/_inductor/codegen/common.py, ``KernelArgs``).
_BUFFER = re.compile(r"\b(?P<name>(?:in_out_ptr|in_ptr|out_ptr|X|W|Y|B|arg_\w*?)\d*)\b")
#: First parts of the dotted names of library kernels.
_LIBRARIES = frozenset({"extern_kernels", "aten", "inductor_ops", "_quantized", "prims"})
#: The begin of the names of kernels that Inductor makes of templates.
_TEMPLATES = ("cpp_packed_", "cpp_grouped_", "cpp_flex_", "cpp_bmm_", "triton_tem_")


@frozen
class Definition:
    """A kernel that the module defines."""

    name: str  # of its variable
    kind: str  # "C++", "Triton" or torch's name of the compiler ("cutlass")
    line: int  # from 1
    parameters: tuple[str, ...] = ()  # the use of each argument for buffers, in order: "in", "out" or "in_out"
    nodes: tuple[str, ...] = ()  # of the post-grad graph, as torch names them above it


@frozen
class Buffer:
    """An allocation: numbers of elements as torch writes them, dtype without ``torch.``."""

    sizes: tuple[str, ...]
    dtype: str


@frozen
class Launch:
    """A call of a kernel."""

    name: str  # `"cpp_fused_add_0"`, `"extern_kernels.mm"`, `"torch.ops.aten.sort.stable"`
    definition: Definition | None  # of a kernel of the module; `None` for one of a library
    line: int  # of the call, from 1
    # reads, writes: values, each a number of its own: what the call takes, in order, and what it makes. Buffers are
    # reused; a value never is.
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    # values that it may read: its memory contained them before, and whether they are needed is unknown
    perhaps: tuple[int, ...] = ()
    changes: tuple[str, ...] = ()  # names of arguments of `call` that it writes to
    sources: tuple[str, ...] = ()  # source nodes, as torch names them above the call

    @property
    def kind(self) -> str:
        """The kind of the kernel: ``"C++"``, ``"Triton template"``; ``"extern"`` for one of a library."""
        if self.definition is None:
            return "extern"
        return self.definition.kind + " template" * self.definition.name.startswith(_TEMPLATES)


@dataclass
class Module:
    """The contents of a generated module."""

    definitions: dict[str, Definition] = field(default_factory=dict)  # its kernels, by name
    launches: list[Launch] = field(default_factory=list)  # calls of kernels, in order
    arguments: dict[str, int] = field(default_factory=dict)  # of ``call``, with their values
    buffers: dict[int, Buffer] = field(default_factory=dict)  # type of a value, where it is known
    results: list[tuple[int, ...]] = field(default_factory=list)  # values of each result; () for a number or ``None``
    parts: dict[int, tuple[int, int]] = field(default_factory=dict)  # one result of several -> (the whole, index)
    #: Value of a buffer -> the one before, where a kernel may have written only a part.
    continues: dict[int, int] = field(default_factory=dict)


def read_module(text: str) -> Module:
    """Return the contents of a module (``Kernel.text``); nothing where it is no Python (``cpp_wrapper`` writes C++)."""
    try:
        return _Reader(text).module
    except (SyntaxError, ValueError, RecursionError, MemoryError, AttributeError, TypeError, IndexError, KeyError):
        return Module()


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.module = Module()
        #: By a name of ``call``, the values in it. A view has those of its buffer.
        self.values: dict[str, tuple[int, ...]] = {}
        self.view_of: dict[str, str] = {}
        self.types: dict[str, Buffer] = {}
        #: By a name that reuses the memory of another, the values that were there; nothing was written to it since.
        self.before: dict[str, tuple[int, ...]] = {}
        self.count = 0
        tree = ast.parse(text)
        for statement in tree.body:
            self._definition(statement)
        self.functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        if "call" in self.functions:
            self._body(self.functions["call"].body, outermost=True)

    # --- kernels ----------------------------------------------------------------------------------
    def _definition(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign([ast.Name(name), *_], ast.Call(maker, arguments)):
                begin, _, compiler = dotted_name(maker).partition(".")
                if begin != "async_compile":
                    return
                source = next((each.value for each in reversed(arguments)
                               if isinstance(each, ast.Constant) and isinstance(each.value, str)), "")
            case ast.FunctionDef(name, decorator_list=decorators) if any(
                    "triton" in dotted_name(each.func if isinstance(each, ast.Call) else each) for each in decorators):
                compiler, source = "triton", ast.unparse(statement)
            case _:
                return
        kind = "C++" if compiler.startswith("cpp") else "Triton" if "triton" in compiler else compiler
        self.module.definitions[name] = Definition(
            name, kind, statement.lineno, _parameters(source, kind), self._nodes_above(statement.lineno))

    def _nodes_above(self, line: int) -> tuple[str, ...]:
        """Return the nodes that torch names in the comments right before a definition."""
        above = itertools.takewhile(lambda text: text.startswith("#"), map(str.strip, reversed(self.lines[: line - 1])))
        nodes: dict[str, None] = {}
        mapped: dict[str, None] = {}
        for comment in reversed(list(above)):
            if node := _FRAGMENT_NODE.match(comment):
                nodes[node["name"]] = None
            elif origin := _ORIGIN.match(comment):
                mapped.update(dict.fromkeys(_items(origin["nodes"])))
        return tuple(nodes or mapped)

    # --- call -------------------------------------------------------------------------------------
    def _body(self, body: Sequence[ast.stmt], outermost: bool) -> None:
        for statement in body:
            if isinstance(statement, (ast.With, ast.If, ast.For, ast.While)):
                self._body(statement.body, outermost)
                self._body(getattr(statement, "orelse", []), outermost)
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._assign(statement.targets[0], statement.value, statement, outermost)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self._call(statement.value, statement, ())
            elif isinstance(statement, ast.Return) and outermost and statement.value is not None:
                items = statement.value.elts if isinstance(statement.value, (ast.Tuple, ast.List)) \
                    else [statement.value]
                self.module.results = [self._values_in(item) for item in items]

    def _assign(self, target: ast.expr, value: ast.expr, statement: ast.stmt, outermost: bool) -> None:
        names = [each.id for each in getattr(target, "elts", ()) if isinstance(each, ast.Name)]
        match target, value:
            case ast.Tuple() | ast.List(), ast.Name("args"):
                if outermost and not self.module.arguments:
                    for name in names:
                        self.module.arguments[name] = self._new_value(name)
            case ast.Tuple() | ast.List(), ast.Call():
                number = re.search(r"partitions?(?:\[|_)(\d+)\]?$", ast.unparse(value.func))
                if number and (part := self.functions.get(f"partition_{number[1]}")):
                    self._body(part.body, outermost=False)  # (a part of `call`, which has the same names)
                else:
                    self._call(value, statement, names)
            case ast.Name(name), ast.Call():
                function = dotted_name(value.func)
                last = function.rpartition(".")[2]
                if last.startswith("empty") and value.args:
                    self._allocate(name, value)
                elif last in ("reinterpret_tensor", "as_strided", "alloc_from_pool") and value.args:
                    self._renamed(name, value.args[0], statement.lineno)
                    if len(value.args) > 1 and isinstance(value.args[1], ast.Tuple):
                        before = self.types.get(self._root(name))
                        self.types[name] = Buffer(tuple(map(ast.unparse, value.args[1].elts)),
                                                  before.dtype if before else "")
                elif not self._call(value, statement, [name]):
                    self.values[name] = self._values_in(value)
            case ast.Name(name), ast.Name():
                self._renamed(name, value, statement.lineno)
            case ast.Name(name), ast.Subscript(ast.Name() as whole, ast.Constant(int(index))):
                values = self._values_in(whole)
                result = self._new_value(name)
                if values:
                    self.module.parts[result] = values[0], index
            case ast.Name(name), _:
                self.values[name] = self._values_in(value)

    def _allocate(self, name: str, call: ast.Call) -> None:
        """Read ``buf0 = empty_strided_cpu((2, 4), (4, 1), torch.float32)``."""
        sizes, dtypes = call.args[0], map(dotted_name, (*call.args[1:], *(item.value for item in call.keywords)))
        self.types[name] = Buffer((), "")
        if isinstance(sizes, (ast.Tuple, ast.List)):
            dtype = next((each for each in dtypes if each.startswith("torch.")), "")
            self.types[name] = Buffer(tuple(map(ast.unparse, sizes.elts)), dtype.rpartition(".")[2])
        self.before.pop(name, None)
        self.values[name] = ()
        self.view_of.pop(name, None)

    def _renamed(self, name: str, source: ast.expr, line: int) -> None:
        """Read ``buf4 = buf3``: with ``# reuse`` it is another buffer in the same memory, otherwise a view."""
        values = self._values_in(source)
        inner = next((item.id for item in ast.walk(source) if isinstance(item, ast.Name) and item.id in self.values),
                     "")
        self.view_of.pop(name, None)
        if inner and inner in self.types:
            self.types[name] = self.types[inner]
        if "# reuse" not in self.lines[line - 1]:
            self.values[name] = values
            if inner and inner != name:
                self.view_of[name] = self._root(inner)
        elif inner in self.before:
            # Memory of a value that may be dead, then a kernel that changes its own result in place.
            self.values[name], self.before[name] = (), self.before[inner]
        else:
            self.values[name] = self.before[name] = values

    def _root(self, name: str) -> str:
        for _ in range(100):
            if name not in self.view_of:
                break
            name = self.view_of[name]
        return name

    def _values_in(self, *expressions: ast.AST) -> tuple[int, ...]:
        """Return the values in expressions, in order, each once."""
        result: dict[int, None] = {}
        for name in itertools.chain.from_iterable(map(_names, expressions)):
            result.update(dict.fromkeys(self.values.get(self._root(name), ())))
        return tuple(result)

    def _new_value(self, name: str) -> int:
        self.count += 1
        self.values[name] = (self.count,)
        return self.count

    def _call(self, call: ast.Call, statement: ast.stmt, targets: Sequence[str]) -> bool:
        """Read a call of a kernel; return whether it is one."""
        function = dotted_name(call.func)
        definition = self.module.definitions.get(function.removesuffix(".run"))
        if definition is None and function.partition(".")[0] not in _LIBRARIES \
                and not function.startswith("torch.ops."):
            return False
        perhaps: dict[int, None] = {}
        if definition is None:
            taken = [item.value if isinstance(item, ast.Starred) else item for item in call.args]
            taken += [keyword.value for keyword in call.keywords if keyword.arg != "out"]
            outputs = [name for keyword in call.keywords if keyword.arg == "out" for name in _names(keyword.value)]
            if not outputs and not targets and call.args:
                outputs = list(_names(call.args[0]))[:1]  # aten.scatter_reduce_.two(buf14, ...)
            reads = self._values_in(*taken)
        else:  # (its parameters show the use of each buffer)
            tensors = [item for item in (*call.args, *(each.value for each in call.keywords
                                                       if each.arg not in ("stream", "grid")))
                       if (name := next(_names(item), "")) and not _SYMBOL.fullmatch(name)
                       and (name in self.values or name in self.types)]
            uses = list(definition.parameters)
            # (Of an argument without a known use: it is read if it was written before.)
            uses += ["in_out"] * (len(tensors) - len(uses))
            reads = self._values_in(*(item for item, use in zip(tensors, uses) if use != "out"))
            outputs = [next(_names(item)) for item, use in zip(tensors, uses) if use != "in"]
            for name in outputs:
                perhaps.update(dict.fromkeys(self.before.get(name, ())))
        writes = self._written([*outputs, *targets], targets)
        self.module.launches.append(Launch(
            function.removesuffix(".run") if definition is not None else function, definition, statement.lineno,
            reads, writes, tuple(value for value in perhaps if value not in set(reads)),
            tuple(name for name in outputs if name in self.module.arguments), self._sources(statement.lineno)))
        return True

    def _written(self, names: Sequence[str], targets: Sequence[str]) -> tuple[int, ...]:
        """Return the values that are written, one for each buffer, whatever views of it are written to."""
        writes = []
        for root in dict.fromkeys(map(self._root, names)):
            before = self.values.get(root, ())
            value = self._new_value(root)
            if before and root not in targets and root not in self.before:
                self.module.continues[value] = before[-1]
            self.before.pop(root, None)
            if root in self.types and root not in targets:
                self.module.buffers[value] = self.types[root]
            writes.append(value)
        return tuple(writes)

    def _sources(self, line: int) -> tuple[str, ...]:
        """Return the source nodes that the comment before a call names."""
        for number in range(line - 2, max(-1, line - 6), -1):
            text = self.lines[number].strip()
            named = _SOURCES.match(text)
            if named is not None:
                return _items(named["nodes"])
            # (Allocations may be between; another call, or the end of a value, does not belong to this one.)
            if not text.startswith("#") and not re.match(r"(?:assert_|stream\d+ = |\w+ = empty_strided)", text):
                break
        return ()


#: A size or number that torch leaves open, which kernels take after their buffers: ``s77``, ``u0``, ``zuf3``.
_SYMBOL = re.compile(r"(?:s|u|zf|zuf)\d+")


def _parameters(source: str, kind: str) -> tuple[str, ...]:
    """Return how a kernel uses each of its buffers, by the names that torch gives its parameters."""
    pattern = _CPP_PARAMETERS if kind == "C++" else _TRITON_PARAMETERS
    matches = list(pattern.finditer(source))
    if not matches:
        return ()
    uses = []
    for parameter in matches[-1]["parameters"].split(","):
        named = _BUFFER.search(parameter)
        if named is None or kind == "C++" and "*" not in parameter:
            continue
        name = named["name"]
        if name.startswith("in_out_ptr"):
            uses.append("in_out")
        elif name.startswith(("out_ptr", "Y")):
            uses.append("out")
        else:
            uses.append("in" if kind != "C++" or "const" in parameter else "in_out")
    return tuple(uses)


def _names(expression: ast.AST) -> Iterator[str]:
    """Yield the names in an expression, in order."""
    pending = [expression]
    while pending:
        item = pending.pop()
        if isinstance(item, ast.Name):
            yield item.id
        elif isinstance(item, ast.Call):
            pending += reversed([*item.args, *(keyword.value for keyword in item.keywords)])
        else:
            pending += reversed(list(ast.iter_child_nodes(item)))


def _items(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
