"""The facts that advice on recompiles requires (:class:`depyf.advice.recompiles.Facts`).

They come from all versions of a function::

    x.shape[1] fixed at m.py:8 in [0/0] and [0/1]      fixed_at "`m.py:8`"
    x.shape[0]: 4 in [0/0], open in [0/1]              is_open
"""

from __future__ import annotations

from ..advice.recompiles import Facts, ValueChange
from ..records.model import Compilation
from ..torch_text.user_expressions import is_global
from .changes import Change, in_words
from .dump.guards.sizes import fixed_symbols
from .dump.guards.versions import MOST
from .markdown import code, some
from .run_index import RunIndex


class Circumstances:
    """The facts about the recompiles of one run."""

    def __init__(self, run: RunIndex) -> None:
        self.run = run

    def facts(self, compilation: Compilation, change: Change) -> Facts:
        """Return the facts about what changed at a recompile."""
        first, names = change.failures[0], self.run.stack_names(compilation)
        # (A variable of a closure has its name in the subject, and its place in torch's decisions.)
        subject = in_words(first.subject, names) if first.subject != first.text else change.subject
        versions = [(each, *self.run.sizes(each)) for each in self.run.capture.compilations
                    if each.compile_id.frame_key == compilation.compile_id.frame_key]
        failed = [self.run.version_of(failure.entry) for failure in change.failures]
        among = [compilation, *(each.compilation for each in failed if each is not None)]
        # (Last that of this version, or of one that the call did not fit.)
        fixed = [places[subject] for each, places, _ in sorted(versions, key=lambda each: each[0] in among)
                 if subject in places]
        # (What was compiled with other arguments of torch.compile says nothing of this one's sizes.)
        free = [(each, there[subject]) for each, _, there in versions
                if subject in there and each.arguments == compilation.arguments]
        opened = [self.run.range_of(each, source) for each, source in free]
        equated = [subject in getattr(self.run.version(each), "equations", ()) for each, _ in free]
        ranges = list(dict.fromkeys(each.in_words() for each in opened))
        return Facts(
            fixed_at=code(self.run.short_place(fixed[-1])) if fixed and fixed[-1] is not None else "",
            is_open=bool(opened) and (not fixed or fixed[-1] is not None),
            is_equated=any(equated) and all(is_one or left.high is not None for is_one, left in zip(equated, opened)),
            serves_small=any(each.low in (0, 1) for each in opened),
            dynamic=(compilation.arguments or {}).get("dynamic", ""),
            of_parameter=any(failure.owner == "parameter" for failure in change.failures),
            ranges=some(ranges, MOST) if len(ranges) > 1 and all(each.high is not None for each in opened) else "",
            numbers=tuple(int(fact.text) for version in self.run.versions_beside(compilation)
                          if (fact := version.facts.get(subject)) is not None and fact.text.isdigit()))

    def constraint(self, compilation: Compilation) -> str:
        """Return a sentence on sizes marked dynamic that have one value, or some only, as Markdown; ``""`` for none."""
        said = []
        for name, decision in self.run.with_names(compilation, fixed_symbols(compilation, None)):
            if ".shape[" in name:
                at = f" at {code(self.run.short_place(decision.location))}" if decision.location is not None else ""
                said.append(f"{code(name)} is marked as dynamic, and what is computed with it{at} fixes it at "
                            f"{decision.value}")
        return (f"{'; '.join(dict.fromkeys(said))}: with `torch._dynamo.maybe_mark_dynamic` in place of `mark_dynamic` "
                "a size that is fixed has a version of its own") if said else ""


def value_change(change: Change) -> ValueChange:
    """Return a change at a recompile as the rules on it know it."""
    first = change.failures[0]
    of_program = not change.subject.startswith("torch.")  # (a global of torch's is no argument of anything)
    return ValueChange(change.subject, change.was, change.now, change.lasts, tuple(name for name, _ in change.keywords),
                       first.owner, is_global(first.source) and of_program)

