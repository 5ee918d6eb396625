"""Why graphs were not in Inductor's cache: the parts of the key that differ between two runs; advice."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ..records.model import CacheLookup, Capture, CompileId
from .diff.pairing import aligned
from .markdown import code, listed, prose, some

#: Part of the key that is the graph.
_GRAPH = "gm"
_INPUTS = "example_inputs"
#: Part of the key that separates compilations under depyf.
_OURS = "cache_key_tag"
#: Parts that differ from graph to graph, or (the number of the device) from rank to rank.
OF_ONE_GRAPH = frozenset({_GRAPH, _INPUTS, _OURS})
_WORDS = {
    "gm": "the graph", "example_inputs": "the inputs", "fx_kwargs": "how the graph is compiled",
    "inductor_config": "options of `torch._inductor.config`", "torch_version": "the version of torch",
    "system_info": "the device",
}
_Lookup = tuple[CompileId, CacheLookup]


def differing(one: CacheLookup, other: CacheLookup) -> tuple[str, ...]:
    """Return the names of the parts in which two keys differ."""
    before, after = ({part.name: part.digest for part in each.key} for each in (one, other))
    return tuple(name for name in dict.fromkeys([*before, *after])
                 if name != _OURS and before.get(name) != after.get(name))


def between(before: Capture, after: Capture, of_ranks: bool = False) -> list[str]:
    """Return lines of Markdown on graphs that a second run did not find: what of the key was another.

    Args:
        of_ranks: they are ranks of one run, whose inputs are on devices of their own: these are no reason.
    """
    pairs = aligned(list(_lookups(before)), list(_lookups(after)), lambda each: _digest(each[1]))
    # (Each graph has its own options: graphs whose keys differ in the same are grouped.)
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[_Lookup, _Lookup]]] = {}
    for old, new in pairs:
        if old is not None and new is not None and new[1].outcome == "miss":
            names = differing(old[1], new[1])
            if of_ranks and names:
                names = tuple(name for name in names if name != _INPUTS)
                if not names:
                    continue
            advice = tuple(_advice(names, old[1], new[1])) if names else ()
            groups.setdefault((names, advice), []).append((old, new))
    lines = []
    for (names, advice), found in groups.items():
        which = some(list(dict.fromkeys(code(str(new[0])) for _, new in found)), 3)
        if names:
            lines += ["", f"Not in Inductor's cache, as the key is another ({_in_words(names)}): {which}.", *advice]
        elif any(old[1].outcome != "miss" for old, _ in found):
            lines += ["", f"Not in Inductor's cache, though the key is that of the first run: {which}. It was emptied, "
                          "or is elsewhere (`TORCHINDUCTOR_CACHE_DIR`; depyf uses a separate one unless "
                          "`caches=\"use\"`)."]
    return lines


def _lookups(capture: Capture) -> Iterator[_Lookup]:
    return ((compilation.compile_id, lookup) for compilation in capture.compilations for lookup in compilation.caches
            if lookup.key)


def _digest(lookup: CacheLookup) -> str:
    return next((part.digest for part in lookup.key if part.name == _GRAPH), "")


def _in_words(names: Sequence[str]) -> str:
    return listed([_WORDS.get(name) or code(name) for name in names])


# --- Advice on a part of a key -----------------------------------------------------------------------
_LOST = "nothing; a cache that is shared has to be filled once more"
_CHANGES = {
    "gm": ("compare the graphs with `depyf diff BEFORE AFTER --full`: an operation, a constant or a size changed",
           "the graph is part of the key", _LOST),
    "example_inputs": (
        "mark the sizes that change with `torch._dynamo.maybe_mark_dynamic(x, 0)`, or pad the inputs to a few sizes",
        "sizes, strides, dtypes and devices of the inputs are part of the key",
        "code for open sizes can be slower than for one size; padding computes more"),
    "fx_kwargs": ("compile with the same `mode` and `options`, and with gradients as before",
                  "how a graph is compiled (CUDA graphs, inference or training, which inputs stay in place) is part of "
                  "the key", _LOST),
    "torch_version": ("fill the cache with the torch that reads it", "the sources of torch are part of the key", _LOST),
    "system_info": ("fill the cache on the kind of device that reads it",
                    "the device, its driver and Triton are part of the key", _LOST),
}


def _advice(names: Sequence[str], before: CacheLookup, after: CacheLookup) -> list[str]:
    """Return the advice on a graph that was looked up under another key than before, as lines of Markdown.

    Args:
        names: of the parts of the key that differ (:class:`depyf.records.model.CacheKeyPart`).
    """
    listed = ", ".join(f"`{name}`" for name in sorted(names))
    change, why, cost = f"make {listed} the same in both runs", f"{listed} is part of the key", _LOST
    if "inductor_config" in names:
        change = "set the same options of `torch._inductor.config` in both runs"
        why = "; ".join(_changed(before.options, after.options)) \
            or "an option differs (some are set by environment variables, `TORCHINDUCTOR_…`)"
    for name in _CHANGES:
        if name in names:
            change, why, cost = _CHANGES[name]
            break
    return ["", f"* **change**: {prose(change)}", f"* because {prose(why)}", f"* cost: {prose(cost)}"]


def _changed(before: Collection[str], after: Collection[str]) -> list[str]:
    """Return a clause for each option that changed: ``max_fusion_size = 1`` is set now."""
    was, now = (dict(option.partition(" = ")[::2] for option in options) for options in (before, after))
    clauses = [f"`{name}` was `{was[name]}` and is `{value}`" for name, value in sorted(now.items())
               if name in was and was[name] != value]
    clauses += [f"`{name} = {value}` is set now and was not" for name, value in sorted(now.items()) if name not in was]
    clauses += [f"`{name} = {value}` was set and is not now" for name, value in sorted(was.items()) if name not in now]
    return clauses
