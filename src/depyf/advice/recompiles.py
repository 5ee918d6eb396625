"""Advice on a recompile: what changed between two calls, and what keeps torch from compiling again for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence, Set
from itertools import pairwise

from ..torch_text.guard_failures import A_FUNCTION, SAME_CODE
from ..torch_text.parsed import parsed_expression
from . import recompile_numbers as numbers
from . import recompile_sizes as sizes
from .recompile_changes import A_VIEW, LIMIT, NUMBER, RecompileAdvice, ValueChange
from .recompile_circumstances import Circumstances
from .source import last_name, parsed_statement

_FLOAT = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
_EXCEPTED = "the function's test of it tells `{}` from all others, so it has a version of its own"


def on_change(change: ValueChange, at: Circumstances) -> RecompileAdvice | None:
    """Return advice on how to spare torch compiling again; ``None`` where there is none."""
    for rule in _RULES:
        advice = rule(change, at)
        if advice is not None:
            advice = RecompileAdvice(advice) if isinstance(advice, str) else advice
            return advice if advice.text else None
    return None


def _torchs_hint(change: ValueChange, at: Circumstances) -> str | None:
    return change.hint if change.hint and not change.hint.startswith("type ") else None


def _bound_method(change: ValueChange, at: Circumstances) -> str | None:
    if change.lasts:
        return None
    node = parsed_expression(change.subject)
    steps = at.uses.calls_in_two_steps.get(ast.unparse(node) if node is not None else change.subject, "")
    steps = f": {steps}" if steps else ""
    return f"move its call out of the compiled function, or compute its arguments before it{steps}"


def _packed_arguments(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on the number of arguments that a call gives to ``*args`` or ``**kwargs``."""
    of = re.fullmatch(r"len\((\w+)\)", change.subject)
    kind = at.arguments.packed.get(of[1], "keyword" if of[1] == "kwargs" else "") if of else ""
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
    if of[1] in at.uses.given:
        return ("each length has a version of its own, in which torch unrolls the loop over it; keep one length, or, "
                "where it holds numbers or tensors, make one tensor of it before the call and compute with all of it "
                "at once (a loop over a tensor is unrolled, too)")
    grows = change.now.isdigit() and all(was.isdigit() and int(was) < int(change.now) for was in change.was)
    held = change.subject[4:-1]
    by_key = held.rpartition(".")[2] in at.uses.filled or _adds_to_item(parsed_statement(change.cause), held)
    expected = at.failed.expected.get(change.subject, ())
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
        return ("the version holds for that object alone, so each one has a version of its own; where it is made anew "
                "for a call, make it once, and pass the same one")
    return None


def _value(change: ValueChange, at: Circumstances) -> RecompileAdvice | str | None:
    if at.in_library or not isinstance(parsed_expression(change.subject), (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    if {change.now, *change.was} <= {"True", "False"} and not change.subject.endswith(".requires_grad"):
        return "each of its values has a version of its own; keep one where you can"
    if NUMBER.fullmatch(change.now) and change.subject in at.open.ranges:
        earlier = [each for each in change.was if NUMBER.fullmatch(each)]
        if not earlier:  # (Each version leaves it open.)
            return sizes.on_open_range(change, at)
        if all(float(each) in at.open.excepted.get(change.subject, ()) for each in earlier):
            return RecompileAdvice(_EXCEPTED.format(earlier[0]), is_remedy=False)
        compiled = f"compile `{at.arguments.made_in}`" if at.arguments.made_in else "compile the function"
        known = at.open.ranges[change.subject].replace("all sizes", "all values") or "all of its values"
        if change.subject in at.open.told_apart:
            known += f" {sizes.ONE_OUTCOME}"
        return (f"torch leaves it open since its second value; {compiled} with `dynamic=True`, and the first version "
                f"serves {known}")
    tested = numbers.tested_at(change, at)
    if tested and NUMBER.fullmatch(change.now):
        return f"each of its values has a version of its own; {numbers.breaks_at_test(tested)}"
    if _FLOAT.fullmatch(change.now):
        return "make it a tensor, and the first version serves all of its values"
    if NUMBER.fullmatch(change.now):
        # (A tensor may be an attribute of anything; only a module can have a buffer.)
        stored = f"{change.subject} = " if change.subject.startswith("self.") else ""
        return (f"make it a tensor{numbers.WHERE_COMPUTED_WITH}, and the first version serves all of its values: "
                f"`{stored}torch.tensor(...)`")
    if re.match(r"[bB]?['\"]", change.now):
        return (f"each of its values has a version of its own; where there are more than the limit, raise it: {LIMIT}")
    return None


def _contents(change: ValueChange, at: Circumstances) -> RecompileAdvice | str | None:
    """Return advice on a set, of which each version holds for one content."""
    now, *was = (_members(each) for each in (change.now, *change.was))
    if not was or any(each is None for each in was):
        return None
    known = [members for each in at.failed.expected.get(change.subject, ()) if (members := _members(each)) is not None]
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


_RULES: tuple[Callable[[ValueChange, Circumstances], RecompileAdvice | str | None], ...] = (
    sizes.on_generated, numbers.on_value_of_each_object, numbers.on_learning_rate, numbers.on_momentum,
    numbers.on_number_of_module, numbers.on_counted, _torchs_hint, sizes.on_special_size, sizes.on_fixed_number,
    sizes.on_fixed_size, sizes.on_equated_size, sizes.on_open_size, _bound_method, _packed_arguments, _length,
    _contents, sizes.on_condition, _view, _state, _key, _other_kind, numbers.on_number_of_global, _value)
