"""Advice on a recompile: a table of changes between two calls, the required facts, and a true sentence.

A row names the event, the facts that it requires, and the sentence. The first row of an event whose facts are present
gives the advice; without such a row there is none. The facts come from the records (:class:`Facts`): no row reads the
user's files. A sentence says what versions are for, as their guards have it, not what a value needs: another version
may not look at it::

    number   fixed at m.py:8           "what is computed with it, or tested of it, at `m.py:8` fixes it: ..."
    number   open in a later version   "a later version leaves it open; whether `dynamic=True` ..."
    number                             "each version that looks at it is for one of its values"
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from ..model.guards import is_layout
from ..records.model import SourceLocation
from ..torch_text.guard_failures import (
    A_FUNCTION,
    MARKED,
    SAME_CODE,
    SAME_OBJECT,
    are_numbers,
    is_autocast,
    is_range,
    number,
    object_type,
)
from ..torch_text.parsed import literal, parsed_expression
from ..values import frozen
from .model import Advice, Edit
from .source import Sources, called, is_own

#: Rules of what there is to do about a recompile; those that ``depyf fix`` tries are below.
DYNAMIC, MODULE, PARAMETER, ARGUMENT = "dynamic", "module", "parameter", "argument"
#: What a version expects of an argument whose ``_base``, the tensor that it is a view of, it looks at.
A_VIEW = "a view of another tensor"


@frozen
class ValueChange:
    """What changed at a recompile."""

    subject: str  # in the user's words, `"x.shape[0]"`
    was: tuple[str, ...]  # what the versions expected
    now: str  # what the call had
    lasts: bool = True  # another call can have the value that a version expects; no bound method can
    keywords: tuple[str, ...] = ()  # names of keyword arguments that were given or left out
    owner: str = ""  # what torch says it belongs to (`depyf.records.model.GuardFailure.owner`)
    of_global: bool = False  # it is reached from a global name


@frozen
class Facts:
    """The facts about a change that the records contain."""

    fixed_at: str = ""  # the place, as Markdown, of a line that fixes the size or number in some version; `""` for none
    is_open: bool = False  # a version leaves the size or number open
    is_equated: bool = False  # an equation, or a greatest value, leaves each of these some of its values
    dynamic: str = ""  # the argument of `torch.compile`, as Python; `""` where it is not set
    serves_small: bool = False  # one of these serves size 0 or 1, too
    of_parameter: bool = False  # the size is one of an `nn.Parameter`
    numbers: tuple[int, ...] = ()  # the whole numbers or lengths that versions are for, in their order
    ranges: str = ""  # those that versions leave open, where they are several and each has a greatest value


#: Global state of torch's.
STATES = frozenset({
    "torch.is_grad_enabled()", "allow tf32", "torch.get_default_dtype()", "torch.get_num_threads()",
    "torch.are_deterministic_algorithms_enabled()", "torch.is_deterministic_algorithms_warn_only_enabled()",
    "the default device", "the hooks for saved tensors", "the level of forward-mode differentiation",
    "the transforms of torch.func that are on", "the modes of __torch_function__ that are on"})
#: Numbers for which torch has no symbol: a version that meets one first is for it alone.
_NO_SYMBOL = frozenset({"inf", "-inf", "nan"})
#: What a version expects, and what the call had, of something that torch no longer finds where it was.
PRESENCE = ("there", "missing")


def event_of(change: ValueChange) -> str:
    """Return what kind of thing changed, the name of an event of the table; ``""`` for none of these."""
    values = (object_type(change.now) or change.now, *change.was)
    is_there = set(values) <= set(PRESENCE)  # (it came, or went)
    first = change.subject.partition(", ")[0]
    subject = parsed_expression(change.subject)
    for event, holds in (("bound-method", not change.lasts), ("marks", first.startswith(MARKED)),
                         ("state", is_autocast(first) or first in STATES), ("keywords", bool(change.keywords))):
        if holds:
            return event
    match subject:
        case ast.Subscript(ast.Attribute(_, "shape")):
            return "size"
        case ast.Call(ast.Attribute(_, "stride")):
            return "layout"
        case ast.Call(ast.Name("len"), [_]):
            return "length"
        case ast.Compare(ast.Constant(), [ast.In()]):
            return "key"
        case ast.BinOp() | ast.UnaryOp(ast.USub()) | ast.Call(ast.Name("min" | "max" | "abs")):
            return "arithmetic"
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp():
            return "condition"
        case ast.Subscript(_, ast.Constant()) if is_there:
            return "key"
        case ast.Call(ast.Name("next"), [_]) | ast.Attribute(_, "ndim"):
            return "constant"
    if not change.was or not change.was[0]:
        return ""
    texts = [parsed_expression(each) for each in values if each]
    events = (
        ("view", A_VIEW in values),
        ("layout", any(map(is_layout, values))),
        ("key", is_there and isinstance(subject, ast.Name)),
        ("none", not {"None", "NoneType"}.isdisjoint(values[:2])),
        ("function", SAME_CODE in values or A_FUNCTION in values),
        ("attribute", PRESENCE[0] in change.was),
        ("object", values[1] == SAME_OBJECT),
        ("constant", set(values) <= {"True", "False"} or isinstance(subject, ast.Call)
         and ast.unparse(subject.func) == "type"),
        ("constant", not _NO_SYMBOL.isdisjoint(values[:2])),
        ("number", number(change.now) is not None),
        ("constant", bool(object_type(change.now)) or all(isinstance(each, ast.Attribute) for each in texts) or any(
            isinstance(each, ast.Set) or isinstance(getattr(each, "value", None), (str, bytes)) for each in texts)),
    )
    return next((event for event, holds in events if holds), "")


# --- facts of several rows ------------------------------------------------------------------------------------------

_Fact = Callable[[ValueChange, Facts], bool]


def _is_opened(change: ValueChange, at: Facts) -> bool:
    """Return whether a version leaves open what changed, for numbers of the type that it has now."""
    was, now = (number(each) for each in ("".join(change.was[:1]), change.now))
    return at.is_open and not at.fixed_at and not object_type(change.now) and (
        was is None or now is None or type(was) is type(now))


def _has_three(change: ValueChange, at: Facts) -> bool:
    """Return whether versions are for three numbers: one that is open from its second value on serves the third."""
    return len(set(at.numbers)) > 2


# --- the table ------------------------------------------------------------------------------------------------------

@frozen
class Row:
    """What is true of a change."""

    events: str  # what changed (`event_of`), names with a space between
    text: str  # the sentence, with fields of `Facts` in braces
    facts: _Fact = lambda change, at: True  # what has to be known of it
    tries: str = ""  # the rule of the changes that try what it names; without one it names nothing to do


_LOOKING = "each version that looks at it is for "
_WITH = _LOOKING + "calls with it, or for calls without it"
_FIXES = "computed with it{equal}, or tested of it, at {fixed_at} fixes it"
_FOR_SOME = "a version is for some of its values only, and calls have others"
_OPENED = "a later version leaves it open"
_NEEDED = ("open from its second value on, where nothing needs its value while torch compiles (as an index, a key, a "
           "text, a `range` or an `if` does)")

ROWS = (
    Row("bound-method", "it is another object at each call, so that no version serves a second call"),
    # Sizes and numbers.
    Row("size", "torch compiles a version of its own for size 0 and for size 1",
        lambda change, at: at.dynamic != "False" and not at.serves_small and (set(change.was) <= {"0", "1"} or (
            not at.fixed_at or at.is_open) and change.now in ("0", "1"))),
    Row("size", "torch keeps the sizes of parameters fixed, whatever is marked or passed as `dynamic`, unless "
        "`torch._dynamo.config.force_parameter_static_shapes` is false (for parameters of modules that are called, "
        "`torch._dynamo.config.force_nn_module_property_static_shapes`, too)",
        lambda change, at: at.of_parameter and not at.is_open and at.dynamic != "False", PARAMETER),
    Row("size number",
        f"some versions leave it open; others are for one value each, one of them because what is {_FIXES}",
        lambda change, at: at.is_open and bool(at.fixed_at)),
    Row("size number", f"what is {_FIXES}: that version is for one value alone", lambda change, at: bool(at.fixed_at)),
    Row("size", "`dynamic=False` is set, so a version is for one size",
        lambda change, at: at.dynamic == "False" and not at.is_open),
    Row("size number", "versions that leave it open are for a range of its values each: {ranges}",
        lambda change, at: _is_opened(change, at) and bool(at.ranges)),
    Row("size number", _FOR_SOME, lambda change, at: at.is_equated or any(map(is_range, change.was[:1]))),
    Row("arithmetic", _FOR_SOME),
    Row("size number length", _OPENED + "; whether `dynamic=True` in `torch.compile` spares a version, a trial shows "
        "(`depyf fix`)", lambda change, at: _is_opened(change, at) and not at.dynamic, DYNAMIC),
    Row("size number length constant", _OPENED, _is_opened),
    Row("number", "torch fixes a whole number that it reaches through a module; with "
        f"`torch._dynamo.config.allow_unspec_int_on_nn_module = True` it leaves this one {_NEEDED}",
        lambda change, at: change.owner == "module" and not change.of_global and _has_three(change, at),
        MODULE),
    Row("number", "torch fixes a whole number that it reaches from a global name; one that is an argument of the "
        f"function it leaves {_NEEDED}", lambda change, at: change.of_global and _has_three(change, at), ARGUMENT),
    Row("key keywords", _WITH),
    Row("none", _WITH, lambda change, at: all(literal(each) in (..., None) for each in (change.now, *change.was))),
    Row("number constant none", _LOOKING + "one of its values, or for one type"),
    Row("condition", _LOOKING + "one outcome of it"),
    Row("object", "a version that compares the object itself serves no call with another one"),
    # What is there or not, what it is.
    Row("attribute", "a version reads it, or an attribute of it, from where that was when torch compiled the version"),
    Row("function", _LOOKING + "one function's code (which functions that one `def` or `lambda` makes share), or for "
        "one object that is called"),
    Row("length", _LOOKING + "a greater length than the one before ({numbers})",
        lambda change, at: _has_three(change, at) and list(at.numbers) == sorted(set(at.numbers))),
    Row("length", _LOOKING + "one length, or for whether there is any"),
    # What a tensor is like, and the state of torch.
    Row("view", _LOOKING + "views of other tensors, or for tensors that are no views"),
    Row("layout", _LOOKING + "one layout, or for some strides of it"),
    Row("marks", "a version serves calls with the same marks or fewer"),
    Row("state", "a version is for one state of torch when the function is called"),
)


def on_change(change: ValueChange, at: Facts) -> Advice | None:
    """Return what is true of a change, as a clause, code in backticks; ``None`` where no row's facts are present."""
    event = event_of(change)
    if not event and not change.now and at.is_open and are_numbers(change.was):
        event = "number"  # (what it is now torch does not say)
    row = next((row for row in ROWS if event in row.events.split() and row.facts(change, at)), None)
    if row is None:
        return None
    numbers = " → ".join(map(str, at.numbers[:4])) + (" → ..." if len(at.numbers) > 4 else "")
    equal = " (or with a size that was equal to it)" * (event == "size")  # (torch gives equal sizes one symbol)
    text = row.text.format(fixed_at=at.fixed_at, numbers=numbers, ranges=at.ranges, equal=equal)
    return Advice(row.tries or "recompile", text, is_change=bool(row.tries))


# --- the changes ----------------------------------------------------------------------------------------------------

#: The settings by which torch leaves a value open, in the order to be tried, by the kind of its owner.
_SETTINGS = {
    MODULE: (("torch._dynamo.config.allow_unspec_int_on_nn_module = True",),),
    PARAMETER: (("torch._dynamo.config.force_parameter_static_shapes = False",),
                  ("torch._dynamo.config.force_parameter_static_shapes = False",
                   "torch._dynamo.config.force_nn_module_property_static_shapes = False")),
}


def proposals(
    change: ValueChange, location: SourceLocation | None, sources: Sources, program: str = ""
) -> Iterator[Advice]:
    """Yield the changes to try for a recompile of the function at a location, the most local first.

    A trial decides which of them help. The ``program`` is the file that may compile a library's function.
    """
    if location is None or not change.lasts:
        return
    if ".shape[" in change.subject or number(change.now) is not None:
        yield from _dynamic(location, sources, program)
    if isinstance(number(change.now), int) and not change.of_global:
        for settings in _SETTINGS.get(change.owner, ()):
            yield Advice(change.owner, f"set {' and '.join(f'`{line}`' for line in settings)}",
                         f"torch fixes such numbers of a {change.owner}; then it opens one that changes",
                         "what is compiled for all numbers can be slower than for one", settings=settings)


def _dynamic(location: SourceLocation, sources: Sources, program: str) -> Iterator[Advice]:
    """Yield ``dynamic=True`` at the ``torch.compile`` that made a function, or at each that may have."""
    if not is_own(location.filename):
        location = SourceLocation(program, 0)
    tree = sources.tree(location.filename)
    if tree is None:
        return
    text = sources.text(location.filename)
    for node in _compiled_at(tree, location.line) or [
            node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_compile(node)]:
        old = ast.get_source_segment(text, node) or ""
        match [each for each in getattr(node, "keywords", ()) if each.arg in ("dynamic", None)]:
            case []:
                arguments = old[:-1].rstrip().removesuffix(",")
                new = f"{old}(dynamic=True)" if not isinstance(node, ast.Call) else (
                    f"{arguments}{', ' if node.args or node.keywords else ''}dynamic=True)")
            case [ast.keyword("dynamic", ast.Constant(False)) as given]:
                new = old.replace(ast.get_source_segment(text, given) or "", "dynamic=True")
            case _:
                continue
        last = node.end_lineno or node.lineno
        lines = "\n".join(text.splitlines()[node.lineno - 1 : last]).replace(old, new, 1).splitlines()
        yield Advice(DYNAMIC, f"write `{' '.join(new.split())}`",
                     "the first version then serves many sizes and numbers",
                     "what is compiled for all sizes can be slower than for one",
                     (Edit(location.filename, node.lineno, last, tuple(lines)),))


def _compiled_at(tree: ast.Module, line: int) -> list[ast.expr]:
    """Return the decorators by which the function or class at a line is compiled."""
    return [decorator for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))
            for decorator in node.decorator_list
            if is_compile(decorator) and min(node.lineno, decorator.lineno) <= line <= (node.end_lineno or 0)]


def is_compile(node: ast.expr) -> bool:
    """Return whether an expression is a call of ``torch.compile``, or the function itself as a decorator."""
    if isinstance(node, ast.Call):
        of = ast.unparse(node.func)
        of_module = not node.args and bool(node.keywords) and of != "re.compile"  # `model.compile(backend=...)`
        return called(node) == "compile" and (of == "torch.compile" or "." in of and of_module)
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "torch.compile"
