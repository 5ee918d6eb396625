"""Guards that take long at each call: what to leave out of them.

A model of 48 blocks has 1,565 guards; all but a few say that its modules are what they were. ``tests/advice`` counts
the guards that a filter leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

from .model import Advice

#: So many are worth a word.
MANY = 500
_ON_MODULE = ("._modules[", "._parameters[", "._buffers[")


def on_guards(sources: Sequence[str]) -> Advice | None:
    """Return the advice on the guards of a version, given what each of them is on; ``None`` where they are few."""
    if len(sources) < MANY:
        return None
    for name, number, cost in (
            ("skip_guard_on_inbuilt_nn_modules_unsafe", sum(_is_of_module(source) for source in sources),
             "a module that is replaced, or an attribute of one that is set, after compiling is not noticed"),
            ("skip_guard_on_globals_unsafe", sum(source.startswith("G[") for source in sources),
             "a global that is set after compiling is not noticed")):
        if 2 * number > len(sources):
            options = f'options={{"guard_filter_fn": torch.compiler.{name}}}'
            return Advice("guards", f"write `torch.compile(..., {options})`",
                          f"{number} of {len(sources)} guards are on "
                          + ("modules" if "modules" in name else "globals") + ", which rarely change", cost)
    return None


def _is_of_module(source: str) -> bool:
    return any(part in source for part in _ON_MODULE)
