"""Graphs that were not in Inductor's cache: which part of the key was another, and what to do."""

from __future__ import annotations

from collections.abc import Collection

from .model import Advice

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


def on_key(differing: Collection[str], before: Collection[str] = (), after: Collection[str] = ()) -> Advice:
    """Return the advice on a graph that was looked up under another key than before.

    Args:
        differing: names of the parts of the key that differ (:class:`depyf.records.model.CacheKeyPart`); "numbers":
            nothing but numbers among the inputs.
        before, after: the options of Inductor at the two lookups that were not at their default.
    """
    for name, (change, why, cost) in _CHANGES.items():
        if name in differing:
            return Advice("cache", change, why, cost)
    if "inductor_config" in differing:
        return Advice("cache", "set the same options of `torch._inductor.config` in both runs",
                      "; ".join(_changed(before, after))
                      or "an option differs (some are set by environment variables, `TORCHINDUCTOR_…`)", _LOST)
    named = ", ".join(f"`{name}`" for name in sorted(differing))
    return Advice("cache", f"make {named} the same in both runs", f"{named} is part of the key", _LOST)


def _changed(before: Collection[str], after: Collection[str]) -> list[str]:
    """Return a clause for each option that changed: ``max_fusion_size = 1`` is set now."""
    was, now = (dict(option.partition(" = ")[::2] for option in options) for options in (before, after))
    clauses = [f"`{name}` was `{was[name]}` and is `{value}`" for name, value in sorted(now.items())
               if name in was and was[name] != value]
    clauses += [f"`{name} = {value}` is set now and was not" for name, value in sorted(now.items()) if name not in was]
    clauses += [f"`{name} = {value}` was set and is not now" for name, value in sorted(was.items()) if name not in now]
    return clauses
