"""Records of versions, made of guards."""

from dataclasses import replace

from depyf.records.model import (
    CacheEntry,
    Capture,
    CodeText,
    Compilation,
    CompileId,
    Frame,
    SymbolDecision,
    TransformedCode,
)
from depyf.views.dump.guards.versions import versions


def frame(*arguments, guards=(), original="", freevars=(), number=0):
    entries = []
    for at, each in enumerate(guards):
        code = TransformedCode(CompileId(0, at), "f", CodeText(f"def __transformed_code_{at}_for_f(): ...", "exact"), None,
                               tuple(arguments))
        entries.append(CacheEntry(CompileId(0, at), tuple(each), code, ()))
    return Frame("f", "f", None, CodeText(original, "exact"), bool(original), tuple(arguments), tuple(freevars),
                 tuple(entries), ", ".join(arguments))


def symbol(name, source, kind="created", **more):
    return SymbolDecision(kind, name, source, **more)


def all_versions(guards, *arguments, symbols=(), failures=(), **of_frame):
    """A version for each list of guards. ``failures``: why the last of them was compiled."""
    compilations = [Compilation(CompileId(0, at), symbols=tuple(symbols)) for at in range(len(guards))]
    compilations[-1] = replace(compilations[-1], guard_failures=tuple(failures))
    return versions(frame(*arguments, guards=guards, **of_frame), Capture(compilations=tuple(compilations)))


def version(guards, *arguments, **more):
    return all_versions([guards], *arguments, **more)[0]
