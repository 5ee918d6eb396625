"""Why graphs were not in Inductor's cache: the parts of the key that differ between two runs; advice."""

from __future__ import annotations

from collections.abc import Sequence

from ..records.model import CacheLookup, Capture
from .diff.pairing import aligned
from .markdown import code, listed, prose, some

_GRAPH, _INPUTS, _OPTIONS = "gm", "example_inputs", "inductor_config"
_OURS = "cache_key_tag"  #: Part of the key that separates compilations under depyf.
#: Parts that differ from graph to graph, or (the number of the device) from rank to rank.
OF_ONE_GRAPH = frozenset({_GRAPH, _INPUTS, _OURS})
#: Parts of the key, the one first on which advice helps most: in words, what to change, and why.
_PARTS = {
    _GRAPH: ("the graph", "compare the graphs with `depyf diff BEFORE AFTER --full`: an operation, a constant or a "
                          "size changed", "the graph is part of the key"),
    _INPUTS: ("the inputs", "mark the sizes that change with `torch._dynamo.maybe_mark_dynamic(x, 0)`, or pad the "
                            "inputs to a few sizes",
              "sizes, strides, dtypes and devices of the inputs are part of the key"),
    "fx_kwargs": ("how the graph is compiled",
                  "compile with the same `mode` and `options`, and with gradients as before",
                  "how a graph is compiled (CUDA graphs, inference or training, which inputs stay in place) is part of "
                  "the key"),
    "torch_version": ("the version of torch", "fill the cache with the torch that reads it",
                      "the sources of torch are part of the key"),
    "system_info": ("the device", "fill the cache on the kind of device that reads it",
                    "the device, its driver and Triton are part of the key"),
    _OPTIONS: ("options of `torch._inductor.config`", "set the same options of `torch._inductor.config` in both runs",
               "an option differs (some are set by environment variables, `TORCHINDUCTOR_…`)"),
}
_COST = "nothing; a cache that is shared has to be filled once more"
_COST_OF_INPUTS = "code for open sizes can be slower than for one size; padding computes more"


def between(before: Capture, after: Capture, of_ranks: bool = False) -> list[str]:
    """Return lines on graphs that a second run did not find; of ranks, which have own devices, inputs are no reason."""
    # (Each graph has its own options: graphs whose keys differ in the same are grouped.)
    groups: dict[tuple[str, ...], list[str]] = {}
    olds, news = ([(each.compile_id, lookup) for each in capture.compilations for lookup in each.caches if lookup.key]
                  for capture in (before, after))
    for old, new in aligned(olds, news, lambda each: _parts(each[1]).get(_GRAPH, "")):
        if old is None or new is None or new[1].outcome != "miss":
            continue
        was, now = _parts(old[1]), _parts(new[1])
        names = [name for name in was | now if name != _OURS and was.get(name) != now.get(name)]
        why: tuple[str, ...] = ()
        if not names and old[1].outcome != "miss":
            why = ("though the key is that of the first run", " It was emptied, or is elsewhere "
                   "(`TORCHINDUCTOR_CACHE_DIR`; depyf uses a separate one unless `caches=\"use\"`).")
        elif names := [name for name in names if not (of_ranks and name == _INPUTS)]:
            why = _differing(names, old[1], new[1])
        if why:
            groups.setdefault(why, []).append(code(str(new[0])))
    return [line for (why, end, *advice), ids in groups.items() for line in (
        "", f"Not in Inductor's cache, {why}: {some(list(dict.fromkeys(ids)), 3)}.{end}", *advice)]


def _parts(lookup: CacheLookup) -> dict[str, str]:
    return {part.name: part.digest for part in lookup.key}


def _differing(names: Sequence[str], before: CacheLookup, after: CacheLookup) -> tuple[str, ...]:
    """Return why a graph whose key differs in these parts was not found, nothing, and lines of advice, in Markdown."""
    words = listed([_PARTS[name][0] if name in _PARTS else code(name) for name in names])
    shown = ", ".join(f"`{name}`" for name in sorted(names))
    part = next((part for part in _PARTS if part in names), "")
    _, change, why = _PARTS.get(part, ("", f"make {shown} the same in both runs", f"{shown} is part of the key"))
    if part == _OPTIONS:
        was, now = (dict(option.partition(" = ")[::2] for option in each.options) for each in (before, after))
        why = "; ".join(
            f"`{name} = {now[name]}` is set now and was not" if name not in was else
            f"`{name} = {was[name]}` was set and is not now" if name not in now else
            f"`{name}` was `{was[name]}` and is `{now[name]}`"
            for name in sorted(was | now) if was.get(name) != now.get(name)) or why
    return (f"as the key is another ({words})", "", "", f"* **change**: {prose(change)}", f"* because {prose(why)}",
            f"* cost: {prose(_COST_OF_INPUTS if part == _INPUTS else _COST)}")
