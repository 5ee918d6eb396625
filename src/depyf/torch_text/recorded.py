"""The records of a run, whether it came to its end or was killed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..decompiler.dynamo.global_names import RESUME_PREFIX
from ..records import store
from ..records.model import CacheEntry, Capture, CodeText, CompiledCode, CompiledFunction, Frame, SourceLocation
from .guards import parse_guards


def read_records(path: str) -> Capture:
    """Read the records of a file, or of the directory of a run; functions of one that was killed are put together.

    Raises:
        RecordsError: as :func:`depyf.records.store.read`.
    """
    capture = store.read(path)
    return replace(capture, functions=capture.functions or _functions(capture.codes), codes=())


def _functions(codes: Iterable[CompiledCode]) -> tuple[CompiledFunction, ...]:
    """Put functions together of what each compilation left, without the originals."""
    frames: dict[tuple[str, SourceLocation | None], list[CompiledCode]] = {}
    for code in codes:
        frames.setdefault((code.frame, code.location), []).append(code)
    built: dict[str, Frame] = {}
    resumed: dict[str, tuple[str, ...]] = {}
    roots = []
    missing = CodeText("# not recorded: the run was killed\n", "unproven")
    for (name, location), group in frames.items():
        entries = tuple(
            CacheEntry(code.transformed.compile_id, parse_guards(code.guards), code.transformed, code.graph_names,
                       code.resume_names) for code in group)
        frame = Frame(name, group[0].code_name, location, missing, False, group[0].transformed.arguments, (), entries,
                      title=group[0].title, wrappers=group[0].wrappers)
        resumed[name] = tuple(dict.fromkeys(r for code in group for r in code.resume_names))
        if name.startswith(RESUME_PREFIX):
            built[name] = frame
        else:
            roots.append(frame)
    functions = []
    for root in roots:
        members, pending = [root], list(resumed[root.name])
        seen: set[str] = set()
        while pending:
            name = pending.pop(0)
            if name in built and name not in seen:
                seen.add(name)
                members.append(built[name])
                pending += resumed[name]
        functions.append(CompiledFunction(root.name, tuple(members)))
    return tuple(functions)
