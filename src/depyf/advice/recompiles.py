"""Advice on a recompile: a table of changes between two calls, the required facts, and a sentence.

A row names the event, the facts that it requires, and the sentence. The first row of an event whose facts are present
gives the advice; without such a row there is none. The facts come from the records (:class:`Facts`): no row reads the
user's files::

    number   fixed at m.py:8           "what is computed with it at `m.py:8` needs its value ..."
    number   open in a later version   "torch leaves it open from its second value on; `dynamic=True` ..."
    number                             "each of its values has a version of its own"
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from ..model.guards import is_layout
from ..torch_text.guard_failures import (
    A_FUNCTION,
    SAME_CODE,
    SAME_OBJECT,
    are_numbers,
    is_autocast,
    is_range,
    number,
    object_type,
)
from ..torch_text.parsed import parsed_expression
from .source import is_only_key

#: What a version expects of an argument whose ``_base``, the tensor that it is a view of, it looks at.
A_VIEW = "a view of another tensor"


@dataclass(frozen=True)
class ValueChange:
    """What changed at a recompile.

    Attributes:
        subject: in the user's words, ``"x.shape[0]"``.
        was, now: what the versions expected, and what the call had.
        lasts: another call can have the value that a version expects; no bound method can.
        keywords: names of keyword arguments that were given or left out.
        cause: the user's line because of which torch guards it.
        owner: what torch says it belongs to (:attr:`depyf.records.model.GuardFailure.owner`).
        of_global: it is reached from a global name.
    """

    subject: str
    was: tuple[str, ...]
    now: str
    lasts: bool = True
    keywords: tuple[str, ...] = ()
    cause: str = ""
    owner: str = ""
    of_global: bool = False


@dataclass(frozen=True)
class RecompileAdvice:
    """What keeps torch from compiling again.

    Attributes:
        text: a clause, code in backticks.
        is_remedy: it says what to do, and not only that there have to be so many versions.
    """

    text: str
    is_remedy: bool = True


@dataclass(frozen=True)
class Facts:
    """The facts about a change that the records contain.

    Attributes:
        fixed_at: the place, as Markdown, of a line that fixes the size or number in some version; ``""`` for none.
        is_fixed_once: versions fix it at no other value, so that nothing says whether the line needs its value, or only
            tests whether it is this one.
        fixed_with: other sizes, as Markdown, that torch took for the same one there, as they were equal.
        is_open: a version leaves the size or number open.
        spares: a version that leaves it open from the first call on would be that version: the first value has the
            same type and the same outcomes in torch's tests; ``None`` where that is not known.
        broken_at: the place, as Markdown, where the version that leaves it open breaks the graph, and no earlier one.
        others: what else the versions differ in and the new one does not leave open, as Markdown; ``""`` for nothing.
        differs_in_more: of a layout: the versions differ in something else, too.
        equal_at_first: another size of the arguments had the same value, so that torch takes both for one if both are
            open in the first version.
        dynamic: the argument of ``torch.compile``, as Python; ``""`` where it is not set.
        of_parameter: the size is one of an ``nn.Parameter``.
        limit: the function reached the recompile limit.
        is_duck: torch asks for the equality since the sizes were equal when it compiled, and no line compares them.
        set_at: the places, as Markdown, of calls in the program that set the global state that changed.
        static_at: those of calls that mark sizes as static.
        lengths: the lengths that versions are for, in their order.
        values: how many values of it the versions of the function met.
        is_moved: it is no longer where an earlier version read it: a module is in another place than ``None``.
        is_set: the code of a version sets it.
        is_own: it is a variable of the function, which has no other name before its call.
        is_unread: some version does not look at it.
        is_computed_with: another version was needed for what torch computes of it, too.
    """

    fixed_at: str = ""
    is_fixed_once: bool = False
    fixed_with: str = ""
    is_open: bool = False
    spares: bool | None = True
    broken_at: str = ""
    others: str = ""
    differs_in_more: bool = False
    equal_at_first: bool = False
    dynamic: str = ""
    of_parameter: bool = False
    limit: bool = False
    is_duck: bool = False
    set_at: str = ""
    static_at: str = ""
    lengths: tuple[int, ...] = ()
    values: int = 0
    is_moved: bool = False
    is_set: bool = False
    is_own: bool = False
    is_unread: bool = False
    is_computed_with: bool = False


#: Global state of torch's, with the names of what sets it.
STATES = {
    "torch.is_grad_enabled()": ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode"),
    "allow tf32": ("set_float32_matmul_precision",),
    "torch.get_default_dtype()": ("set_default_dtype",),
    "torch.get_num_threads()": ("set_num_threads",),
    "torch.are_deterministic_algorithms_enabled()": ("use_deterministic_algorithms",),
    "torch.is_deterministic_algorithms_warn_only_enabled()": ("use_deterministic_algorithms",),
    "the default device": ("set_default_device",),
    "the hooks for saved tensors": ("saved_tensors_hooks", "save_on_cpu"),
    "the level of forward-mode differentiation": ("dual_level",),
    "the transforms of torch.func that are on": ("vmap", "grad", "vjp", "jvp"),
    "the modes of __torch_function__ that are on": (),
}
_OF_TENSOR = {"dtype": "dtype", "requires_grad": "gradients", "ndim": "rank", "device": "device", "grad": "gradient"}
#: What a version expects, and what the call had, of something that torch no longer finds where it was.
PRESENCE = ("there", "missing")


def setters_of(subject: str) -> tuple[str, ...]:
    """Return the names of torch's functions that set the global state which changed; none for another subject."""
    return tuple(name for each in subject.split(", ")
                 for name in (("autocast",) if is_autocast(each) else STATES.get(each, ())))


def event_of(change: ValueChange) -> str:
    """Return what kind of thing changed, the name of an event of the table; ``""`` for none of these."""
    values = (object_type(change.now) or change.now, *change.was)
    first = change.subject.partition(", ")[0]
    if not change.lasts:
        return "bound-method"
    if is_autocast(first) or first in STATES:
        return "state"
    by_subject = _by_subject(change.subject, are_numbers(change.was), set(values) <= set(PRESENCE))
    return ("keywords" if change.keywords else by_subject) or _by_values(change, values)


def _by_subject(subject: str, is_number: bool, is_there: bool) -> str:
    """Return the event for the form of a subject: ``size`` for ``x.shape[0]``.

    Args:
        subject: what changed.
        is_number: what the versions expected are numbers, of which torch may fix one or test it.
        is_there: from being there to being missing, or back.
    """
    match parsed_expression(subject):
        case ast.Subscript(ast.Attribute(_, "shape")):
            return "size"
        case ast.Call(ast.Attribute(_, "stride")):
            return "layout"
        case ast.Call(ast.Attribute(_, "is_inference")):
            return "inference"
        case ast.Call(ast.Name("len"), [of]):
            return "packed" if isinstance(of, ast.Name) and of.id == "kwargs" else "length"
        case ast.Call(ast.Name("next"), [_]):
            return "iterator"
        case ast.Compare(ast.Constant(), [ast.In()]):
            return "key"
        case ast.Compare(_, [ast.Is()]):
            return "alias"
        case ast.BinOp() | ast.UnaryOp(ast.USub()) if is_number:
            return "computed"
        case ast.Compare() | ast.BinOp() | ast.UnaryOp():
            return "condition"
        case ast.Subscript(_, ast.Constant()) if is_there:
            return "key"
        case ast.Attribute(_, "training"):
            return "training"
        case ast.Attribute(_, name) if name in _OF_TENSOR:
            return name
    return ""


def _by_values(change: ValueChange, values: tuple[str, ...]) -> str:
    """Return the event for the values: ``number`` where it was 3 and is 4."""
    if not change.was or not change.was[0]:
        return ""
    subject = parsed_expression(change.subject)
    texts = [parsed_expression(each) for each in values if each]
    events = (
        ("view", A_VIEW in values),
        ("layout", any(map(is_layout, values))),
        ("key", set(values) <= set(PRESENCE) and isinstance(subject, ast.Name)),
        ("none", not {"None", "NoneType"}.isdisjoint(values[:2])),
        ("function", SAME_CODE in values or A_FUNCTION in values),
        ("type", isinstance(subject, ast.Call) and ast.unparse(subject.func) == "type"),
        ("object", values[-1] == SAME_OBJECT),
        ("attribute", set(values) <= set(PRESENCE)),
        ("bool", set(values) <= {"True", "False"}),
        ("number", number(change.now) is not None),
        ("type", bool(object_type(change.now))),
        ("string", any(isinstance(each, ast.Constant) and isinstance(each.value, (str, bytes)) for each in texts)),
        ("set", any(isinstance(each, ast.Set) for each in texts)),
        ("constant", all(isinstance(each, ast.Attribute) for each in texts)),
    )
    return next((event for event, holds in events if holds), "")


# --- facts of several rows ------------------------------------------------------------------------------------------

_Fact = Callable[[ValueChange, Facts], bool]


def _is_fixed(change: ValueChange, at: Facts) -> bool:
    return bool(at.fixed_at) and not at.is_open


def _is_of_parameter(change: ValueChange, at: Facts) -> bool:
    return at.of_parameter and not at.is_open and at.dynamic != "False"


def _costs_versions(change: ValueChange, at: Facts) -> bool:
    """Return whether `dynamic=False` costs versions: from the third value on."""
    return at.dynamic == "False" and at.values > 2


def _is_opened(change: ValueChange, at: Facts) -> bool:
    return at.is_open and not at.fixed_at


def _can_be_opened_first(change: ValueChange, at: Facts) -> bool:
    return _is_opened(change, at) and at.spares is not False and not (
        at.dynamic or at.others or at.equal_at_first or _is_made_number(change, at))


def _is_key(change: ValueChange, at: Facts) -> bool:
    return is_only_key(change.subject, change.cause)


def _grows(change: ValueChange, at: Facts) -> bool:
    """Return whether each version is for a greater length than the one before, of three versions at least."""
    return not at.is_own and len(at.lengths) > 2 and all(one < other for one, other in zip(at.lengths, at.lengths[1:]))


def _is_made_number(change: ValueChange, at: Facts) -> bool:
    """Return whether a number comes from before a break: with ``dynamic=True`` torch traces other code with symbols."""
    return at.is_own and event_of(change) == "number"


def _is_of_variable(change: ValueChange, at: Facts) -> bool:
    """Return whether an iterator is a variable or an attribute, and no loop's own."""
    match parsed_expression(change.subject):
        case ast.Call(_, [ast.Name() | ast.Attribute()]):
            return True
    return False


def _all(*facts: _Fact) -> _Fact:
    return lambda change, at: all(fact(change, at) for fact in facts)


# --- the table ------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Row:
    """What is true of a change.

    Attributes:
        events: what changed (:func:`event_of`), names with a space between.
        facts: what has to be known of it.
        text: the sentence, with fields of :class:`Facts` and of the change in braces.
        is_remedy: it says what to do.
        may_raise: it says, too, to raise the recompile limit, where the function reached that for this change alone.
    """

    events: str
    facts: _Fact
    text: str
    is_remedy: bool = False
    may_raise: bool = False


def _always(change: ValueChange, at: Facts) -> bool:
    return True


_LIMIT = "`torch._dynamo.config.recompile_limit`"
_RAISE = (f"; where values come back in later calls, set {_LIMIT} above the number of versions that all calls need "
          "together (a value that does not come back costs a compilation each time)")
_EACH = "calls with it and calls without it have a version each"
_OPENED = "torch leaves it open from its second value on"

ROWS = (
    Row("bound-method", _always, "it is another object at each call, so that no version serves a second call; make "
        "the call of this method a statement of its own whose arguments are computed before it", True),
    # Sizes and numbers.
    Row("size", lambda change, at: (not at.fixed_at or at.is_open) and (
        change.now in ("0", "1") or set(change.was) <= {"0", "1"}), "torch compiles a version of its "
        "own for size 0 and for size 1, one each"),
    Row("size", lambda change, at: _is_of_parameter(change, at) and at.values < 3, "torch keeps the "
        "sizes of parameters fixed, so each has a version of its own"),
    Row("size", lambda change, at: _is_of_parameter(change, at), "torch keeps the sizes of "
        "parameters fixed, whatever is marked or passed as `dynamic`; with "
        "`torch._dynamo.config.force_parameter_static_shapes = False` (for parameters of modules that are called, "
        "`torch._dynamo.config.force_nn_module_property_static_shapes = False`, too) it leaves those open that changed "
        "and that nothing fixes", True),
    Row("size", _all(_is_fixed, lambda change, at: bool(at.fixed_with)), "torch took it for the same size as "
        "{fixed_with}, as they were equal when it compiled; what is computed with one of them at {fixed_at} needs its "
        "value"),
    Row("size number", _all(_is_fixed, lambda change, at: at.is_fixed_once), "what is computed with it, or tested of "
        "it, at {fixed_at} fixes it: that version is for this value alone"),
    Row("size number", _is_fixed, "what is computed with it at {fixed_at} needs its value while torch compiles, so "
        "each value has a version of its own, also with `dynamic=True`", may_raise=True),
    Row("size number", lambda change, at: bool(
        at.is_open and at.fixed_at and not at.dynamic and not _is_made_number(change, at)), _OPENED + ", but for "
        "versions in which what is computed with it at {fixed_at} fixes it; with `dynamic=True` in `torch.compile` the "
        "first version leaves it open, too, if nothing fixes it there", True),
    Row("size number", lambda change, at: bool(at.is_open and at.fixed_at), "some versions leave it open; in others "
        "what is computed with it at {fixed_at} fixes it, and those are for one value each"),
    Row("size", _costs_versions, "`dynamic=False` is set, so each size has a version of its own; without it torch "
        "leaves a size open that has changed, unless it is one of a parameter, or what is computed with it fixes it",
        True),
    Row("size", lambda change, at: at.dynamic == "False",
        "`dynamic=False` is set, so each size has a version of its own"),
    Row("size", lambda change, at: bool(at.static_at) and not at.is_open, "no version leaves it open; calls of the "
        "program that mark sizes as static: {static_at}"),
    Row("size number", lambda change, at: not at.fixed_at and any(map(is_range, change.was[:1])), "a condition on it "
        "that torch tested while it compiled separates its values, and each outcome has a version of its own: the "
        "program asks for both"),
    Row("size number", _all(_is_opened, lambda change, at: bool(at.broken_at)), _OPENED + "; the version that does "
        "breaks the graph at {broken_at}, where an earlier one does not"),
    Row("size number", _all(_can_be_opened_first, lambda change, at: bool(at.spares)), _OPENED + "; with "
        "`dynamic=True` in `torch.compile` the first version does, which spares one version", True),
    Row("size number", _can_be_opened_first, _OPENED + "; with `dynamic=True` in `torch.compile` the first version "
        "does, which spares one version if the conditions that torch tests on it come out the same for the first "
        "value", True),
    Row("size number", _all(_is_opened, lambda change, at: bool(at.others)), _OPENED + ", so it is the reason for one "
        "version; but the versions differ in {others}, too"),
    Row("size number", _all(_is_opened, lambda change, at: at.is_computed_with), _OPENED + "; what torch computes or "
        "tests of it needs further versions"),
    Row("size number", _is_opened, _OPENED + ", so it is the reason for one version in all"),
    Row("number", lambda change, at: change.subject.endswith("param_groups[0]['lr']"), "each of its values has a "
        "version of its own; an optimizer made with a tensor, `lr=torch.tensor(...)`, has one for all (as float32 the "
        "rate is rounded)", True),
    Row("number", _is_key, "it is a key or an index at {cause}, "
        "which needs its value, so each value has a version of its own", may_raise=True),
    Row("number", lambda change, at: change.owner == "module" and not change.of_global,
        "torch fixes whole numbers of modules; with "
        "`torch._dynamo.config.allow_unspec_int_on_nn_module = True` it leaves this one open from its second value on, "
        "where nothing needs its value while torch compiles (as an index, a key, a text or a `range` does)", True),
    Row("number", lambda change, at: at.is_set and not at.is_open and at.values > 2,
        "the compiled function changes it itself, so that each call needs another version; "
        "where nothing else in the function reads it, do that in code that is not compiled", True),
    Row("number", lambda change, at: change.of_global and isinstance(number(change.now), int),
        "torch fixes a whole number that it reaches from a global name, so "
        "each value has a version of its own; as an argument of the function torch leaves it open from its second "
        "value on, where nothing needs its value while torch compiles", True),
    Row("number", _costs_versions, "`dynamic=False` is set, so each number has a version of its own; without it "
        "torch leaves one open that has changed, where nothing needs its value while torch compiles", True),
    Row("number string constant", lambda change, at: at.is_unread, "each version that looks at it is for one of "
        "its values; another one does not look at it"),
    Row("number string constant", _always, "each of its values has a version of its own", may_raise=True),
    Row("condition", lambda change, at: at.is_duck, "they were equal when it compiled, so torch took both for one "
        "size; with `torch.fx.experimental._config.use_duck_shape = False` it does not", True),
    Row("condition", _always, "the outcome of this condition is a part of the version, so each outcome that calls "
        "have needs one: the program, or what torch computes for it, asks for both"),
    Row("bool", _always, "each of its two values has a version"),
    # What is there or not, what it is.
    Row("none", lambda change, at: at.is_moved, "a module or parameter is in another place of its owner than a `None` "
        "that was assigned before it, so torch needs another version where it becomes `None` again; with "
        "`register_module(name, None)` (or `register_parameter`) in `__init__` in place of the assignment of `None` it "
        "does not", True),
    Row("none key keywords", _always, _EACH),
    Row("packed", _always, "calls with another number of keyword arguments have a version of their own"),
    Row("attribute", _always, "torch reads it from where it was when the version was compiled; assigned as a module, "
        "parameter or buffer it is elsewhere, and deleted it is nowhere: each of these has a version"),
    Row("type", _always, "each type has a version of its own"),
    Row("function", _always, "each function's code has a version of its own (functions that one `def` or `lambda` "
        "makes share it), and so has what is called and is no Python function"),
    Row("object", _always, "the version is for that object alone; where an equal one is made anew for each call, "
        "make it once and pass the same one", True),
    Row("length", _grows, "each length has a version of its own, "
        "and in this run each is greater than the one before ({lengths}); where each call makes it longer, no version "
        "serves the next call: do that in code that is not compiled, and pass what the function reads of it", True),
    Row("length", lambda change, at: len(set(at.lengths)) < 2 and "0" in (change.now, *change.was), "when it is empty "
        "there is a version of its own, one in all"),
    Row("length", lambda change, at: not all(each.isdigit() for each in change.was), "a version is for several "
        "lengths: a condition on it tells them apart"),
    Row("length", _always, "each length that calls have needs a version of its own", may_raise=True),
    Row("iterator", _is_of_variable, "each place of the iterator has a version of its own; take its next value in code "
        "that is not compiled, and pass that", True),
    Row("iterator", _always, "each place of the iterator has a version of its own"),
    Row("set", _always, "each content of the set has a version of its own"),
    Row("view", _always, "guards look at the tensor that it is a view of, so views and other tensors have a version "
        "each"),
    Row("alias", _always, "calls in which two names are one object have a version of their own"),
    # What a tensor is like, and the state of torch.
    Row("layout", lambda change, at: at.differs_in_more, "each layout has a version of its own; here the "
        "versions differ in more than that"),
    Row("layout", _always, "each layout has a version of its own; where the function does not write into this tensor, "
        "`.contiguous()` before the call makes them one, for a copy of what is not contiguous", True),
    Row("dtype ndim device", _always, "each has a version of its own: what torch compiles depends on it"),
    Row("requires_grad", _always, "tensors with gradients and tensors without have a version each"),
    Row("grad", _always, "tensors that have a `.grad` and tensors that have none have a version each"),
    Row("training", _always, "training and evaluation have a version each"),
    Row("inference", _always, "tensors made in `torch.inference_mode()` and others have a version each"),
    Row("state", lambda change, at: bool(at.set_at),
        "torch looks at this state when the function is called, and each state has a "
        "version; calls of the program that set it: {set_at}"),
    Row("state", _always, "torch looks at this state when the function is called, and each state has a version"),
)


def on_change(change: ValueChange, at: Facts) -> RecompileAdvice | None:
    """Return what is true of a change; ``None`` where no row's facts are present."""
    event = event_of(change)
    if not event and not change.now and at.is_open and are_numbers(change.was):
        event = "number"  # (what it is now torch does not say)
    row = next((row for row in ROWS if event in row.events.split() and row.facts(change, at)), None)
    if row is None:
        return None
    lengths = " → ".join(map(str, at.lengths[:4])) + (" → ..." if len(at.lengths) > 4 else "")
    raised = _RAISE * (row.may_raise and at.limit and not at.others)
    text = (row.text + raised).replace("{lengths}", lengths).replace("{cause}", f"`{change.cause.strip()}`")
    for field in ("fixed_at", "fixed_with", "broken_at", "others", "set_at", "static_at"):
        text = text.replace(f"{{{field}}}", getattr(at, field))
    return RecompileAdvice(text, row.is_remedy or bool(raised))
