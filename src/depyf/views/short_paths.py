"""Short names of files: as much of each path as tells the files of a run from each other."""

from __future__ import annotations

from collections.abc import Iterable

from ..records.model import Capture


def short_names(files: Iterable[str]) -> dict[str, str]:
    """Return the shortest ends of paths that tell the files from each other.

    A path that torch cut has the name of the file that it is the end of.
    """
    paths = dict.fromkeys(files)
    whole = {path: [other for other in paths if other.endswith(("/" + path, "\\" + path))] for path in paths}
    parts = {path: path.replace("\\", "/").split("/") for path in paths if len(whole[path]) != 1}
    named = {}
    for path in parts:
        depth = 1
        while depth < len(parts[path]) and any(
                other != path and parts[other][-depth:] == parts[path][-depth:] for other in parts):
            depth += 1
        named[path] = "/".join(parts[path][-depth:])
    return {path: named[path] if path in named else named.get(whole[path][0], path) for path in paths}


def files_of(capture: Capture) -> Iterable[str]:
    """Yield the paths that the records of a run name, as often as they do."""
    for compilation in capture.compilations:
        places = [compilation.location, compilation.failure and compilation.failure.location]
        if compilation.user_function is not None:
            places += [compilation.user_function.location, *compilation.user_function.wrappers]
        places += [place for broken in compilation.breaks for place in broken.stack]
        places += [failure.cause for failure in compilation.guard_failures]
        places += [decision.location for decision in compilation.symbols]
        yield from (place.filename for place in places if place)
    yield from (graph.call.filename for graph in capture.graphs if graph.call is not None)
    for function in capture.functions:
        for frame in function.frames:
            yield from (place.filename for place in (frame.location, *frame.wrappers) if place)
