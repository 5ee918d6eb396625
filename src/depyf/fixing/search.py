"""The search for a patch: try what advice proposes, keep what helps and leaves the results as they are."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..advice import Advice, Sources, candidates
from ..advice.recompile_changes import ValueChange
from ..advice.recompile_edits import proposals
from ..records.model import Capture, SourceFile
from ..views.markdown import count
from ..views.run_index import RunIndex
from .forced import Conditions, conditions_of
from .generated import Verdict, compared
from .outcome import Outcome
from .patch import Patch

#: Changes behind which the next break is looked for, and what may show there for a while (:attr:`Outcome.weight`).
MOST_AHEAD = 2
MOST_SHOWN = 8

#: Runs a program with texts in the place of files, and with conditions whose sides generated calls are forced to.
Trial = Callable[..., Outcome]


@dataclasses.dataclass
class Found:
    """What the search came to.

    Attributes:
        before, after: the runs without and with the patch.
        patch: the changes that were taken.
        runs: how often the program ran.
        refused: why nothing was tried, or ``""``.
        rejected: what was tried and is no part of the patch, in words, with why not.
        verdict: on the patch, of generated calls.
    """

    before: Outcome
    after: Outcome
    patch: Patch
    runs: int = 1
    refused: str = ""
    rejected: Mapping[str, str] = dataclasses.field(default_factory=dict)
    verdict: Verdict = Verdict()

    @property
    def taken(self) -> tuple[Advice, ...]:
        """What the patch does."""
        return self.patch.taken

    @property
    def texts(self) -> Mapping[str, str]:
        """The files that the patch changes, by path, as they would be."""
        return self.patch.texts


class Search:
    """A search over one program.

    Args:
        program: its file.
        trial: runs it.
        most_runs: after so many the search ends with what it has.
        on_run: called before each run with its number and what is tried.
    """

    def __init__(self, program: str, trial: Trial, most_runs: int = 12,
                 on_run: Callable[[int, str], object] = lambda number, what: None) -> None:
        self.program = os.path.realpath(program)
        self.trial = trial
        self.left = most_runs
        self.on_run = on_run
        self.tried: set[Advice] = set()
        self.on_recompiles: set[Advice] = set()
        self.runs = 0
        self.rejected: dict[str, str] = {}
        self._known: dict[str, Outcome] = {}

    def _run(self, texts: Mapping[str, str], what: str, conditions: Conditions | None = None) -> Outcome:
        """Run the program with texts in the place of its files; what was run already is known."""
        key = repr((sorted(texts.items()), conditions))
        if key not in self._known:
            self._known[key] = self._run_anew(texts, what, conditions)
        return self._known[key]

    def _run_anew(self, texts: Mapping[str, str], what: str, conditions: Conditions | None = None) -> Outcome:
        self.runs += 1
        self.left -= 1
        self.on_run(self.runs, what)
        return self.trial(texts, conditions)

    def _may_go_on(self, found: Found) -> bool:
        """Return whether runs are left for more than to see which of the changes are needed."""
        return self.left > max(0, len(found.taken) - 1)

    def patch(self) -> Found:
        """Return the patch that was found."""
        before = self._run({}, "the program as it is")
        found = Found(before, before, Patch(self.program))
        if before.status != 0 or before.capture is None:
            found.refused = "the program fails as it is" if before.status else "the program takes too long"
            return found
        if not before.capture.compilations:
            found.refused = "torch compiled nothing in the program's own process; others that it starts are not watched"
            return found
        while self._may_go_on(found) and found.after.problems and (self._step(found) or self._through(found)):
            pass
        self._without_idle(found)
        if before.problems and not found.taken and self.left > 0 and not (
                self._run_anew({}, "the program as it is, again").same_results(before)):
            found.refused = "two runs of the program as it is do not give the same, so no change can be judged"
        found.runs = self.runs
        taken = {each.change for each in found.taken}
        found.rejected = {each.change: self.rejected.get(each.change, "it was not the same together with others")
                          for each in self.tried if each.change not in taken}
        return found

    def _step(self, found: Found) -> bool:
        """Try one round of proposals, all at once, or by themselves till one helps; return whether there were any."""
        fresh = self._fresh(found)
        first = list(_one_each(fresh))
        if len(first) > 1 and self._taken(found, first):
            self.tried.update(first)
            return True
        for each in first:
            if not self._may_go_on(found):
                break
            self.tried.add(each)
            if self._taken(found, [each]):
                break  # (lines have moved: what is left is proposed again)
        return bool(first)

    def _fresh(self, found: Found) -> list[Advice]:
        """Return the changes to be tried next.

        Breaks come first, since many a recompile is of a resume function, and goes with the break. Where no change
        helps with those, the recompiles are judged by themselves.
        """
        fresh = [each for each in self._on_breaks(found) if each not in self.tried]
        if not fresh:
            fresh = [each for each in self._on_recompiles(found) if each not in self.tried]
            self.on_recompiles.update(fresh)
        return fresh

    def _through(self, found: Found) -> bool:
        """Take a change behind which the next break shows, together with changes for that; return whether it helps.

        A function that is given up at its first break has its others still to come.
        """
        for first in [each for each in _one_each(self._on_breaks(found)) if each not in found.taken][:MOST_AHEAD]:
            ahead = dataclasses.replace(found)
            if self.left <= 1 or not self._taken(ahead, [first], ahead.after.weight + MOST_SHOWN):
                continue
            if ahead.after.broken_at == found.after.broken_at:
                continue
            self.tried -= self.on_recompiles  # (what did not help may do so where the break is gone)
            while self._may_go_on(ahead) and ahead.after.problems and self._step(ahead):
                pass
            if ahead.after.weight < found.after.weight:
                found.after, found.patch, found.verdict = ahead.after, ahead.patch, ahead.verdict
                return True
        return False

    def _taken(self, found: Found, advices: Sequence[Advice], below: int | None = None) -> bool:
        """Try changes, and take them where what is left weighs less than it did, or than ``below``."""
        patch = found.patch.with_advice(advices)
        if patch is None:
            return False
        more = f", and {count(len(advices) - 1, 'more change')}" if len(advices) > 1 else ""
        why_not = self._replaced(found, patch, found.after.weight if below is None else below, advices[0].change + more)
        if len(advices) == 1 and why_not:
            self.rejected[advices[0].change] = why_not
        return not why_not

    def _replaced(self, found: Found, patch: Patch, below: int, what: str) -> str:
        """Try another patch, and take it where what is left weighs less than ``below`` and nothing differs.

        Returns:
            Why it is not taken; ``""``: it is.
        """
        conditions, lost = conditions_of(patch.made)
        after = self._run(patch.texts, what, conditions)
        if after.status != 0:
            return "the program fails with it" if after.status else "the program takes too long with it"
        if after.weight >= below:
            return "nothing is compiled better with it"
        if found.before.operations and not after.operations:  # (what is not compiled has no breaks)
            return "nothing is compiled with it"
        if not after.same_results(found.before):
            return "it changes what the program prints or what its compiled functions return"
        verdict = Verdict()
        if patch.made:
            if lost:
                return f"the two sides of `{lost[0]}` cannot be tested"
            before = self._run({}, "generated calls of the program as it is", conditions)
            verdict = compared(before.generated or (), after.generated or (), conditions)
            if not verdict.holds:
                return verdict.differs or (verdict.one_sided or verdict.unjudged or ("no call could be repeated",))[0]
        found.after, found.patch, found.verdict = after, patch, verdict
        return ""

    def _without_idle(self, found: Found) -> None:
        """Take back each change without which the run is as good."""
        for advice in self._in_question(found):
            patch = found.patch.without(advice)
            if patch is not None and len(found.taken) > 1 and (self.left > 0 or self._is_known(patch)):
                self._replaced(found, patch, found.after.weight + 1, f"without the change: {advice.change}")

    def _is_known(self, patch: Patch) -> bool:
        return repr((sorted(patch.texts.items()), conditions_of(patch.made)[0])) in self._known

    def _in_question(self, found: Found) -> list[Advice]:
        """Return the changes that may not be needed, as far as the runs tell; settings first, which reach farthest.

        Where nothing is left and no setting is changed, nothing but its edit mends a line: with the line as it was, its
        break is back.
        """
        settings = [each for each in found.taken if each.settings]
        mended = not settings and not found.after.problems
        return settings + [each for each in found.taken if not each.settings and not (
            mended and each not in self.on_recompiles)]

    # --- proposals ----------------------------------------------------------------------------------
    def _on_breaks(self, found: Found) -> Iterator[Advice]:
        capture = found.after.capture
        if capture is None:
            return
        sources = self._sources(capture, found.patch)
        for compilation in capture.compilations:
            for broken in compilation.breaks:
                site = sources.site(broken, compilation.function)
                yield from (each for each in candidates(site) if each not in self.tried)

    def _on_recompiles(self, found: Found) -> Iterator[Advice]:
        capture = found.after.capture
        if capture is None:
            return
        sources, run = self._sources(capture, found.patch), RunIndex(capture)
        for compilation in capture.compilations:
            meant = compilation.user_function
            location = meant.location if meant is not None and meant.location is not None else compilation.location
            for change in run.changes(compilation):
                value = ValueChange(change.subject, change.was, change.now, change.lasts)
                first = next((each for each in proposals(value, location, sources, self.program)
                              if each not in self.tried), None)
                if first is not None:
                    yield first

    def _sources(self, capture: Capture, patch: Patch) -> Sources:
        files = {self.program: patch.text(self.program), **{file.path: file.text for file in capture.sources}}
        return Sources(SourceFile(path, patch.texts.get(os.path.realpath(path), text)) for path, text in files.items())


def _one_each(advices: Iterable[Advice]) -> Iterator[Advice]:
    """Yield the first proposal for each place, so that all can be made at once."""
    lines: set[tuple[str, int]] = set()
    seen: set[Advice] = set()
    for advice in advices:
        touched = {(edit.filename, line) for edit in advice.edits for line in range(edit.first, edit.last + 1)}
        if advice in seen or touched & lines:
            continue
        seen.add(advice)
        lines |= touched
        yield advice
