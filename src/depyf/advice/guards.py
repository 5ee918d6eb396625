"""Guards that take long at each call: what to leave out of them.

A model of 48 blocks has 1,565 guards; all but a few say that its modules are what they were. ``tests/advice`` counts
the guards that a filter leaves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..records.model import Guard
from .model import Advice

#: So many are worth a word.
MANY = 500
#: The beginning of a source that is a module: the object itself, or a member of one.
_MODULE = re.compile(r".*\._modules\['[^']*'\]|[LG]\['\w+'\](?=\._(?:modules|parameters|buffers)\[)")
#: Classes of torch's that its filter counts among the program's own.
_CONTAINERS = "torch.nn.modules.container."
_TYPE = re.compile(r"check_type\((?P<source>.*), '(?P<cls>[^']*)'\)")
_COST = ("a module that is replaced, or an attribute of one that is set, after compiling is not noticed: also "
         "`.training`, which `.train()` and `.eval()` set, and parameters that are frozen")
_COST_OF_GLOBALS = "a global that is set after compiling is not noticed"


def on_guards(guards: Sequence[Guard], changed: Sequence[str] = ()) -> Advice | None:
    """Return the advice on the guards of a version; ``None`` where they are few, or what they are on changes.

    Args:
        guards: all of them.
        changed: what the recompiles of the function were for, as torch names it: ``"self._modules['0'].training"``.
    """
    if len(guards) < MANY:
        return None
    classes = dict(filter(None, map(_class_of, guards)))
    modules = [cls for guard in guards if (cls := _class_around(guard, classes)) is not None]
    builtin = sum(cls.startswith("torch.nn.") and not cls.startswith(_CONTAINERS) for cls in modules)
    of_modules = any(_MODULE.match(each if each[:2] in ("L[", "G[") else re.sub(r"^\w+", r"L['\g<0>']", each))
                     for each in changed)
    globals_ = sum(guard.source.startswith("G[") for guard in guards)
    for name, number, what, cost in (
            ("skip_guard_on_inbuilt_nn_modules_unsafe", 0 if of_modules else builtin, "modules of torch's", _COST),
            ("skip_guard_on_all_nn_modules_unsafe", 0 if of_modules else len(modules), "modules", _COST),
            ("skip_guard_on_globals_unsafe", globals_, "globals", _COST_OF_GLOBALS)):
        if 2 * number > len(guards):
            options = f'options={{"guard_filter_fn": torch.compiler.{name}}}'
            return Advice("guards", f"write `torch.compile(..., {options})`",
                          f"{number} of {len(guards)} guards are on {what}, which rarely change", cost)
    return None


def _class_of(guard: Guard) -> tuple[str, str] | None:
    """Return what a guard wants the type of, with the type; ``None`` for another guard."""
    match = _TYPE.match(guard.expression) if guard.kind == "TYPE_MATCH" else None
    return (match["source"], match["cls"]) if match is not None else None


def _class_around(guard: Guard, classes: Mapping[str, str]) -> str | None:
    """Return the class of the innermost module that a guard is on; ``None`` for one that is on no module.

    (``is_unspecialized_builtin_nn_module``, by which the filters choose, asks it of that one.)
    """
    typed = _class_of(guard)
    module = _MODULE.match(typed[0] if typed is not None else guard.source)
    return classes.get(module[0], "") if module is not None else None
