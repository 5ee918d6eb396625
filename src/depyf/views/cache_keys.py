"""Why graphs were not in Inductor's cache: the parts of the key that differ, within a run and between two; advice."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ..model.graph import TensorType
from ..model.graph_text import read_graph
from ..records.model import CacheLookup, Capture, CompileId
from ..torch_text.guard_failures import are_numbers
from ..torch_text.user_expressions import user_expression
from .diff.pairing import aligned
from .markdown import code, count, listed, prose, some

#: Part of the key that is the graph.
_GRAPH = "gm"
_INPUTS = "example_inputs"
#: Of these, no more than numbers.
_NUMBERS = "numbers"
#: Of these, none that the captured graph takes.
_TORCHS_OWN = "torch's own"
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


def within(capture: Capture) -> list[str]:
    """Return lines of Markdown on graphs that the run had looked up before, under another key."""
    groups: dict[tuple[tuple[str, ...], str], list[tuple[_Lookup, _Lookup, str]]] = {}
    seen: dict[str, list[_Lookup]] = {}
    for ids, lookup in _lookups(capture):
        graph = _digest(lookup)
        known = seen.setdefault(graph, [])
        if known and lookup.outcome == "miss":
            before = min(known, key=lambda each: len(differing(each[1], lookup)))
            names = differing(before[1], lookup)
            if names:
                kind, clause = _other_inputs(capture, before[0], ids) if names == (_INPUTS,) else ("", "")
                groups.setdefault((names, kind), []).append((before, (ids, lookup), clause))
        known.append((ids, lookup))
    lines = []
    for (names, kind), found in groups.items():
        (that, earlier), (this, later), clause = found[0]
        more = f" (and {count(len(found) - 1, 'graph')} more)" if len(found) > 1 else ""
        lines += ["", f"The graph of {code(str(this))} is that of {code(str(that))}, but was looked up under another "
                      f"key: {_in_words(names)} differ{clause}{more}."]
        if kind != _TORCHS_OWN:
            lines += _advice([kind] if kind else names, earlier, later)
    return lines


def _other_inputs(capture: Capture, before: CompileId, after: CompileId) -> tuple[str, str]:
    """Return which kind of inputs differ, and a clause on them; twice ``""`` where they are tensors, or not known.

    Numbers: ``"`n` was 1 and is 2"``. Where the captured graphs take the same, what torch itself passes differs: states
    of random generators have sizes with another symbol each time.
    """
    one, other = _inputs(capture, before), _inputs(capture, after)
    pairs = [pair for pair in zip(one, other) if pair[0] != pair[1]]
    if one and one == other:
        return _TORCHS_OWN, ", though the captured graphs take the same"
    if len(one) != len(other) or any(
            was[0] != now[0] or not are_numbers((was[1].number, now[1].number)) for was, now in pairs):
        return "", ""
    changed = ", ".join(f"{code(name)} was {was.number} and is {now.number}" for (name, was), (_, now) in pairs)
    return (_NUMBERS, f", {changed}") if changed else ("", "")


def _inputs(capture: Capture, compile_id: CompileId) -> list[tuple[str, TensorType]]:
    """Return the inputs of the one graph that was captured for a compilation, in the user's words, with their types."""
    stages = [graph.captured for graph in capture.graphs
              if graph.compile_id.key == compile_id.key and graph.captured is not None]
    if len(stages) != 1:
        return []
    names = {each.name: user_expression(each.source) for each in stages[0].inputs}
    return [(names.get(node.target, node.name), node.type or TensorType(""))
            for node in read_graph(stages[0].text).nodes if node.op == "placeholder"]


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
    for compilation in capture.compilations:
        for lookup in compilation.caches:
            if lookup.key:
                yield compilation.compile_id, lookup


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
    "numbers": (
        "let torch leave these numbers open, or give the graph a tensor in their place: the section on recompiles says "
        "what fixes them", "a number that a graph takes is part of the key, with the value that it is fixed at",
        "code for any number can be slower than for one"),
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
        names: of the parts of the key that differ (:class:`depyf.records.model.CacheKeyPart`); "numbers": nothing but
            numbers among the inputs.
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
