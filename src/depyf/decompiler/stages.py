"""One code object through every stage, for people who work on the decompiler."""

from __future__ import annotations

from types import CodeType
from typing import Any

from ..bytecode.canonical import canonicalise
from ..bytecode.code import Code
from ..cfg.graph import build
from .faults import why
from .forms import Forms
from .lift import Machine
from .options import Options
from .pipeline import decompile_code
from .scopes import CodeScope
from .structure.loops import mark_breaks, rotate, split_breaks
from .structure.reduce import Reducer
from .structure.regions import prepare


def stages(code: CodeType | Code) -> str:
    """One code object through every stage, as text."""
    source = code if isinstance(code, Code) else Code.of(code)
    out: list[str] = []
    graph = build(canonicalise(source))
    out.append("== graph ==")
    for block in graph.blocks.values():
        out.append(f"{block!r} {block.region or ''}")
        out.extend(f"    {op!r}" for op in block.ops)

    def show(title: str, flow: Any) -> None:
        out.append(f"== {title} ==")
        out.extend(repr(flow.nodes[id]) for id in sorted(flow.nodes, key=flow.order.__getitem__))

    try:
        flow = prepare(graph, mark_breaks(graph))
        show(f"regions {flow.kinds}", flow)
        split_breaks(flow)
        rotate(flow)
        show("loops", flow)
        scope = CodeScope(source, Options(Forms(source)))
        Reducer(flow, Machine(scope), False).run()
        show("expressions", flow)
    except Exception as error:
        out.append(why(error))
    found = decompile_code(source)
    out.append(f"== text: {found.fidelity.value} {found.note} ==")
    out.append(found.text)
    return "\n".join(out)
