"""One code object through every stage of a decompilation, as text: what ``depyf decompile --stages`` prints."""

from __future__ import annotations

import ast
from types import CodeType

from ..bytecode.canonical import canonicalise
from ..bytecode.code import Code
from ..bytecode.operations import Op
from ..cfg.graph import Cfg, build
from .bodies import Body, Unfinished
from .dynamo.readable import Readable
from .dynamo.simplify import Simplification
from .emit.text import number
from .passes import ALL
from .pipeline import decompile_code
from .structure.analysis import RegionCfg

_DOES = {each.name: each.does for each in ALL}


def stages(code: CodeType | Code) -> str:
    """Return what each stage makes of a code object, and of those nested in it."""
    source = code if isinstance(code, Code) else Code.of(code)
    program = canonicalise(source)
    printer = _Printer()
    printer.show("operations: what all versions of Python share",
                 "\n".join(f"{number:4} {op!r}" for number, op in enumerate(program.ops)))
    printer.show("graph: blocks, how they end, the handlers over them", _graph(build(program)))
    result = decompile_code(source, trace=printer)
    printer.show(f"text: {result.fidelity.value} {result.note}".rstrip(), result.text)
    return "\n".join(printer.out).lstrip("\n")


class _Printer:
    """Prints the subject of each pass that has changed it, and names those that had nothing to do."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self._idle: list[str] = []
        self._last: dict[int, tuple[object, str]] = {}

    def __call__(self, name: str, subject: object) -> None:
        text = _shown(subject)
        key = subject.scope.code if isinstance(subject, (Body, Unfinished)) else subject
        # (The key's object is stored with the text: another object could get its id.)
        before = self._last.get(id(key), (None, ""))[1]
        self._last[id(key)] = key, text
        if text == before:
            self._idle.append(name)
            return
        owner = f" in {subject.scope.code.qualname}" if isinstance(subject, (Body, Unfinished)) else ""
        self.show(f"{name}{owner}: {_DOES[name]}", text)

    def show(self, title: str, text: str) -> None:
        if self._idle:
            self.out.append(f"(nothing to do for {', '.join(self._idle)})")
            self._idle.clear()
        self.out += ["", f"== {title} ==", text]


def _shown(subject: object) -> str:
    if isinstance(subject, Body):
        return _statements(subject.statements) if subject.statements else _cfg(subject.cfg)
    if isinstance(subject, Unfinished):
        return _statements(subject.statements)
    if isinstance(subject, Simplification):
        return _graph(subject.graph)
    if isinstance(subject, Readable):
        return ast.unparse(subject.tree)
    raise TypeError(f"no pass works on {type(subject).__name__}")


def _cfg(cfg: RegionCfg) -> str:
    lines = []
    for id in sorted(cfg.blocks, key=cfg.order.__getitem__):
        node = cfg.blocks[id]
        handled = "" if node.region is None else f", handled by N{node.region}"
        ends = " ".join([node.end, *(f"N{succ}" for succ in node.successors)])
        lines.append(f"N{id} ({ends}{handled}) {cfg.kinds.get(id, '')}".rstrip())
        lines += [f"    {_op(op)}" for op in node.ops]
    return "\n".join(lines)


def _op(op: Op) -> str:
    return f"{op.kind} {ast.unparse(op.arg)}" if isinstance(op.arg, ast.AST) else repr(op)


def _graph(graph: Cfg) -> str:
    lines = []
    for block in graph.blocks.values():
        lines.append(f"{block!r} {block.region or ''}".rstrip())
        lines += [f"    {op!r}" for op in block.ops]
    return "\n".join(lines)


def _statements(statements: list[ast.stmt]) -> str:
    number(statements)
    return ast.unparse(ast.Module(statements, []))
