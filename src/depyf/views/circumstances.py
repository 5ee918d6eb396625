"""The circumstances of a recompile that advice on it depends on: what is open, what is fixed, who makes the arguments.

x.shape[1]: 10 -> 11, then open     open.ranges {"x.shape[1]": "all sizes from 2 on"}
fixed at m.py:8, where mask is 11   fixed.places {"x.shape[1]": "`m.py:8`"}
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import takewhile

from ..advice.keys import is_only_key
from ..advice.recompile_changes import last_part
from ..advice.recompile_circumstances import (
    Arguments,
    Circumstances,
    FailedGuards,
    FixedSizes,
    NewVersion,
    OpenSizes,
    VariableUses,
)
from ..advice.source import last_name
from ..advice.uses import (
    added_to,
    attributes_set,
    branch_tests,
    lone_tests,
    names_added_to,
    own_variables,
    read_by_tests,
    set_by_key,
)
from ..records.model import Compilation, SourceLocation, SymbolDecision
from ..torch_text.guard_failures import DUCK_SIZED
from ..torch_text.libraries import is_library
from ..torch_text.resumes import resumed_function
from ..torch_text.size_names import SYMBOL
from .causes import in_two_steps
from .dump.guards.conditions import ARGUMENTS
from .dump.guards.versions import Version, signature
from .fixed_symbols import fixed_symbols
from .inductor_ranges import condition_in_words
from .markdown import code
from .open_ranges import FixedSymbols, OpenRanges, created, named
from .run_index import RunIndex
from .verdict import is_outermost, wrapper_in

#: Files through which torch calls a function of the user's.
_OF_TORCH = re.compile(r"torch[\\/](?:_dynamo[\\/]|nn[\\/]modules[\\/]module\.py$)")
#: A condition that one number does not meet, and all others do.
_OTHER_THAN = re.compile(rf"Ne\({SYMBOL.pattern}, (-?\d+(?:\.\d+)?)\)")
#: A condition that bounds one symbol.
_BOUND = re.compile(rf"[\d*+\- ]*{SYMBOL.pattern}[\d+\- ]* [<>]=? -?\d+")
#: The last part of an item of a list.
_PLACE = re.compile(r"\[-?\d+\]")
#: Files that another than the user wrote.
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")


class CircumstancesOfRun:
    """The circumstances of the recompiles of one run."""

    def __init__(self, run: RunIndex) -> None:
        self.run = run
        self._of_functions: dict[tuple[int, int], Circumstances] = {}
        self._of_sizes: dict[tuple[tuple[int, int], str], list[str]] = {}
        self._of_tests: dict[str, list[tuple[ast.expr, str, str]]] = {}
        #: The lines with tests that decide where Python goes on, by file, and whether only tests alone count.
        self._branches: dict[tuple[str, bool], frozenset[int]] = {}

    def of(self, compilation: Compilation) -> Circumstances:
        """Return the circumstances of a recompile."""
        key = compilation.compile_id.frame_key
        if key not in self._of_functions:  # (the same for all versions of a function, of which there may be hundreds)
            # (What a compilation decided that was given up holds for no call.)
            frame = [c for c in self.run.capture.compilations
                     if c.compile_id.frame_key == key and c.outcome != "skipped"]
            fixed = {each.compile_id.key: fixed_symbols(each, self.run.version(each)) for each in frame}
            made_in, caller = self._caller(compilation)
            open_ranges = OpenRanges(self.run)
            ranges, elsewhere = open_ranges.ranges(frame, fixed)
            open_elsewhere, same = self._fixed_with(frame, fixed)
            self._of_functions[key] = Circumstances(
                fixed=FixedSizes(
                    places=self._fixed(frame, fixed), open_elsewhere=open_elsewhere, same_as=same,
                    by_tests=self._fixed_by_tests(frame, fixed), keys=self._keys(frame, fixed)),
                open=OpenSizes(
                    ranges=ranges, equated=open_ranges.equated(frame),
                    tested=frozenset(self._tested(frame, lambda decision: True)),
                    told_apart=frozenset(self._tested(frame, self._tells_apart)) | elsewhere,
                    excepted=self._excepted(frame), bounded_by_torch=self._bounded_by_torch(frame),
                    tied=self._tied(frame)),
                uses=VariableUses(
                    own_variables=self._own_variables(compilation), given=self._given(compilation),
                    filled=self._filled(compilation), tests=self._python_tests(compilation),
                    calls_in_two_steps=self._calls(compilation)),
                arguments=Arguments(
                    packed=self._packed(compilation), made_in=made_in, made_outside=self._given_to(caller),
                    divided=any(resumed_function(each.function) is not None
                                for each in self.run.summary_of[compilation.compile_id.key].compilations)))
        known = self._of_functions[key]
        return replace(
            known,
            failed=FailedGuards(
                expected=self._expected(compilation), taken_for_one=self._taken_for_one(compilation),
                generated_apart=self._generated_apart(compilation), set_once=self._set_once(compilation)),
            version=NewVersion(
                differs=any(".shape[" in each.subject or not each.subject.startswith("self.")
                            for each in self.run.differences(compilation)),
                along=self._along(compilation), fixed_along=self._fixed_along(compilation, known),
                modules=self._of_modules(compilation, known.fixed.places), breaks_at=self._new_break(compilation)),
            all_static=(compilation.arguments or {}).get("dynamic") == "False",
            in_library=self._is_called_by_library(compilation))

    # --- sizes and numbers ------------------------------------------------------------------------
    def _fixed(self, frame: list[Compilation], fixed: FixedSymbols) -> dict[str, str]:
        """Return the sizes that a version of the function holds for one value, with the place that fixed them."""
        return {subject: code(self.run.short_place(decision.location)) for each in frame
                for subject, decision in named(self.run, each, fixed[each.compile_id.key])
                if decision.location is not None}

    def _fixed_by_tests(self, frame: list[Compilation], fixed: FixedSymbols) -> frozenset[str]:
        """Return the numbers that a version fixes at a test of a statement, of them or of what is made of them."""
        last = {subject: self._is_branch(decision, alone=True) for each in frame
                for subject, decision in named(self.run, each, fixed[each.compile_id.key])
                if decision.location is not None}  # (as the place that is told)
        return frozenset(subject for subject, by_test in last.items() if by_test)

    def _keys(self, frame: list[Compilation], fixed: FixedSymbols) -> frozenset[str]:
        """Return the numbers that are fixed as they are keys, and nothing else, in each line that fixes them."""
        only: dict[str, bool] = {}
        for each in frame:
            for subject, decision in named(self.run, each, fixed[each.compile_id.key]):
                is_key = decision.location is not None and is_only_key(subject, decision.location.text)
                only[subject] = only.get(subject, True) and is_key
        return frozenset(subject for subject, is_key in only.items() if is_key)

    def _fixed_with(
        self, frame: list[Compilation], fixed: FixedSymbols,
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
        """Return the sizes that one version holds for one value of, and another leaves open.

        With each come sizes of arguments that are the same number in the first: what is computed with both fixes it.
        Apart from these are those that torch took for a size that all versions hold for that number.
        """
        opened: set[str] = set()
        first: dict[str, tuple[Compilation, SymbolDecision]] = {}
        for each in frame:
            decided = dict(named(self.run, each, fixed[each.compile_id.key]))
            opened.update(subject for subject, _ in named(self.run, each, created(each)) if subject not in decided)
            for subject, decision in decided.items():
                first.setdefault(subject, (each, decision))
        others: dict[str, tuple[str, ...]] = {}
        same: dict[str, str] = {}
        for subject in first.keys() & opened:
            where, decision = first[subject]
            others[subject] = tuple(size for size in self._sizes(where, decision.value) if size != subject)
            held = [name for name, (there, other) in first.items()
                    if there is where and other is decision and name != subject and name not in opened]
            same |= {subject: held[0]} if held else {}
        return others, same

    def _taken_for_one(self, compilation: Compilation) -> frozenset[str]:
        """Return the equations of sizes that torch made of a call in which both were the same.

        No line compares them: either torch says so, or it tested no equation.
        """
        made = [version.compilation for failure in compilation.guard_failures
                if (version := self.run.version_of(failure.entry)) is not None and version.compilation is not None]
        unasked = not any(decision.kind == "guarded" and decision.symbol.startswith("Eq(")
                          for each in made for decision in each.symbols)
        return frozenset(change.subject for change in self.run.changes(compilation)
                         if unasked or any(DUCK_SIZED in failure.text for failure in change.failures))

    def _sizes(self, compilation: Compilation, number: str) -> list[str]:
        """Return the sizes of arguments that a version holds for this number."""
        version = self.run.version(compilation)
        return [] if version is None else [
            f"{one.subject}.shape[{index}]" for one in version.conditions
            if one.tensor is not None and one.section == ARGUMENTS
            for index, size in enumerate(one.tensor.size) if str(size) == number]

    def _tested(
        self, frame: list[Compilation], counts: Callable[[SymbolDecision], bool],
    ) -> dict[str, list[SymbolDecision]]:
        """Return the sizes on which torch tested a condition that counts, in a version that leaves them open.

        With each come the conditions.
        """
        tested: dict[str, list[SymbolDecision]] = {}
        for each in frame:
            conditions = [decision for decision in each.symbols if decision.kind == "guarded" and counts(decision)]
            of_symbol: dict[str, list[SymbolDecision]] = {}
            for decision in conditions:
                for symbol in SYMBOL.findall(decision.symbol):
                    of_symbol.setdefault(symbol, []).append(decision)
            for subject, made in named(self.run, each, created(each)):
                if made.symbol in of_symbol:
                    tested.setdefault(subject, []).extend(of_symbol[made.symbol])
        return tested

    def _tells_apart(self, decision: SymbolDecision) -> bool:
        """Return whether torch tested a condition, other than a bound, because the program branches on it."""
        return self._is_branch(decision) and not _BOUND.fullmatch(decision.symbol)

    def _bounded_by_torch(self, frame: list[Compilation]) -> dict[str, str]:
        """Return the sizes that operations of torch's bound, and no branch of the program, with the place of one."""
        bounds = self._tested(frame, lambda decision: _BOUND.fullmatch(decision.symbol) is not None)
        return {subject: code(self.run.short_place(decisions[0].location)) for subject, decisions in bounds.items()
                if decisions[0].location is not None and not any(map(self._is_branch, decisions))}

    def _excepted(self, frame: list[Compilation]) -> dict[str, tuple[float, ...]]:
        """Return the numbers that branches of the program tell from all others."""
        return {subject: tuple(float(match[1]) for decision in decisions
                               if (match := _OTHER_THAN.fullmatch(decision.symbol)))
                for subject, decisions in self._tested(frame, self._is_branch).items()}

    def _is_branch(self, decision: SymbolDecision, alone: bool = False) -> bool:
        """Return whether torch tested a condition on a line by which the program branches.

        Args:
            decision: has the condition.
            alone: the line is that of the test of an ``if`` or ``while``, and nothing else is computed there.
        """
        where = decision.location
        if where is None:
            return False
        key = where.filename, alone
        if key not in self._branches:
            tree = self.run.source.tree(where.filename)
            tests = () if tree is None else lone_tests(tree) if alone else branch_tests(tree)
            self._branches[key] = frozenset(
                line for test in tests for line in range(test.lineno, (test.end_lineno or test.lineno) + 1))
        return where.line in self._branches[key]

    def _expected(self, compilation: Compilation) -> dict[str, tuple[str, ...]]:
        """Return what each version wants of what changed, and of lengths."""
        versions = self.run.versions_beside(compilation)
        subjects = {change.subject for change in self.run.changes(compilation)[:1]}
        subjects |= {subject for version in versions for subject in version.facts if subject.startswith("len(")}
        return {subject: tuple(filter(None, (_wanted(version, subject) for version in versions)))
                for subject in subjects}

    def _generated_apart(self, compilation: Compilation) -> dict[str, str]:
        """Return the sizes that Inductor told apart at a recompile, with the condition that failed."""
        result = {}
        for change in self.run.changes(compilation)[:1]:
            for failure in change.failures:
                decision, version = self.run.condition_of_inductor(failure), self.run.version_of(failure.entry)
                if decision is not None and version is not None and version.compilation is not None:
                    made = version.compilation
                    result[change.subject] = condition_in_words(decision, made, self.run.stack_names(made))
        return result

    def _tied(self, frame: list[Compilation]) -> frozenset[str]:
        """Return the sizes that torch found to be equal to numbers that are no sizes."""
        tied: set[str] = set()
        for each in frame:
            numbers = {decision.symbol for decision in created(each) if ".size()" not in decision.source}
            equal = [set(SYMBOL.findall(decision.symbol)) for decision in each.symbols
                     if decision.kind == "guarded" and decision.symbol.startswith("Eq(")]
            symbols = {symbol for both in equal if both & numbers for symbol in both - numbers}
            tied.update(subject for subject, decision in named(self.run, each, created(each))
                        if decision.symbol in symbols)
        return frozenset(tied)

    def _along(self, compilation: Compilation) -> tuple[str, ...]:
        """Return the sizes that go with the one that torch names first.

        Those that one version held for one value of, and the one compiled then leaves open, too; and those that are the
        same in a version.
        """
        along = [each.subject for each in self.run.differences(compilation)
                 if ".shape[" in each.subject and each.was.isdigit() and int(each.was) > 1 and not each.now.isdigit()]
        subject = next((change.subject for change in self.run.changes(compilation)), "")
        return tuple(dict.fromkeys([*along, *self._equal_sizes(compilation, subject)]))

    def _fixed_along(self, compilation: Compilation, known: Circumstances) -> dict[str, str]:
        """Return the sizes that changed to another number and that no version leaves open, with what fixes them."""
        return {each.subject: known.fixed.places[each.subject] for each in self.run.differences(compilation)
                if ".shape[" in each.subject and each.was.isdigit() and each.now.isdigit()
                and each.subject in known.fixed.places and each.subject not in known.open.ranges}

    def _equal_sizes(self, compilation: Compilation, subject: str) -> list[str]:
        """Return the sizes that are the same as this one in any version of the function."""
        key = compilation.compile_id.frame_key, subject
        if key not in self._of_sizes:
            self._of_sizes[key] = [
                size for version in self.run.versions_beside(compilation)
                for size, name in version.sizes.names.items()
                if size != subject and name == version.sizes.names.get(subject)]
        return self._of_sizes[key]

    def _of_modules(self, compilation: Compilation, fixed: Mapping[str, str]) -> dict[str, int]:
        """Return the fixed sizes that changed along with those of ``self``'s tensors.

        Another module was called.
        """
        subjects = [change.subject for change in self.run.changes(compilation)[:1] if change.subject in fixed]
        if not subjects or not any(each.subject.startswith("self.") and ".shape[" in each.subject
                                   for each in self.run.differences(compilation)):
            return {}
        modules = {tuple(one.text for one in version.conditions if one.tensor and one.root == "self")
                   for version in self.run.versions_beside(compilation)}
        return dict.fromkeys(subjects, len(modules))

    # --- calls ------------------------------------------------------------------------------------
    def _calls(self, compilation: Compilation) -> dict[str, str]:
        """Return calls of bound methods whose arguments break the graph, written in two steps."""
        summary = self.run.summary_of.get(compilation.compile_id.key)
        steps = (in_two_steps(broken) for each in (summary.compilations if summary else ()) for broken in each.breaks)
        return dict(filter(None, steps))

    def _caller(self, compilation: Compilation) -> tuple[str, Compilation | None]:
        """Return the function that the program has compiled, in which the values may be made that this one gets.

        With it comes its compilation. ``""`` where the program itself makes the call.
        """
        summary = self.run.summary_of[compilation.compile_id.key]
        resumed = resumed_function(compilation.function) is not None
        if is_outermost(summary) and not resumed:
            return "", None
        before = list(takewhile(lambda each: each is not compilation, self.run.capture.compilations))
        for place in compilation.stack:
            # (Of functions of one name in a file it is the last that begins before; of those behind one wrapper, one
            # that is on the stack, too, or else the last that was compiled.)
            begun = [(each.location.line, _is_called_through(each, compilation), order, each)
                     for order, each in enumerate(before) if each.location is not None
                     and (each.location.filename, each.function) == (place.filename, place.function)
                     and each.location.line <= place.line]
            if begun and not any(_is_wrapped(each, compilation) for *_, each in begun):
                caller = max(begun, key=lambda each: each[:3])[-1]
                return self._title(caller), caller
        return (summary.title, summary.compilations[0]) if resumed else ("", None)

    def _title(self, compilation: Compilation) -> str:
        """Return the user's name of a function, wrapped or not."""
        meant = compilation.user_function
        return meant.name if meant is not None and meant.wrappers else (
            self.run.summary_of[compilation.compile_id.key].title)

    def _packed(self, compilation: Compilation) -> dict[str, str]:
        """Return the parameters with a star of what was compiled, without it, with the kind of arguments they take."""
        frame = self.run.frame_of(compilation)
        if frame is None:
            return {}
        (function,) = ast.parse(f"def f({signature(frame)}): ...").body
        assert isinstance(function, ast.FunctionDef)
        packed = (function.args.vararg, "positional"), (function.args.kwarg, "keyword")
        return {parameter.arg: kind for parameter, kind in packed if parameter is not None}

    def _given_to(self, caller: Compilation | None) -> frozenset[str]:
        """Return the parameters of a function to which its lines give no other value."""
        where = caller.location if caller is not None else None
        definition = self.run.source.function_at(where) if where is not None else None
        if definition is None:
            return frozenset()
        stored = {each.id for each in ast.walk(definition.node)
                  if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        return frozenset(each.arg for each in ast.walk(definition.node.args) if isinstance(each, ast.arg)) - stored

    def _own_variables(self, compilation: Compilation) -> frozenset[str]:
        """Return the parameters and variables of the function that was compiled."""
        definition = self.run.source.function_at(compilation.location) if compilation.location is not None else None
        return frozenset(own_variables(definition.node)) if definition is not None else frozenset()

    def _given(self, compilation: Compilation) -> frozenset[str]:
        """Return the parameters that the lines of the function itself add nothing to."""
        definition = self.run.source.function_at(compilation.location) if compilation.location is not None else None
        if definition is None or resumed_function(compilation.function) is not None:
            return frozenset()
        names = {each.arg for each in ast.walk(definition.node.args) if isinstance(each, ast.arg)} - {"self", "cls"}
        return frozenset(names - names_added_to(definition.node))

    def _python_tests(self, compilation: Compilation) -> dict[str, str]:
        """Return what tests in a function and its file read, with the places (:class:`Circumstances`)."""
        where = compilation.location
        if where is None:
            return {}
        definition = self.run.source.function_at(where)
        own = {id(node) for node in ast.walk(definition.node)} if definition is not None else set()
        result: dict[str, str] = {}
        for node, text, part in self._tests_in(where.filename):
            # (``self`` is another object in another class.)
            names = {text} if id(node) in own else set()
            # (The first item of another list says nothing.)
            names |= {part} if part and not text.startswith("self.") and not _PLACE.fullmatch(part) else set()
            if names:
                place = code(self.run.short_place(SourceLocation(where.filename, node.lineno)))
                result |= dict.fromkeys(names, place)
        return result

    def _tests_in(self, filename: str) -> list[tuple[ast.expr, str, str]]:
        """Return what tests in a file read, with its text and the last part of that; once for all its functions."""
        if filename not in self._of_tests:
            tree = self.run.source.tree(filename)
            read = [(each, ast.unparse(each)) for each in read_by_tests(tree)] if tree is not None else []
            self._of_tests[filename] = [(each, text, last_part(text)) for each, text in read]
        return self._of_tests[filename]

    def _filled(self, compilation: Compilation) -> frozenset[str]:
        """Return the variables and attributes whose items the file of the function sets by key and in no other way."""
        tree = self.run.source.tree(compilation.location.filename) if compilation.location is not None else None
        if tree is None:
            return frozenset()
        by_key, added = map(last_name, set_by_key(tree)), map(last_name, added_to(tree))
        return frozenset({*by_key} - {*added} - {""})

    def _set_once(self, compilation: Compilation) -> frozenset[str]:
        """Return the attributes of ``self`` that changed and that only an ``__init__`` of the program sets."""
        changed = {match[1] for change in self.run.changes(compilation)
                   if (match := re.fullmatch(r"self\.(\w+)", change.subject))}
        if not changed or compilation.location is None or _INSTALLED.search(compilation.location.filename):
            return frozenset()
        files = [path for path in self.run.source.files() if not is_library(path) and not _INSTALLED.search(path)]
        trees = filter(None, map(self.run.source.tree, files))
        sets = [each for tree in trees for each in attributes_set(tree)]
        return frozenset(changed & {name for name, in_init in sets if in_init} - {
            name for name, in_init in sets if not in_init} if ("", False) not in sets else ())

    def _new_break(self, compilation: Compilation) -> str:
        """Return the place of a graph break in this version, where none before it has one; ``""`` for none."""
        this = compilation.compile_id
        if any(each.breaks for each in self.run.capture.compilations
               if each.compile_id.frame_key == this.frame_key and each.compile_id.key < this.key):
            return ""
        return next((code(self.run.short_place(broken.location)) for broken in compilation.breaks
                     if broken.location is not None), "")

    def _is_called_by_library(self, compilation: Compilation) -> bool:
        caller = next((place for place in reversed(compilation.stack)
                       if not _OF_TORCH.search(place.filename) and not wrapper_in(place)), None)
        return caller is not None and (is_library(caller.filename) or _INSTALLED.search(caller.filename) is not None)


def _is_wrapped(wrapper: Compilation, compilation: Compilation) -> bool:
    """Return whether a compilation is of the function that another one wraps, and no part of that one's own."""
    meant = wrapper.user_function
    return meant is not None and bool(meant.wrappers) and meant.location is not None and meant.location.is_at(
        compilation.location)


def _is_called_through(wrapper: Compilation, called: Compilation) -> bool:
    """Return whether the function that a compilation wraps is on the stack of another one."""
    meant = wrapper.user_function
    return meant is not None and meant.location is not None and any(
        (place.filename, place.function) == (meant.location.filename, meant.location.function)
        and place.line >= meant.location.line for place in called.stack)


def _wanted(version: Version, subject: str) -> str:
    """Return the value that a version wants of a size, length or number; ``""`` where it takes several."""
    size_of = re.fullmatch(r"(.+)\.shape\[(\d+)\]", subject)
    if size_of is not None:
        of, index = size_of[1], int(size_of[2])
        tensor = next((one.tensor for one in version.conditions if one.tensor is not None and one.subject == of), None)
        size = tensor.size[index] if tensor is not None and index < len(tensor.size) else None
        return "" if size is None else str(size)
    fact = version.facts.get(subject)
    return fact.text if fact is not None and fact.kind == "value" else ""
