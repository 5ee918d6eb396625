"""The search for a patch: try the changes that advice proposes, take those that help and preserve the results.

A round tries one change after the other until one helps; those for breaks first, since many recompiles are of resume
functions, and go with the break. Rounds end when nothing is left, nothing new is proposed, or the runs are used up.
"""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Callable, Iterable

from ..advice import Advice, Sources, candidates
from ..advice.recompiles import proposals
from ..records.model import SourceFile
from ..values import frozen
from ..views.advice import value_change
from ..views.run_index import RunIndex
from .outcome import Conditions, Outcome, Verdict, compared
from .patch import Patch

#: Changes that repair a break and reveal others, taken in the hope of repairing those, too; and the weight that these
#: may add (:attr:`Outcome.weight`). Torch may give a function up at its first break: the others show after that.
MOST_AHEAD = 2
MOST_SHOWN = 8


@frozen
class Step:
    """A patch that preserves the results, the run with it, and the verdict of generated calls."""

    after: Outcome
    patch: Patch
    verdict: Verdict = Verdict()


class Search:
    """A search for a patch of one program, at most so many runs of it; ``on_run`` is called before each.

    Attributes:
        before: the run without a patch.
        best: the patch that was found, which may have no changes.
        refused: why nothing was tried, or ``""``.
        rejected: what was tried and is no part of the patch, with the reason.
    """

    def __init__(self, program: str, trial: Callable[..., Outcome], most_runs: int = 20,
                 on_run: Callable[[int, str], object] = lambda number, what: None) -> None:
        self.program = os.path.realpath(program)
        self.trial, self.most_runs, self.on_run = trial, most_runs, on_run
        self.runs = 0
        self.tried: set[Advice] = set()
        self.on_recompiles: set[Advice] = set()
        self.refused = ""
        self.rejected: dict[Advice, str] = {}
        self._unchanged: dict[str, Outcome] = {}

    def _run(self, patch: Patch, what: str, conditions: Conditions | None = None) -> Outcome:
        self.runs += 1
        self.on_run(self.runs, what)
        return self.trial(patch.texts, conditions)

    @property
    def _left(self) -> int:
        return self.most_runs - self.runs

    def run(self) -> Search:
        """Run the search, and return it."""
        before = self.before = self._run(Patch(self.program), "the program as it is")
        self.best = Step(before, Patch(self.program))
        if before.status != 0 or before.capture is None:
            self.refused = "the program fails as it is" if before.status else "the program takes too long"
        elif not before.capture.compilations:
            self.refused = "torch compiled nothing in the program's own process; others that it starts are not watched"
        else:
            self._improve()
            self._spare()
            if before.weight and not self.best.patch.taken and self._left > 0 and self._run(
                    Patch(self.program), "the program as it is, again").difference(before):
                self.refused = "two runs of the program as it is do not give the same, so no change can be judged"
        taken = {each.change for each in self.best.patch.taken}
        self.rejected = {each: why for each, why in self.rejected.items() if each.change not in taken}
        return self

    def _improve(self) -> None:
        step, ahead = self.best, 0
        while step.after.weight and self._left > 0:
            following = self._round(step) if ahead <= MOST_AHEAD else None
            if following is not None and following.after.weight < self.best.after.weight:
                self.best, step, ahead = following, following, 0
            elif following is not None:
                step, ahead = following, ahead + 1
            elif step is self.best:
                return
            else:  # (nothing ahead helps: what is left is tried without it)
                step, ahead = self.best, 0

    def _round(self, step: Step) -> Step | None:
        """Return the next step; ``None`` where no proposed change can be taken."""
        opening = None
        fresh = self._fresh(step)
        for each in fresh:
            if self._left <= 0:
                return opening
            self.tried.add(each)
            patch = step.patch.with_advice(each)
            lines = ", ".join(str(edit.first) for edit in each.edits)  # (variants of a change differ in them)
            what = f"{each.change} (line{'s' * (',' in lines)} {lines})" if lines else each.change
            found = "its lines are changed already" if patch is None else self._judged(
                patch, what, lambda after: after.weight < step.after.weight + MOST_SHOWN * (
                    after.broken_at != step.after.broken_at))
            if isinstance(found, str):
                self.rejected[each] = found
            elif found.after.weight < step.after.weight:
                return found  # (lines have moved: the remaining changes are proposed again)
            else:
                opening = opening or found
        if opening is not None:
            self.tried -= self.on_recompiles  # (what did not help may do so without the break)
        elif fresh:
            return self._round(step)
        return opening

    def _spare(self) -> None:
        """Take out the changes that a later one made needless: without one of these nothing is compiled worse."""
        number = 0
        while number < len(self.best.patch.taken) - 1 and self._left > 0:
            patch, what = self.best.patch.without(number), f"without: {self.best.patch.taken[number].change}"
            found = self._judged(patch, what, lambda after: after.weight <= self.best.after.weight) if patch else ""
            if isinstance(found, Step):
                self.best = found
            else:
                number += 1

    def _judged(self, patch: Patch, what: str, is_worth: Callable[[Outcome], bool]) -> Step | str:
        """Return a patch as a step, or why it cannot be taken: it is not worth it, or something differs."""
        after = self._run(patch, what)
        if after.status != 0:
            return "the program fails with it" if after.status else "the program takes too long with it"
        if not is_worth(after):
            return "nothing is compiled better with it"
        if self.before.operations and not after.operations:  # (what is not compiled has no breaks)
            return "nothing is compiled with it"
        differs = after.difference(self.before)
        if differs or not any(advice.edits for advice in patch.taken):
            return differs or Step(after, patch)
        if self._left < 2:
            return "no runs were left to test it"
        conditions = conditions_of(patch.taken)
        new = self._run(patch, "calls with other inputs", conditions)
        key = repr(conditions)
        if key not in self._unchanged:
            self._unchanged[key] = self._run(Patch(self.program), "the same of the program as it is", conditions)
        verdict = compared(self._unchanged[key].calls, new.calls, conditions)
        return verdict.why_not or Step(after, patch, verdict)

    # --- proposals ----------------------------------------------------------------------------------
    def _fresh(self, step: Step) -> list[Advice]:
        """Return the changes to be tried next: for breaks, or where none of these is left, for recompiles."""
        capture = step.after.capture
        if capture is None:
            return []
        files = {self.program: step.patch.text(self.program), **{file.path: file.text for file in capture.sources}}
        sources = Sources(
            SourceFile(path, step.patch.texts.get(os.path.realpath(path), text)) for path, text in files.items())
        sites = [sources.site(broken) for each in capture.compilations for broken in each.breaks]
        fresh = list(dict.fromkeys(advice for advice in candidates(*sites) if advice not in self.tried))
        if fresh:
            return fresh
        run, found = RunIndex(capture), dict[Advice, None]()
        for compilation in capture.compilations:
            meant = compilation.user_function
            location = meant.location if meant is not None and meant.location is not None else compilation.location
            for change in run.changes(compilation):
                untried = (each for each in proposals(value_change(change), location, sources, self.program)
                           if each not in self.tried)
                found.update((each, None) for each in itertools.islice(untried, 1))
        self.on_recompiles.update(found)
        return list(found)


def conditions_of(advices: Iterable[Advice]) -> dict[str, list[tuple[str, ...]]]:
    """Return the conditions of changes by the real path of their files."""
    found: dict[str, dict[tuple[str, ...], None]] = {}
    for advice in advices:
        for edit in advice.edits if advice.condition else ():
            texts = tuple(ast.unparse(ast.parse(test, mode="eval")) for test in advice.condition)
            found.setdefault(os.path.realpath(edit.filename), {})[texts] = None
    return {path: list(tests) for path, tests in sorted(found.items())}
