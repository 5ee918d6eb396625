"""Advice on recompiles for sizes, and for conditions on sizes and open numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ..torch_text.parsed import parsed_expression
from .recompile_changes import DOTTED, LIMIT, Circumstances, RecompileAdvice, ValueChange

#: Sizes and numbers that a test of the program's tells apart.
_SIZES_APART = ("the function's own lines tell such sizes apart; make them alike before the call (pad), or allow a "
                f"version each: {LIMIT}")
_EACH_RANGE = ("each range has a version, and the program need not change; where there are more than the limit, raise "
               f"it: {LIMIT}")
_APART_IN_TORCH = f"what torch computes with it (at {{}}) is another computation for such sizes: {_EACH_RANGE}"
_TAKEN_FOR_ONE = ("they were the same when that version was compiled, so torch took them for one size; let them differ "
                  "in the first call{}")
_GENERATED_APART = f"the backend has other code for sizes with {{}} than for the rest: {_EACH_RANGE}"
_GENERATED_FOR_ONE = ("the backend's code is for one value of it, so each has a version, and the program need not "
                      f"change; where there are more than the limit, raise it: {LIMIT}")
_NUMBERS_APART = "the function's own test of it tells its values apart: each outcome has a version of its own"
ONE_OUTCOME = "for which the function's tests of it come out the same"


def _size_of(change: ValueChange) -> re.Match[str] | None:
    return re.fullmatch(r"(?P<tensor>.+)\.shape\[(?P<index>\d+)\]", change.subject)


def on_special_size(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a size that was 0 or 1, or is: torch has a version of its own for each."""
    size = _size_of(change)
    special = next((number for number in (change.now, *change.was) if number in ("0", "1")), "") if size else ""
    if not size or not special:
        return None
    can = size["tensor"].isidentifier() and not (
        change.subject in at.fixed or change.subject in at.tested or at.made_in or at.breaks)
    unbacked = (
        f", or `torch._dynamo.decorators.mark_unbacked({size['tensor']}, {size['index']})` before the first call; "
        "nothing in the function may then depend on that size") if can else ""
    versions = at.expected.get(change.subject, ()).count(special)
    own = "a version of its own, one in all" if versions < 2 else f"versions of its own, {versions} in this run"
    alone = ", where nothing else differs" if at.differs and versions < 2 else ""
    return (f"size {special} has {own}{alone}; to spare {'it' if versions < 2 else 'them'}, pad to 2 or more, if "
            f"that changes no result{unbacked}")


def on_fixed_number(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a number that each version holds for one value of."""
    if change.subject not in at.fixed or ".shape[" in change.subject or change.subject in at.ranges:
        return None  # (Torch has versions of their own for 0 and 1 of a number that it otherwise leaves open.)
    if change.subject in at.keys:  # (Two tensors are never the same key, whatever their values.)
        return (f"as a key or index (at {at.fixed[change.subject]}) it is fixed, so each value has a version of its "
                "own; look that item up, or set it, outside of what is compiled")
    if change.subject in at.fixed_by_tests:
        return (f"a version for which the test at {at.fixed[change.subject]} comes out one way has one value of it; "
                "compute what that test gives before the call, and pass that (a tensor in place of the number would "
                "break the graph there)")
    return (f"what Python computes with it fixes it (at {at.fixed[change.subject]}), so each value has a version "
            "of its own; compute that before the call, or in torch, with a tensor in place of the number")


def on_fixed_size(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a size that a version holds for one value of."""
    limit = f"allow more versions: {LIMIT}"
    if change.subject in at.modules:
        return (f"each module that it is called on has tensors of other sizes, {at.modules[change.subject]} of them in "
                f"this run, and what is computed with these fixes it (at {at.fixed[change.subject]}); compile what "
                f"calls these modules as one graph, or {limit}")
    size = _size_of(change)
    if change.subject in at.same_as_fixed and change.subject in at.fixed:
        return _taken_for_another(change.subject, at)
    if change.subject in at.fixed_with and size and "`" not in change.subject:
        return _fixed_in_one_version(change, at, at.fixed[change.subject], at.fixed_with[change.subject])
    if change.subject in at.fixed and (size or change.subject not in at.ranges):
        return (f"what is computed with it fixes it (at {at.fixed[change.subject]}), so each value has a version of "
                f"its own, marked as dynamic or not; call the function with fewer values, or {limit}")
    return None


def _taken_for_another(subject: str, at: Circumstances) -> str:
    """Return advice on a size that torch took for another one, which is fixed, since both had the same value.

    (A size that is marked dynamic has a symbol of its own, whatever its value: ``create_unspecified_symbol``.)
    """
    other = at.same_as_fixed[subject]
    apart = "let them differ in the first call" if at.made_in or subject in at.tied or not DOTTED.fullmatch(
        subject.partition(".shape[")[0]) else (
        f"mark it dynamic before the first call, which keeps the two apart: {_mark(subject)}")
    return (f"it had the value of `{other}`, which is fixed (at {at.fixed[subject]}), so torch took both for one size; "
            f"{apart}")


def _fixed_in_one_version(change: ValueChange, at: Circumstances, place: str, others: Sequence[str]) -> str:
    """Return advice on a size that one version holds for one value of, and another leaves open.

    Torch opens a size when it has changed. What is computed with it and with a size that has not fixes it again; marked
    alone it would be an error of torch's.
    """
    if not others:
        why = f"what is computed with it in one version fixes it (at {place}); another leaves it open. "
        change_it = f"Mark it dynamic before the first call, and torch names what fixes it: {_mark(change.subject)}"
    else:
        have, both = ("has", "both") if len(others) == 1 else ("have", "them")
        why = (f"{_listed(others)} {have} the same value and had not changed yet, so what is computed with {both} "
               f"fixes it (at {place}); another version leaves it open. ")
        marks = ", ".join(map(_mark, (change.subject, *others)))
        change_it = f"Mark {_all(1 + len(others))} dynamic before the first call: {marks}"
    return why + (f"Compile `{at.made_in}` with `dynamic=True`" if at.made_in else change_it)


def on_equated_size(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a size of which each version holds an expression for one number."""
    if change.subject not in at.equated:
        return None
    expression, place = at.equated[change.subject]
    return (f"a version serves one value of `{expression}`, which is asked for at {place}, whether or not the size is "
            f"marked as dynamic; call the function with fewer sizes, or allow more versions: {LIMIT}")


def on_open_size(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a size that versions can leave open."""
    size = _size_of(change)
    if not size or "`" in change.subject or not all(
            expected.isdigit() and int(expected) > 1 for expected in change.was):
        return None
    if at.fixed_along and change.subject not in at.fixed_along:
        other, place = next(iter(at.fixed_along.items()))
        return (f"`{other}` changes along with it, and what is computed with that fixes it (at {place}), so each value "
                f"of that has a version of its own, whether or not this one is open; call the function with fewer "
                f"values, or allow more versions: {LIMIT}")
    known = at.ranges.get(change.subject, "") or "many sizes"
    if change.subject in at.told_apart:
        known = f"{at.ranges.get(change.subject) or 'all sizes'} {ONE_OUTCOME}"
    mark = _mark(change.subject)
    if at.differs:
        known = f"{known}, where nothing else differs"
    if at.all_static:
        return ("`torch.compile` was told `dynamic=False`, so each size has a version of its own; leave that out, and "
                f"the second version serves {known}, unless what is computed with the size fixes it")
    breaks = f"; but the version that has it open breaks at {at.breaks_when_open}" if at.breaks_when_open else ""
    if at.made_in:
        outside = "" if at.along or size["tensor"] not in at.made_outside or change.subject in at.tied else (
            f"; or mark it before the first call of that: {mark}")
        return f"compile `{at.made_in}` with `dynamic=True`, and one version serves {known}{outside}{breaks}"
    if not DOTTED.fullmatch(size["tensor"]) or change.subject in at.tied:
        # (An item of an argument, which may not be there before the first call; or a mark that would be an error.)
        return f"compile the function with `dynamic=True`, and one version serves {known}{breaks}"
    if at.along:
        marks = ", ".join((mark, *map(_mark, at.along)))
        return (f"mark {_all(1 + len(at.along))} dynamic before the first call, since one alone may be fixed by the "
                f"{'other' if len(at.along) == 1 else 'others'}, and one version serves {known}: {marks}{breaks}")
    return f"mark it dynamic before the first call, and one version serves {known}: {mark}{breaks}"


def on_open_range(change: ValueChange, at: Circumstances) -> RecompileAdvice | str:
    """Return advice on a size or number that each version leaves open within a range."""
    if ".shape[" not in change.subject:
        return RecompileAdvice(_NUMBERS_APART, is_remedy=False)
    place = at.bounded_by_torch.get(change.subject, "")
    return _APART_IN_TORCH.format(place) if place else _SIZES_APART


def on_condition(change: ValueChange, at: Circumstances) -> RecompileAdvice | str | None:
    """Return advice on a condition on sizes or open numbers, or on two names for one tensor."""
    if re.fullmatch(r"[\w.]+ is [\w.]+", change.subject):
        return "one tensor under two names has a version of its own; pass a copy: `.clone()`"
    if change.subject in at.taken_for_one and re.fullmatch(r"\S+\.shape\[\d+\] == \S+\.shape\[\d+\]", change.subject):
        # (The sizes of a view have symbols with its base.)
        marks = [_mark(size) for size in change.subject.split(" == ") if not at.made_in
                 and "._base." not in change.subject and size.partition(".shape[")[0].isidentifier()]
        return _TAKEN_FOR_ONE.format(f", or mark one of them dynamic before it: {marks[0]}" if marks else "")
    is_computed = isinstance(parsed_expression(change.subject), ast.BinOp)
    if ".shape[" in change.subject and (is_computed or re.search(r"[<>]|==|!=", change.subject)):
        return _SIZES_APART
    if is_computed or re.fullmatch(r"[\w.]+ [<>]=? [\w.]+", change.subject):
        return RecompileAdvice(_NUMBERS_APART, is_remedy=False)
    return None


def on_generated(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a size for which Inductor has other code."""
    condition = at.generated_apart.get(change.subject, "")
    if _leaves_one(condition):
        return _GENERATED_FOR_ONE
    return _GENERATED_APART.format(f"`{condition}`") if condition else None


def _leaves_one(condition: str) -> bool:
    """Return whether a condition holds for one number alone: ``x.shape[0] // 4 == 6``, and not a remainder."""
    match parsed_expression(condition):
        case ast.Compare(left, [ast.Eq()], [ast.Constant()]):
            return not any(isinstance(each, ast.Mod) for each in ast.walk(left))
    return False


def _all(number: int) -> str:
    return "both" if number == 2 else "all"


def _mark(size: str) -> str:
    """Return the call that marks a size dynamic: of ``x.shape[0]``."""
    tensor, _, index = size.removesuffix("]").rpartition(".shape[")
    return f"`torch._dynamo.mark_dynamic({tensor}, {index})`"


def _listed(subjects: Sequence[str]) -> str:
    names = [f"`{subject}`" for subject in subjects]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
