"""Texts of graphs, kernels and guards without what differs between two runs of the same program.

That is: numbers that torch counts up, ids of objects, hashes, paths of caches.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ...model.graph import Graph, Node, with_names
from ...model.graph_text import read_graph
from ...records.model import GraphStage, Guard, Kernel
from ...torch_text.global_names import SYMBOL
from ..dump.outline import layer_pattern, layer_ranges
from ..markdown import code

#: Addresses, ids of objects in names (with the id of a compilation), hashes, numbers of graphs and frames.
_IDS = re.compile(
    r"0x[0-9a-f]+|(?<=_)\d{9,}(?:_\d{9,})*(?:_c\w+)?\b|\b[a-z0-9]{40,}\b|(?<=__compiled_fn_)\d+(?:_[0-9a-f_]{36,})?"
    r"|(?<=__builtins_dict__)_\d+|(?<=__resume_at_)\d+_\d+")
#: In a guard a whole number like that is where an object lies. (In a graph it is a number.)
_OBJECT = re.compile(r"(?<![\w.])\d{12,}\b(?!\.)")
#: Python counts up the version of a dictionary with each change of any.
_DICT_VERSION = re.compile(r"(\bdict_version\(.*\) == )\d+")
#: What a set or a dictionary shows of itself.
_SET = re.compile(r"\{([^{}]*)\}")
_COMMUTES = re.compile(r" [+*] |[\w)\]]\*|\bm(?:ax|in)\(")
#: Lines of a generated module that say where torch keeps it, or when it was made.
_OF_THIS_RUN = re.compile(r"^\s*(#|//).*|.*\b(kernel_path|compile_id|AOT ID)\b.*")
_COUNTED = re.compile(r"(?<=[a-z])(_\d+)+$")


def graph_lines(stage: GraphStage) -> tuple[str, ...]:
    """Return the statements of a graph, to be compared.

    Names of nodes and symbols are numbered by their first use, so two graphs are the same if their lines are.
    """
    return _compared(stage.text)


@functools.lru_cache(maxsize=1000)
def _compared(text: str) -> tuple[str, ...]:
    names: dict[str, str] = {}
    for _, graph in read_graph(text).walk():
        for name in (*(given.name for given in graph.inputs), *(node.name for node in graph.nodes)):
            if not SYMBOL.fullmatch(name):
                names.setdefault(name, f"%{len(names)}")
    return tuple(with_names(line, names) for line in _statements(text))


def shown_lines(stage: GraphStage) -> list[str]:
    """Return the same for people: names without the numbers that torch counts up."""
    names = {node.name: _COUNTED.sub("", node.name) for _, node in read_graph(stage.text).named_nodes()}
    return [with_names(line, names) for line in _statements(stage.text)]


def _statements(text: str) -> list[str]:
    """Return the parameters and statements of a graph, a line each; of another text its lines."""
    graph = read_graph(text)
    lines = list(_lines(graph, "")) if graph.nodes else [line.rstrip() for line in text.splitlines() if line.strip()]
    symbols: dict[str, str] = {}
    return [_IDS.sub("_", SYMBOL.sub(lambda match: symbols.setdefault(match[0], f"{match[0][0]}{len(symbols)}"), line))
            for line in lines]


def _lines(graph: Graph, indent: str) -> Iterator[str]:
    yield f"{indent}class {graph.name}(torch.nn.Module):"
    yield from (f"{part}," for part in (f"{indent}    def forward(self", *(
        f"{indent}            {given.text}" for given in graph.inputs)))
    for node in graph.nodes:
        if node.statement:
            yield f"{indent}        {node.statement}"
        if node.op == "output":
            yield f"{indent}        return {' '.join(line.strip() for line in node.value.splitlines())}"
        elif node.value:
            yield f"{indent}        {node.name}" + (f': "{node.type.text}"' if node.type else "") + f" = {node.value}"
    for inner in graph.subgraphs:
        yield from _lines(inner, f"{indent}    ")


def excerpts(first: str, second: str, longest: int = 100) -> tuple[str, str]:
    """Cut two different lines so that it can be seen where they differ."""
    common = next((at for at, pair in enumerate(zip(first, second)) if pair[0] != pair[1]),
                  min(len(first), len(second)))
    begin = max(0, common - longest // 3) if max(len(first), len(second)) > longest else 0

    def cut(line: str) -> str:
        return ("... " if begin else "") + line[begin : begin + longest] + (
            " ..." if len(line) > begin + longest else "")

    return cut(first), cut(second)


def calls(graph: Graph) -> Iterable[tuple[str, Node]]:
    """Return the operations of a graph and of those within it, with their names in the records of modules."""
    return ((name, node) for name, node in graph.named_nodes() if node.is_call)


def kernel_lines(kernel: Kernel) -> list[str]:
    """Return a generated module, without comments, paths and hashes."""
    return [_IDS.sub("_", line.rstrip()) for line in kernel.text.splitlines()
            if line.strip() and not _OF_THIS_RUN.fullmatch(line)]


def kernel_name(name: str) -> str:
    """Return ``cpp_fused_add_relu`` for ``cpp_fused_add_relu_0``."""
    return _COUNTED.sub("", name)


def guard_text(guard: Guard) -> str:
    """Return a condition, without ids of objects, versions of dictionaries, and the order of what has none."""
    text = _IDS.sub("_", _OBJECT.sub("_", _DICT_VERSION.sub(r"\1_", guard.expression)))
    if _COMMUTES.search(text):
        text = _in_order(text)
    return _SET.sub(lambda match: "{" + ", ".join(sorted(match[1].split(", "))) + "}", text)


@functools.lru_cache(maxsize=10_000)
def _in_order(expression: str) -> str:
    """Return an expression with the operands sorted that sympy has in sets, in another order in each process."""
    try:
        return ast.unparse(_Sorted().visit(ast.parse(expression, mode="eval")))
    except (SyntaxError, ValueError, RecursionError):
        return expression


class _Sorted(ast.NodeTransformer):

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        kind = type(node.op)
        if kind not in (ast.Add, ast.Mult):
            self.generic_visit(node)
            return node
        operands, pending = [], [node.right, node.left]
        while pending:
            operand = pending.pop()
            if isinstance(operand, ast.BinOp) and type(operand.op) is kind:
                pending += [operand.right, operand.left]
            else:
                operands.append(self.visit(operand))
        operands.sort(key=ast.unparse)
        return functools.reduce(lambda left, right: ast.BinOp(left, kind(), right), operands)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
            node.args.sort(key=ast.unparse)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            node.left, node.comparators[0] = sorted((node.left, node.comparators[0]), key=ast.unparse)
        return node


# --- What differs in two graphs: operations by module; where these are the same, the first line ------
def changed_operations(old: GraphStage, new: GraphStage) -> list[str]:
    """Return the operations that only one of two graphs has, by module, those of layers folded, as Markdown."""
    before, after = _counts(old), _counts(new)
    by_change: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for path in dict.fromkeys([*after, *before]):
        first, second = before.get(path, Counter()), after.get(path, Counter())
        words = [f"+ {times_of(name, number)}" for name, number in (second - first).items()]
        words += [f"- {times_of(name, number)}" for name, number in (first - second).items()]
        if words:
            by_change.setdefault((layer_pattern(path), tuple(words)), []).append(path)
    lines = []
    for (_, changes), paths in by_change.items():
        where = code(layer_ranges(paths) if len(paths) > 1 else paths[0]) if paths[0] else "in no module"
        lines.append(f"{where}: " + ", ".join(code(word) for word in changes))
    return lines


def first_difference(old: GraphStage, new: GraphStage) -> list[str]:
    """Return the first line that differs, as two lines of a diff, cut where they do; none where no line does."""
    for line, other in zip(shown_lines(old), shown_lines(new)):
        if line != other:
            cut = excerpts(line.strip(), other.strip())
            return [f"- {cut[0]}", f"+ {cut[1]}"]
    return []


def times_of(name: str, number: int) -> str:
    """Return ``relu``, ``relu (3 times)``."""
    return f"{name} ({number} times)" if number > 1 else name


def _counts(stage: GraphStage) -> dict[str, Counter[str]]:
    paths = {node: call.path for call in stage.modules for node in call.nodes}
    result: dict[str, Counter[str]] = {}
    for name, node in calls(read_graph(stage.text)):
        result.setdefault(paths.get(name, ""), Counter())[node.operation] += 1
    return result
