"""Advice on recompiles for sizes, and for conditions on sizes and open numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ..torch_text.parsed import parsed_expression
from .recompile_changes import DOTTED, LIMIT, RecompileAdvice, ValueChange
from .recompile_circumstances import Circumstances

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
    is_given = not at.arguments.made_in and not at.arguments.divided
    can = is_given and size["tensor"].isidentifier() and not (
        change.subject in at.fixed.places or change.subject in at.open.tested)
    unbacked = (
        f", or `torch._dynamo.decorators.mark_unbacked({size['tensor']}, {size['index']})` before the first call; "
        "nothing in the function may then depend on that size") if can else ""
    versions = at.failed.expected.get(change.subject, ()).count(special)
    own = "a version of its own, one in all" if versions < 2 else f"versions of its own, {versions} in this run"
    alone = ", where nothing else differs" if at.version.differs and versions < 2 else ""
    return (f"size {special} has {own}{alone}; to spare {'it' if versions < 2 else 'them'}, pad to 2 or more, if "
            f"that changes no result{unbacked}")


def on_fixed_number(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a number that each version holds for one value of."""
    place = at.fixed.places.get(change.subject)
    if place is None or ".shape[" in change.subject or change.subject in at.open.ranges:
        return None  # (Torch has versions of their own for 0 and 1 of a number that it otherwise leaves open.)
    if change.subject in at.fixed.keys:  # (Two tensors are never the same key, whatever their values.)
        return (f"as a key or index (at {place}) it is fixed, so each value has a version of its own; look that item "
                "up, or set it, outside of what is compiled")
    if change.subject in at.fixed.by_tests:
        return (f"a version for which the test at {place} comes out one way has one value of it; compute what that "
                "test gives before the call, and pass that (a tensor in place of the number would break the graph "
                "there)")
    return (f"what Python computes with it fixes it (at {place}), so each value has a version of its own; compute that "
            "before the call, or in torch, with a tensor in place of the number")


def on_fixed_size(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a size that a version holds for one value of."""
    subject, place = change.subject, at.fixed.places.get(change.subject)
    if place is None:
        return None
    limit = f"allow more versions: {LIMIT}"
    if subject in at.version.modules:
        return (f"each module that it is called on has tensors of other sizes, {at.version.modules[subject]} of them "
                f"in this run, and what is computed with these fixes it (at {place}); compile what calls these modules "
                f"as one graph, or {limit}")
    size = _size_of(change)
    if subject in at.fixed.same_as:
        return _taken_for_another(subject, place, at)
    if subject in at.fixed.open_elsewhere and size and "`" not in subject:
        return _fixed_in_one_version(subject, place, at)
    if size or subject not in at.open.ranges:
        return (f"what is computed with it fixes it (at {place}), so each value has a version of its own, also with "
                "`dynamic=True` (marked as dynamic it can be an error); call the function with fewer values, or "
                f"{limit}")
    return None


def _taken_for_another(subject: str, place: str, at: Circumstances) -> str:
    """Return advice on a size that torch took for another one, which is fixed, since both had the same value.

    (A size that is marked dynamic has a symbol of its own, whatever its value: ``create_unspecified_symbol``.)
    """
    can_be_marked = not at.arguments.made_in and subject not in at.open.tied and DOTTED.fullmatch(
        subject.partition(".shape[")[0])
    apart = (f"mark it dynamic before the first call, which keeps the two apart: {_mark(subject)}" if can_be_marked else
             "let them differ in the first call")
    return (f"it had the value of `{at.fixed.same_as[subject]}`, which is fixed (at {place}), so torch took both for "
            f"one size; {apart}")


def _fixed_in_one_version(subject: str, place: str, at: Circumstances) -> str:
    """Return advice on a size that one version holds for one value of, and another leaves open.

    Torch opens a size when it has changed. What is computed with it and with a size that has not fixes it again; marked
    alone it would be an error of torch's.
    """
    others = at.fixed.open_elsewhere[subject]
    if not others:
        why = f"what is computed with it in one version fixes it (at {place}); another leaves it open. "
        change_it = f"Mark it dynamic before the first call, and torch names what fixes it: {_mark(subject)}"
    else:
        have, both = ("has", "both") if len(others) == 1 else ("have", "them")
        why = (f"{_listed(others)} {have} the same value and had not changed yet, so what is computed with {both} "
               f"fixes it (at {place}); another version leaves it open. ")
        marks = ", ".join(map(_mark, (subject, *others)))
        change_it = f"Mark {_all(1 + len(others))} dynamic before the first call: {marks}"
    made_in = at.arguments.made_in
    return why + (f"Compile `{made_in}` with `dynamic=True`" if made_in else change_it)


def on_equated_size(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a size of which each version holds an expression for one number."""
    if change.subject not in at.open.equated:
        return None
    expression, place = at.open.equated[change.subject]
    return (f"a version serves one value of `{expression}`, which is asked for at {place}, whether or not the size is "
            f"marked as dynamic; call the function with fewer sizes, or allow more versions: {LIMIT}")


def on_open_size(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a size that versions can leave open."""
    size = _size_of(change)
    if not size or "`" in change.subject or not all(
            expected.isdigit() and int(expected) > 1 for expected in change.was):
        return None
    version, made_in = at.version, at.arguments.made_in
    if version.fixed_along and change.subject not in version.fixed_along:
        other, place = next(iter(version.fixed_along.items()))
        return (f"`{other}` changes along with it, and what is computed with that fixes it (at {place}), so each value "
                f"of that has a version of its own, whether or not this one is open; call the function with fewer "
                f"values, or allow more versions: {LIMIT}")
    known = at.open.ranges.get(change.subject, "") or "many sizes"
    if change.subject in at.open.told_apart:
        known = f"{at.open.ranges.get(change.subject) or 'all sizes'} {ONE_OUTCOME}"
    mark = _mark(change.subject)
    if version.differs:
        known = f"{known}, where nothing else differs"
    if at.all_static:
        return ("`torch.compile` was told `dynamic=False`, so each size has a version of its own; leave that out, and "
                f"the second version serves {known}, unless what is computed with the size fixes it")
    breaks = f"; but the version that has it open breaks at {version.breaks_at}" if version.breaks_at else ""
    is_tied = change.subject in at.open.tied
    if made_in:
        outside = "" if version.along or size["tensor"] not in at.arguments.made_outside or is_tied else (
            f"; or mark it before the first call of that: {mark}")
        return f"compile `{made_in}` with `dynamic=True`, and one version serves {known}{outside}{breaks}"
    if not DOTTED.fullmatch(size["tensor"]) or is_tied:
        # (An item of an argument, which may not be there before the first call; or a mark that would be an error.)
        return f"compile the function with `dynamic=True`, and one version serves {known}{breaks}"
    if version.along:
        marks = ", ".join((mark, *map(_mark, version.along)))
        return (f"mark {_all(1 + len(version.along))} dynamic before the first call, since one alone may be fixed by "
                f"the {'other' if len(version.along) == 1 else 'others'}, and one version serves {known}: "
                f"{marks}{breaks}")
    return f"mark it dynamic before the first call, and one version serves {known}: {mark}{breaks}"


def on_open_range(change: ValueChange, at: Circumstances) -> RecompileAdvice | str:
    """Return advice on a size or number that each version leaves open within a range."""
    if ".shape[" not in change.subject:
        return RecompileAdvice(_NUMBERS_APART, is_remedy=False)
    place = at.open.bounded_by_torch.get(change.subject, "")
    return _APART_IN_TORCH.format(place) if place else _SIZES_APART


def on_condition(change: ValueChange, at: Circumstances) -> RecompileAdvice | str | None:
    """Return advice on a condition on sizes or open numbers, or on two names for one tensor."""
    if re.fullmatch(r"[\w.]+ is [\w.]+", change.subject):
        return "one tensor under two names has a version of its own; pass a copy: `.clone()`"
    is_equation = re.fullmatch(r"\S+\.shape\[\d+\] == \S+\.shape\[\d+\]", change.subject)
    if is_equation and change.subject in at.failed.taken_for_one:
        # (The sizes of a view have symbols with its base.)
        marks = [_mark(size) for size in change.subject.split(" == ") if not at.arguments.made_in
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
    condition = at.failed.generated_apart.get(change.subject, "")
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
