"""Advice on a recompile: what changed between two calls, and what keeps torch from compiling again for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field
from itertools import pairwise

from ..frozen import frozen
from ..torch_text.guard_failures import A_FUNCTION, SAME_CODE
from ..torch_text.parsed import parsed_expression
from .source import last_name, parsed_statement

#: How torch's hint on a whole number of a module begins.
_OF_MODULE = "torch.compile considers integer attributes of the nn.Module to be static"
_LIMIT = "`torch._dynamo.config.recompile_limit`"
#: What a version expects of an argument whose ``_base``, the tensor that it is a view of, it looks at.
A_VIEW = "a view of another tensor"
#: A variable, or an attribute of one.
_DOTTED = re.compile(r"[A-Za-z_][\w.]*")
#: A number as text.
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_LEARNING_RATE = re.compile(r"self\.param_groups\[(?:\d+|\.\.\.|[i-n])\]\['lr'\]")
_FLOAT = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
#: Sizes and numbers that a test of the program's tells apart.
_SIZES_APART = ("the function's own lines tell such sizes apart; make them alike before the call (pad), or allow a "
                f"version each: {_LIMIT}")
_EACH_RANGE = ("each range has a version, and the program need not change; where there are more than the limit, raise "
               f"it: {_LIMIT}")
_APART_IN_TORCH = f"what torch computes with it (at {{}}) is another computation for such sizes: {_EACH_RANGE}"
_TAKEN_FOR_ONE = ("they were the same when that version was compiled, so torch took them for one size; let them differ "
                  "in the first call{}")
_GENERATED_APART = f"the backend has other code for sizes with {{}} than for the rest: {_EACH_RANGE}"
_NUMBERS_APART = "the function's own test of it tells its values apart: each outcome has a version of its own"
_EXCEPTED = "the function's test of it tells `{}` from all others, so it has a version of its own"
_ONE_OUTCOME = "for which the function's tests of it come out the same"


@frozen
class ValueChange:
    """What changed at a recompile.

    Attributes:
        subject: in the user's words, ``"x.shape[0]"``.
        was, now: what the versions expected, and what the call had.
        lasts: another call can have the value that a version expects; no bound method can.
        keywords: names of keyword arguments that were given or left out.
        hint: torch's own.
        cause: the user's line because of which torch guards it.
        of_global: it is reached from a global name.
    """

    subject: str
    was: tuple[str, ...]
    now: str
    lasts: bool = True
    keywords: tuple[str, ...] = ()
    hint: str = ""
    cause: str = ""
    of_global: bool = False


@frozen
class RecompileAdvice:
    """What keeps torch from compiling again.

    Attributes:
        text: a clause, code in backticks.
        comes_first: no version serves the next call as long as this is not done, whatever else is.
        is_remedy: it says what to do, and not only that there have to be so many versions.
    """

    text: str
    comes_first: bool = False
    is_remedy: bool = True


@frozen
class Circumstances:
    """The circumstances that advice on a change depends on.

    Attributes:
        fixed: sizes that a version holds for one value of, with the place of the line that fixed them:
            ``{"x.shape[1]": "`conv.py:560`"}``.
        fixed_with: of these sizes, those that another version leaves open, with other sizes that are the same number
            where it is fixed: ``{"x.shape[1]": ("mask.shape[1]",)}``.
        keys: of these, numbers by which the line that fixes them looks an item up, and uses them for nothing else.
        modules: of these sizes, those that came with other sizes of the module's own tensors, with their number.
        ranges: sizes and numbers that a version leaves open, in words: ``{"x.shape[0]": "all sizes from 2 to 256"}``;
            ``""`` where nothing bounds them. The range is one that the value of the first call is in.
        along: sizes of other tensors that changed along with the one that torch names first, or are the same.
        fixed_along: sizes that changed along, too, and of which each version holds for one value, with the place of the
            line that fixed them.
        tied: sizes that torch compared with numbers that are no sizes.
        differs: the version that was compiled then differs from the earlier ones in more.
        tested: sizes on which torch tested a condition in a version that leaves them open.
        told_apart: sizes and numbers that branches of the program tell apart by more than what ``ranges`` says.
        bounded_by_torch: sizes of which torch's own operations, and no line of the program's, ask whether they are in a
            range, with the place of the line that calls one: ``{"x.shape[0]": "`net.py:5`"}``.
        same_as_fixed: sizes that a version holds for one value of since they had that of another size, which each
            version holds for the same value: ``{"x.shape[0]": "x.shape[1]"}``.
        taken_for_one: what torch tests since sizes had the same value, and no line asks for it ("duck sizing").
        excepted: numbers that tests of the program's tell from all others: ``{"t": (0.0,)}``, of ``if t != 0``.
        expected: what each version wants, in their order, of what changed, and of lengths: ``{"len(x)": ("0", "1")}``.
        generated_apart: sizes that Inductor told apart when a version did not fit this call, and no
            line of the program's, with its condition: ``{"x.shape[0]": "x.shape[0] <= 4096"}``.
        calls: lines that call a bound method with what breaks the graph among their arguments, in two steps (the method
            as ``ast`` writes it): ``{"self.log.append": "first `value = x.item()`, then `self.log.append(value)`"}``.
        packed: parameters that take all other arguments of a call, with the kind of these:
            ``{"args": "positional", "kwargs": "keyword"}``.
        given: parameters that the function's own lines add nothing to: a list among them is as long as it is passed.
        filled: variables and attributes whose items the file sets by key, and to which it adds nothing otherwise.
        set_once: attributes that only the ``__init__`` of a class of the program sets.
        python_tests: what tests of the program's read, with the place: variables and attributes in the function, and
            attributes and items of other objects in its file by their last part: ``{".top_p": "`serve.py:135`"}``.
        breaks_when_open: the place of a graph break in this version, where the earlier ones have none:
            ``"`attention.py:193`"``; ``""`` for none.
        breaks: a graph break divides the function, so that parts of it get other tensors.
        in_library: the function is called from a file that is not the user's.
        made_in: the compiled function in which its arguments may be made; ``""``: they are made outside.
        made_outside: parameters that have the same name in that function, so that they may be what it was given.
    """

    fixed: Mapping[str, str] = field(default_factory=dict)
    fixed_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keys: Set[str] = frozenset()
    modules: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, str] = field(default_factory=dict)
    along: tuple[str, ...] = ()
    fixed_along: Mapping[str, str] = field(default_factory=dict)
    tied: Set[str] = frozenset()
    differs: bool = False
    tested: Set[str] = frozenset()
    told_apart: Set[str] = frozenset()
    bounded_by_torch: Mapping[str, str] = field(default_factory=dict)
    same_as_fixed: Mapping[str, str] = field(default_factory=dict)
    taken_for_one: Set[str] = frozenset()
    excepted: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    expected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    generated_apart: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    packed: Mapping[str, str] = field(default_factory=dict)
    given: Set[str] = frozenset()
    filled: Set[str] = frozenset()
    set_once: Set[str] = frozenset()
    python_tests: Mapping[str, str] = field(default_factory=dict)
    breaks_when_open: str = ""
    breaks: bool = False
    in_library: bool = False
    made_in: str = ""
    made_outside: Set[str] = frozenset()


def on_change(change: ValueChange, at: Circumstances) -> RecompileAdvice | None:
    """Return advice on how to spare torch compiling again; ``None`` where there is none."""
    for rule in _RULES:
        advice = rule(change, at)
        if advice is not None:
            advice = RecompileAdvice(advice) if isinstance(advice, str) else advice
            return advice if advice.text else None
    return None


Rule = Callable[[ValueChange, Circumstances], "RecompileAdvice | str | None"]


# --- numbers that a module keeps ------------------------------------------------------------------------
def _number_of_module(change: ValueChange, at: Circumstances) -> RecompileAdvice | None:
    """Return advice on a whole number of a module's, which torch holds for fixed (``is_int_specialization_case``)."""
    if not change.hint.startswith(_OF_MODULE) or at.in_library:
        return None
    name = change.subject.rpartition(".")[2]
    tensor = "a tensor"
    if name.isidentifier():  # (no item of a dictionary or list)
        tensor += f', in place of the attribute: `self.register_buffer("{name}", torch.tensor(...), persistent=False)`'
    setting = "" if change.of_global else (
        "set `torch._dynamo.config.allow_unspec_int_on_nn_module = True`, and torch leaves it open")
    tested = _tested_at(change, at)
    if _changes_itself(change):
        ways = [_OUTSIDE, "" if tested else f"in {tensor}"]
        return RecompileAdvice(_changed_in_function(change, ways, setting), comes_first=True)
    if tested:
        return RecompileAdvice("each of its values has a version of its own; " + _breaks_at_test(tested) + (
            f"; or {setting}" if setting else ""))
    return RecompileAdvice(f"each of its values has a version of its own; make it {tensor}" + (
        f"; or {setting}" if setting else ""))


_OUTSIDE = "count outside of what is compiled"


def _changed_in_function(change: ValueChange, ways: Sequence[str], setting: str = "") -> str:
    """Return the sentence on a number that the function itself changes, with ways to spare a version for each value."""
    return (f"the compiled function changes it itself (`{change.cause.strip()}`), so that no version serves the next "
            f"call; {', or '.join(filter(None, ways))}" + (f"; or {setting}" if setting else ""))


def _tested_at(change: ValueChange, at: Circumstances) -> str:
    """Return the place of a test of the program's that reads what changed; ``""`` for none."""
    return at.python_tests.get(change.subject) or at.python_tests.get(last_part(change.subject), "")


def _breaks_at_test(place: str) -> str:
    return (f"a tensor in its place would break the graph at the test of it (at {place}): pass what that test gives, "
            "computed before the call, and the number as a tensor")


def _counted(change: ValueChange, at: Circumstances) -> RecompileAdvice | None:
    """Return advice on a number that the function itself changes, and of which each version holds for one value."""
    if change.subject in at.ranges or at.in_library or not all(
            NUMBER.fullmatch(each) for each in (change.now, *change.was)) or not _changes_itself(change):
        return None
    return RecompileAdvice(_changed_in_function(change, [_OUTSIDE, "" if _tested_at(change, at) else "in a tensor"]),
                           comes_first=True)


def _changes_itself(change: ValueChange) -> bool:
    """Return whether the line because of which torch guards a value computes it anew from what it was.

    ``self.n += 1``, ``seen[key] = seen.get(key, 0) + 1``.
    """
    match parsed_statement(change.cause):
        case ast.AugAssign(target):
            return _is_stored_in(change.subject, target)
        case ast.Assign([target], value) if _is_stored_in(change.subject, target):
            of = target.value if isinstance(target, ast.Subscript) else target
            reads = ast.unparse(of)
            return any(isinstance(each, ast.expr) and ast.unparse(each) == reads for each in ast.walk(value))
    return False


def _is_stored_in(subject: str, target: ast.expr) -> bool:
    """Return whether what a line stores to may be what changed: ``seen[key]`` may be ``self.seen['a']``."""
    if last_part(ast.unparse(target)) == last_part(subject):
        return True
    match target, parsed_expression(subject):
        case ast.Subscript(owner, key), ast.Subscript(of) if not isinstance(key, ast.Constant):
            return last_name(owner) == last_name(of) != ""  # (A function that is called may have it as a variable.)
    return False


def last_part(expression: str) -> str:
    """Return ``['calls']`` of ``self.stats['calls']``, ``.calls`` of ``self.calls``; ``""`` of a variable."""
    match parsed_expression(expression):
        case ast.Attribute(_, name):
            return f".{name}"
        case ast.Subscript(_, key):
            return f"[{ast.unparse(key)}]"
    return ""


def _learning_rate(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on the learning rate of an optimizer, which a scheduler sets: in place, where it is a tensor."""
    if not _LEARNING_RATE.fullmatch(change.subject) or not NUMBER.fullmatch(change.now):
        return None
    tensor = "make the optimizer with a tensor, `lr=torch.tensor(...)`"
    if change.subject in at.ranges:
        return f"torch leaves it open since its second value; to spare that version, {tensor}"
    return f"each of its values has a version of its own; {tensor}, and the first version serves all of them"


def _torchs_hint(change: ValueChange, at: Circumstances) -> str | None:
    return change.hint if change.hint and not change.hint.startswith("type ") else None


def _of_each_object(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on an attribute that each object has its own value of."""
    owner, _, name = change.subject.partition(".")
    if owner != "self" or name not in at.set_once or change.subject in at.ranges:
        return None
    return ("only `__init__` sets it, so objects with other values of it are used; a value has a version of its own, "
            f"for all objects that have it; where there are more than the limit, raise it: {_LIMIT}")


# --- sizes --------------------------------------------------------------------------------------------
def _size_of(change: ValueChange) -> re.Match[str] | None:
    return re.fullmatch(r"(?P<tensor>.+)\.shape\[(?P<index>\d+)\]", change.subject)


def _special_size(change: ValueChange, at: Circumstances) -> str | None:
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


def _fixed_number(change: ValueChange, at: Circumstances) -> str | None:
    if change.subject not in at.fixed or ".shape[" in change.subject or change.subject in at.ranges:
        return None  # (Torch has versions of their own for 0 and 1 of a number that it otherwise leaves open.)
    if change.subject in at.keys:  # (Two tensors are never the same key, whatever their values.)
        return (f"as a key or index (at {at.fixed[change.subject]}) it is fixed, so each value has a version of its "
                "own; look that item up, or set it, outside of what is compiled")
    return (f"what Python computes with it fixes it (at {at.fixed[change.subject]}), so each value has a version "
            "of its own; compute that before the call, or in torch, with a tensor in place of the number")


def _fixed_size(change: ValueChange, at: Circumstances) -> str | None:
    limit = f"allow more versions: {_LIMIT}"
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
    apart = "let them differ in the first call" if at.made_in or subject in at.tied or not _DOTTED.fullmatch(
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


def _open_size(change: ValueChange, at: Circumstances) -> str | None:
    size = _size_of(change)
    if not size or "`" in change.subject or not all(
            expected.isdigit() and int(expected) > 1 for expected in change.was):
        return None
    if at.fixed_along and change.subject not in at.fixed_along:
        other, place = next(iter(at.fixed_along.items()))
        return (f"`{other}` changes along with it, and what is computed with that fixes it (at {place}), so each value "
                f"of that has a version of its own, whether or not this one is open; call the function with fewer "
                f"values, or allow more versions: {_LIMIT}")
    known = at.ranges.get(change.subject, "") or "many sizes"
    if change.subject in at.told_apart:
        known = f"{at.ranges.get(change.subject) or 'all sizes'} {_ONE_OUTCOME}"
    mark = _mark(change.subject)
    if at.differs:
        known = f"{known}, where nothing else differs"
    breaks = f"; but the version that has it open breaks at {at.breaks_when_open}" if at.breaks_when_open else ""
    if at.made_in:
        outside = "" if at.along or size["tensor"] not in at.made_outside or change.subject in at.tied else (
            f"; or mark it before the first call of that: {mark}")
        return f"compile `{at.made_in}` with `dynamic=True`, and one version serves {known}{outside}{breaks}"
    if not _DOTTED.fullmatch(size["tensor"]) or change.subject in at.tied:
        # (An item of an argument, which may not be there before the first call; or a mark that would be an error.)
        return f"compile the function with `dynamic=True`, and one version serves {known}{breaks}"
    if at.along:
        marks = ", ".join((mark, *map(_mark, at.along)))
        return (f"mark {_all(1 + len(at.along))} dynamic before the first call, since one alone may be fixed by the "
                f"{'other' if len(at.along) == 1 else 'others'}, and one version serves {known}: {marks}{breaks}")
    return f"mark it dynamic before the first call, and one version serves {known}: {mark}{breaks}"


def _all(number: int) -> str:
    return "both" if number == 2 else "all"


def _mark(size: str) -> str:
    """Return the call that marks a size dynamic: of ``x.shape[0]``."""
    tensor, _, index = size.removesuffix("]").rpartition(".shape[")
    return f"`torch._dynamo.mark_dynamic({tensor}, {index})`"


def _listed(subjects: Sequence[str]) -> str:
    names = [f"`{subject}`" for subject in subjects]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


# --- other values ---------------------------------------------------------------------------------------
def _bound_method(change: ValueChange, at: Circumstances) -> str | None:
    if change.lasts:
        return None
    node = parsed_expression(change.subject)
    steps = at.calls.get(ast.unparse(node) if node is not None else change.subject, "")
    steps = f": {steps}" if steps else ""
    return f"move its call out of the compiled function, or compute its arguments before it{steps}"


def _packed_arguments(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on the number of arguments that a call gives to ``*args`` or ``**kwargs``."""
    of = re.fullmatch(r"len\((\w+)\)", change.subject)
    kind = at.packed.get(of[1], "keyword" if of[1] == "kwargs" else "") if of else ""
    if not kind:
        return None
    if at.in_library:
        return ""
    return ("calls with it and calls without it have a version each; pass it at each call" if change.keywords else
            f"calls with other {kind} arguments have a version of their own; give the same ones at each call")


def _length(change: ValueChange, at: Circumstances) -> RecompileAdvice | str | None:
    of = re.fullmatch(r"len\((\w+).*\)", change.subject)
    if of is None:
        return None
    if of[1] in at.given:
        return ("each length has a version of its own, in which torch unrolls the loop over it; keep one length, or, "
                "where it holds numbers or tensors, make one tensor of it before the call and compute with all of it "
                "at once (a loop over a tensor is unrolled, too)")
    grows = change.now.isdigit() and all(was.isdigit() and int(was) < int(change.now) for was in change.was)
    held = change.subject[4:-1]
    by_key = held.rpartition(".")[2] in at.filled or _adds_to_item(parsed_statement(change.cause), held)
    expected = at.expected.get(change.subject, ())
    many = len(set(expected)) > 2
    if by_key and (many or grows and set(change.was) != {"0"}):
        return "each number of keys has a version of its own; set all of them before the first call"
    if grows and not by_key and _stays(expected):
        return (f"each length has a version of its own, up to {expected[-1]}, at which it stays in this run; to spare "
                "those of shorter ones, fill it before the first call")
    if grows and not by_key and not at.in_library:
        return RecompileAdvice(
            "each length has a version of its own, and it grows, so that no version serves the next call; append "
            "outside of what is compiled, or, where it holds numbers or tensors, fill a tensor of fixed size instead",
            comes_first=True)
    if "0" in (*change.was, change.now) and not many:
        own = "when it is empty there is a version of its own, one in all"
        return RecompileAdvice(own, is_remedy=False) if at.in_library else (
            f"{own}; to spare it, fill it before the first call")
    return ("each length has a version of its own; keep one length, or, where it holds numbers or tensors, fill a "
            "tensor of fixed size instead")


def _adds_to_item(line: ast.stmt | None, owner: str) -> bool:
    """Return whether a line calls a method of an item of something: ``self.norms[name].append(x)`` of ``self.norms``.

    (A ``defaultdict`` makes the item.)
    """
    match line:
        case ast.Expr(ast.Call(ast.Attribute(ast.Subscript(of)))):
            return ast.unparse(of) == owner
    return False


def _stays(lengths: Sequence[str]) -> bool:
    """Return whether the last versions want the same length, and the longest: a deque is full, a list is cut."""
    if len(lengths) < 2 or lengths[-1] != lengths[-2] or not all(map(str.isdigit, lengths)):
        return False
    return max(map(int, lengths)) == int(lengths[-1])


def _view(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a tensor that was a view of another one."""
    if A_VIEW not in change.was:
        return None
    return ("guards look at the tensor that it is a view of; a copy is no view: pass "
            f"`{change.subject}.clone()` in each call")


def _state(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on what torch's state is at the call, and on what a tensor is like."""
    if any(map(_LAYOUT.match, (change.now, *change.was))):
        return _EACH_LAYOUT
    for pattern, text in _OF_STATE:
        if re.search(pattern, change.subject):
            return text
    return None


#: How the layout of a tensor is told.
_LAYOUT = re.compile(r"contiguous$|channels last|strides \(")
_EACH_LAYOUT = "each layout has a version of its own; pass the result of `.contiguous()`"
_OF_STATE = (
    (r"^torch\.is_grad_enabled\(\), torch\.is_autocast", "each combination of these modes has a version of its own; to "
     "spare one, call it in the same grad mode and under the same `torch.autocast`"),
    (r"^torch\.is_autocast_enabled\(", "calls under `torch.autocast` and calls without it have a version each; to "
     "spare one, call it always under it, or never"),
    (r"^torch\.is_grad_enabled\(\)", "each mode has a version of its own, two in all; to spare one, call it in one "
     "mode (a mode that the function itself sets comes too late: torch looks at it on entry)"),
    (r"\.is_inference\(\)$", "tensors made in `torch.inference_mode()` have a version of their own; make them in "
     "`torch.no_grad()`"),
    (r"\.dtype$", "each dtype has a version of its own; convert it before the call: `.to(dtype)`"),
    (r"\.stride\(\d+\)$", _EACH_LAYOUT),
    (r"[.\]][\w\[\]']+\.requires_grad$", "each combination of what asks for gradients has a version of its own; call "
     "`requires_grad_` before the first call only"),
    (r"\.grad$", "with a gradient and without one there is a version each; `zero_grad(set_to_none=False)` keeps what "
     "has one"),
    (r"\.requires_grad$", "tensors with and without gradients have a version each; pass the result of `.detach()` "
     "where none are needed"),
    (r"\.(?:ndim|device)$", "each has a version of its own; pass tensors of one kind"),
    (r"\.training$", "training and evaluation have a version each, which is two in all"),
)


def _sets_item(line: ast.stmt | None, owner: ast.expr) -> bool:
    """Return whether a line sets an item of something: ``seen[key] = 1`` of ``self.seen``."""
    match line:
        case ast.Assign([ast.Subscript(of)]) | ast.AugAssign(ast.Subscript(of)):
            return last_name(of) == last_name(owner) != ""
    return False


def _key(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a key that a dictionary has in some calls and lacks in others."""
    match parsed_expression(change.subject):
        case ast.Compare(ast.Constant(), [ast.In()], [owner]) if not at.in_library:
            if _sets_item(parsed_statement(change.cause), owner):
                return "the compiled function sets it itself; set it before the first call, and it is there in each"
            return ("calls with it and calls without it have a version each, two in all; where some value of it "
                    "changes nothing, passing that spares one")
    return None


_WITH_AND_WITHOUT = ("calls with it and calls without it have a version each, two in all; where something changes "
                     "nothing in place of `None`, passing that spares one")


#: Types of what is only there to be called: converted, it would be other code.
_CALLED = frozenset({"function", "method", "builtin_function_or_method", "functools.partial"})


def _other_kind(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a value that is of another type, absent, or another object."""
    kinds = (change.now.removeprefix("an object of type "), *change.was)
    of_type = re.fullmatch(r"type\(.+\)", change.subject)
    if "NoneType" in kinds and (of_type or A_FUNCTION in kinds):
        return _WITH_AND_WITHOUT
    if SAME_CODE in kinds or A_FUNCTION in kinds or of_type and not _CALLED.isdisjoint(kinds):
        return ("each function's code has a version of its own, and so has what is called and is no function; "
                "functions that one `def` makes can share a version")
    if of_type:
        return "each type has a version of its own; convert the value before the call, so that it has one type"
    expected = change.was[0] if change.was else ""
    if at.in_library:
        return None
    if "None" in (change.now, expected) and any(NUMBER.fullmatch(each) for each in (change.now, expected)):
        return ("calls with it and calls without it have versions of their own; to spare one, pass a number that "
                "changes nothing in place of `None`")
    if "None" in (change.now, expected) or change.now.startswith("an object of type Tensor"):
        return _WITH_AND_WITHOUT
    if (expected, change.now) in (("there", "missing"), ("missing", "there")):
        return "whether it is there has a version each; let it always be there, `None` where there is nothing"
    if expected == "the same object":
        return "the version holds for that object alone; make it once, and pass the same one at each call"
    return None


def _value(change: ValueChange, at: Circumstances) -> RecompileAdvice | str | None:
    if at.in_library or not isinstance(parsed_expression(change.subject), (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    if {change.now, *change.was} <= {"True", "False"} and not change.subject.endswith(".requires_grad"):
        return "each of its values has a version of its own; keep one where you can"
    if NUMBER.fullmatch(change.now) and change.subject in at.ranges:
        numbers = [each for each in change.was if NUMBER.fullmatch(each)]
        if not numbers:  # (Each version leaves it open.)
            return _apart(change, at)
        if all(float(each) in at.excepted.get(change.subject, ()) for each in numbers):
            return RecompileAdvice(_EXCEPTED.format(numbers[0]), is_remedy=False)
        compiled = f"compile `{at.made_in}`" if at.made_in else "compile the function"
        known = at.ranges[change.subject].replace("all sizes", "all values") or "all of its values"
        if change.subject in at.told_apart:
            known += f" {_ONE_OUTCOME}"
        return (f"torch leaves it open since its second value; {compiled} with `dynamic=True`, and the first version "
                f"serves {known}")
    tested = _tested_at(change, at)
    if tested and NUMBER.fullmatch(change.now):
        return f"each of its values has a version of its own; {_breaks_at_test(tested)}"
    if _FLOAT.fullmatch(change.now):
        return "make it a tensor, and the first version serves all of its values"
    if NUMBER.fullmatch(change.now):
        # (A tensor may be an attribute of anything; only a module can have a buffer.)
        stored = f"{change.subject} = " if change.subject.startswith("self.") else ""
        return f"make it a tensor, and the first version serves all of its values: `{stored}torch.tensor(...)`"
    if re.match(r"[bB]?['\"]", change.now):
        return (f"each of its values has a version of its own; where there are more than the limit, raise it: {_LIMIT}")
    return None


def _contents(change: ValueChange, at: Circumstances) -> RecompileAdvice | str | None:
    """Return advice on a set, of which each version holds for one content."""
    now, *was = (_members(each) for each in (change.now, *change.was))
    if not was or any(each is None for each in was):
        return None
    known = [members for each in at.expected.get(change.subject, ()) if (members := _members(each)) is not None]
    if now is not None and all(each < now for each in was if each is not None) and all(
            one <= other for one, other in pairwise(known)):
        return RecompileAdvice(
            "each content of the set has a version of its own, and it grows, so that no version serves the next call; "
            "keep what it holds in a tensor of fixed size (a mask), or compute what depends on it before the call",
            comes_first=True)
    return ("each content of the set has a version of its own; keep what it holds in a tensor of fixed size (a mask), "
            "or compute what depends on it before the call")


def _members(text: str) -> Set[str] | None:
    """Return the elements of a set as text, ``{1, 2}``; ``None`` for another value."""
    match parsed_expression(text):
        case ast.Set(elements):
            return frozenset(map(ast.unparse, elements))
        case ast.Call(ast.Name("set" | "frozenset"), []):
            return frozenset()
        case ast.Call(ast.Name("frozenset"), [ast.Set(elements)]):
            return frozenset(map(ast.unparse, elements))
    return None


def _apart(change: ValueChange, at: Circumstances) -> RecompileAdvice | str:
    """Return advice on a size or number that each version leaves open within a range."""
    if ".shape[" not in change.subject:
        return RecompileAdvice(_NUMBERS_APART, is_remedy=False)
    place = at.bounded_by_torch.get(change.subject, "")
    return _APART_IN_TORCH.format(place) if place else _SIZES_APART


def _condition(change: ValueChange, at: Circumstances) -> RecompileAdvice | str | None:
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


def _generated(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a size for which Inductor has other code."""
    condition = at.generated_apart.get(change.subject, "")
    return _GENERATED_APART.format(f"`{condition}`") if condition else None


_RULES: tuple[Rule, ...] = (
    _generated, _of_each_object, _learning_rate, _number_of_module, _counted, _torchs_hint, _special_size,
    _fixed_number, _fixed_size, _open_size, _bound_method, _packed_arguments, _length, _contents, _condition, _view,
    _state, _key, _other_kind, _value)
