"""Advice on recompiles: what to change so that torch need not compile again, from the circumstances of each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..records.model import Compilation
from ..torch_text.libraries import is_library
from ..torch_text.user_expressions import parsed_expression
from .causes import in_two_steps
from .changes import CLOSURE_HINT, Change, in_words
from .dump.guards.sizes import range_in_sentence
from .markdown import code, prose, some
from .run_index import RunIndex
from .version_differences import MOST, version_differences

#: Files through which torch calls a function of the user's.
_OF_TORCH = re.compile(r"torch[\\/](?:_dynamo[\\/]|nn[\\/]modules[\\/]module\.py$)")
#: Files that another than the user wrote.
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
#: An item of a list: versions differ in what it holds.
_HELD = re.compile(r"\[(?:\d+|[i-n])\]$")
#: Versions that failed at once that are compared with what was compiled then.
_COMPARED = 4
#: Recompiles of a function that are looked at for it.
_LOOKED_AT = 12
#: What a call cannot keep by itself: it is what a tensor is like.
_OF_A_TENSOR = re.compile(r"\.shape\[|\.dtype$|\.device$|\.requires_grad$")


class Adviser:
    """Advises on the recompiles of one run."""

    def __init__(self, run: RunIndex) -> None:
        self.run = run
        self._of_functions: dict[tuple[int, int], Circumstances] = {}

    def on(self, compilations: Iterable[Compilation]) -> list[str]:
        """Return advice on how to spare torch compiling these again, as Markdown; each once."""
        compilations = list(compilations)
        texts = [advice(change, self._circumstances(compilation))
                 for compilation in compilations for change in self.run.changes(compilation)[:1]]
        result = list(dict.fromkeys(filter(None, texts)))
        others = dict.fromkeys(code(subject) for compilation in compilations[:_LOOKED_AT]
                               for subject in self._others(compilation))
        for change in (each for compilation in compilations for each in self.run.changes(compilation)[:1]):
            others.pop(code(change.subject), None)
        if result and others:
            result.append(f"that alone may not do: versions also differ in {some(list(others), MOST)}")
        return result

    def _others(self, compilation: Compilation) -> Iterator[str]:
        """Yield what else the failed versions differ in from the one compiled then.

        A tensor's properties are left out: they are what they are.
        """
        new, changes = self.run.version(compilation), self.run.changes(compilation)
        if new is None or not changes[0].lasts:
            return
        for failure in compilation.guard_failures[:_COMPARED]:
            old = self.run.version_of(failure.entry)
            for each in version_differences(old, new, self.run.stack_names(compilation), ()) if old else ():
                if not _OF_A_TENSOR.search(each.subject) and each.subject != "len(kwargs)":
                    yield _HELD.sub("[...]", each.subject)

    def _circumstances(self, compilation: Compilation) -> Circumstances:
        key = compilation.compile_id.frame_key
        if key not in self._of_functions:  # (the same for all versions of a function, of which there may be hundreds)
            self._of_functions[key] = Circumstances(
                self._fixed(compilation), {}, self._ranges(compilation), self._calls(compilation))
        known = self._of_functions[key]
        return replace(known, modules=self._of_modules(compilation, known.fixed),
                       in_library=self._is_called_by_library(compilation))

    def _of_frame(self, compilation: Compilation) -> list[Compilation]:
        return [c for c in self.run.capture.compilations if c.compile_id.frame_key == compilation.compile_id.frame_key]

    def _fixed(self, compilation: Compilation) -> dict[str, str]:
        """Return the sizes that a version of the function holds for one value, with the place that fixed them."""
        return {in_words(source, self.run.stack_names(each)): code(self.run.short_place(decision.location))
                for each in self._of_frame(compilation)
                for decision in each.symbols if decision.kind == "fixed" and decision.location is not None
                for source in decision.source.split(", ") if source}

    def _of_modules(self, compilation: Compilation, fixed: Mapping[str, str]) -> dict[str, int]:
        """Return the fixed sizes that changed along with those of ``self``'s tensors.

        Another module was called.
        """
        subjects = [change.subject for change in self.run.changes(compilation)[:1] if change.subject in fixed]
        if not subjects or not any(each.subject.startswith("self.") and ".shape[" in each.subject
                                   for each in self.run.differences(compilation)):
            return {}
        modules = {tuple(one.text for one in version.conditions if one.tensor and one.root == "self")
                   for version in map(self.run.version, self._of_frame(compilation)) if version is not None}
        return dict.fromkeys(subjects, len(modules))

    def _ranges(self, compilation: Compilation) -> dict[str, str]:
        """Return the sizes that a version of the same function leaves open, with the range that its guards leave."""
        ranges = ((in_words(source, self.run.stack_names(each)), self.run.range_of(each, source))
                  for each in self._of_frame(compilation)
                  for decision in each.symbols if decision.kind == "created"
                  for source in decision.source.split(", ") if source)
        return {what: f"all sizes {range_in_sentence(known)}" for what, known in ranges if known}

    def _calls(self, compilation: Compilation) -> dict[str, str]:
        """Return calls of bound methods whose arguments break the graph, written in two steps."""
        summary = self.run.summary_of.get(compilation.compile_id.key)
        steps = (in_two_steps(broken) for each in (summary.compilations if summary else ()) for broken in each.breaks)
        return dict(filter(None, steps))

    def _is_called_by_library(self, compilation: Compilation) -> bool:
        caller = next((place for place in reversed(compilation.stack) if not _OF_TORCH.search(place.filename)), None)
        return caller is not None and (is_library(caller.filename) or _INSTALLED.search(caller.filename) is not None)


@dataclass(frozen=True)
class Circumstances:
    """The circumstances that advice on a change depends on.

    Attributes:
        fixed: sizes that a version holds for one value of, with the place of the line that fixed them:
            ``{"x.shape[1]": "`conv.py:560`"}``.
        modules: of these sizes, those that came with other sizes of the module's own tensors, with their number.
        ranges: sizes that a version leaves open, in words: ``{"x.shape[0]": "all sizes from 2 to 256"}``.
        calls: lines that call a bound method with what breaks the graph among their arguments, in two steps:
            ``{"self.log.append": "first `value = x.item()`, then `self.log.append(value)`"}``.
        in_library: the function is called from a file that is not the user's.
    """

    fixed: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    in_library: bool = False


def advice(change: Change, at: Circumstances) -> str:
    """Return advice on how to spare torch compiling again, as Markdown.

    ``""`` where there is nothing general to say, or nothing that the user has in hand.
    """
    text = _advice(change, at)
    subject = ", ".join(code(name) for name, _ in change.keywords) or change.subject_text()
    return f"{subject}: {text}" if text else ""


def _advice(change: Change, at: Circumstances) -> str:
    hint = next((CLOSURE_HINT.sub("", failure.hint).strip() for failure in change.failures if failure.hint), "")
    if hint and not hint.startswith("type "):
        return prose(hint)
    size = re.fullmatch(r"(?P<tensor>.+)\.shape\[(?P<index>\d+)\]", change.subject)
    special = next((number for number in (change.now, *change.was) if number in ("0", "1")), "") if size else ""
    if special:
        return f"torch compiles a version of its own for size {special}; pad, or keep such calls away"
    limit = "allow more versions: `torch._dynamo.config.recompile_limit`"
    if change.subject in at.modules:
        return (f"each module that it is called on has tensors of other sizes, {at.modules[change.subject]} of them in "
                f"this run, and what is computed with these fixes it (at {at.fixed[change.subject]}); compile what "
                f"calls these modules as one graph, or {limit}")
    if change.subject in at.fixed:
        return (f"what is computed with it fixes it (at {at.fixed[change.subject]}), so each value has a version of "
                f"its own, marked as dynamic or not; call the function with fewer values, or {limit}")
    if size and "`" not in change.subject and all(expected.isdigit() and int(expected) > 1 for expected in change.was):
        known = at.ranges.get(change.subject, "")
        return (f"mark it dynamic before the first call, and one version serves {known or 'many sizes'}: "
                f"`torch._dynamo.mark_dynamic({size['tensor']}, {size['index']})`. A tensor that is made inside of "
                "what you compile cannot be marked: compile that with `dynamic=True`")
    if not change.lasts:
        steps = f": {at.calls[change.subject]}" if change.subject in at.calls else ""
        return f"move its call out of the compiled function, or compute its arguments before it{steps}"
    return _advice_on_values(change, at)


def _advice_on_values(change: Change, at: Circumstances) -> str:
    if change.subject == "len(kwargs)":
        return "" if at.in_library else (
            "calls with it and calls without it have a version each; pass it at each call" if change.keywords else
            "calls with other keyword arguments have a version of their own; give the same ones at each call")
    if re.fullmatch(r"len\(.+\)", change.subject):
        return "each length has a version of its own; keep one length, or fill a tensor of fixed size instead"
    if at.in_library or not isinstance(parsed_expression(change.subject), (ast.Name, ast.Attribute, ast.Subscript)):
        return ""
    if {change.now, *change.was} <= {"True", "False"} and not change.subject.endswith(".requires_grad"):
        return "each of its values has a version of its own; keep one where you can"
    if re.fullmatch(r"-?\d+\.\d+(?:e[+-]?\d+)?", change.now):
        return "make it a tensor, and the first version serves all of its values"
    return ""
