"""Advice on recompiles for numbers that objects keep: counters, learning rates, settings of a module."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ..torch_text.parsed import parsed_expression
from .recompile_changes import LIMIT, NUMBER, WHOLE_NUMBER, RecompileAdvice, ValueChange, last_part
from .recompile_circumstances import Circumstances
from .source import last_name, parsed_statement

#: How torch's hint on a whole number of a module begins.
_OF_MODULE = "torch.compile considers integer attributes of the nn.Module to be static"
_LEARNING_RATE = re.compile(r"self\.param_groups\[(?:\d+|\.\.\.|[i-n])\]\['lr'\]")
_MOMENTUM = re.compile(r"self\.param_groups\[(?:\d+|\.\.\.|[i-n])\]\['(?:betas'\]\[0\]|momentum'\])")
#: A whole number may be one that Python needs: which layers are called, what a list is cut to.
WHERE_COMPUTED_WITH = (" where it only meets tensors in arithmetic (as a size, in a `range`, an index or a test it "
                       "would break the graph)")
_OUTSIDE = "count outside of what is compiled"


def on_number_of_module(change: ValueChange, at: Circumstances) -> RecompileAdvice | None:
    """Return advice on a whole number of a module's, which torch holds for fixed (``is_int_specialization_case``)."""
    if not change.hint.startswith(_OF_MODULE) or at.in_library:
        return None
    name = change.subject.rpartition(".")[2]
    tensor = "a tensor"
    if name.isidentifier():  # (no item of a dictionary or list)
        tensor += f', in place of the attribute: `self.register_buffer("{name}", torch.tensor(...), persistent=False)`'
    setting = "" if change.of_global else (
        "set `torch._dynamo.config.allow_unspec_int_on_nn_module = True`, and torch leaves it open where nothing fixes "
        "it")
    tested = tested_at(change, at)
    if _changes_itself(change):
        ways = [_OUTSIDE, "" if tested else f"in {tensor}"]
        return RecompileAdvice(_changed_in_function(change, ways, setting), comes_first=True)
    if tested:
        return RecompileAdvice("each of its values has a version of its own; " + breaks_at_test(tested) + (
            f"; or {setting}" if setting else ""))
    return RecompileAdvice(f"each of its values has a version of its own; make it {tensor},{WHERE_COMPUTED_WITH}" + (
        f"; or {setting}" if setting else ""))


def on_counted(change: ValueChange, at: Circumstances) -> RecompileAdvice | None:
    """Return advice on a number that the function itself changes, and of which each version holds for one value."""
    if change.subject in at.open.ranges or at.in_library or not all(
            NUMBER.fullmatch(each) for each in (change.now, *change.was)) or not _changes_itself(change):
        return None
    if change.subject in at.uses.own_variables:  # (each call begins with what the caller gives)
        return None
    return RecompileAdvice(_changed_in_function(change, [_OUTSIDE, "" if tested_at(change, at) else "in a tensor"]),
                           comes_first=True)


def on_number_of_global(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on a whole number that torch reaches from a global name (``is_int_specialization_case``)."""
    if not change.of_global or at.in_library or change.subject in at.open.ranges or not all(
            WHOLE_NUMBER.fullmatch(each) for each in (change.now, *change.was)):
        return None
    tested = tested_at(change, at)
    # (Those of a module stay fixed when it is an argument: `is_int_specialization_case`.)
    holder = "" if change.subject.isidentifier() else ", or what holds it, unless that is an `nn.Module`"
    outcomes = f"; each outcome of the test of it (at {tested}) has a version then" if tested else ""
    return ("torch holds a whole number that it reaches from a global name for fixed, so each of its values has a "
            f"version of its own; pass it to the function as an argument{holder}: where nothing that is computed with "
            f"it fixes it, torch then leaves it open{outcomes}")


def on_learning_rate(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on the learning rate of an optimizer, which a scheduler sets: in place, where it is a tensor."""
    if not _LEARNING_RATE.fullmatch(change.subject) or not NUMBER.fullmatch(change.now):
        return None
    tensor = "make the optimizer with a tensor, `lr=torch.tensor(...)`"
    if change.subject in at.open.ranges:
        return f"torch leaves it open since its second value; to spare that version, {tensor}"
    return f"each of its values has a version of its own; {tensor}, and the first version serves all of them"


def on_momentum(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on the momentum of an optimizer, which some schedulers set along with the learning rate."""
    if not _MOMENTUM.fullmatch(change.subject) or not NUMBER.fullmatch(change.now):
        return None
    versions = "torch leaves it open since its second value" if change.subject in at.open.ranges else (
        "each of its values has a version of its own")
    return (f"{versions}; where a scheduler cycles it (`OneCycleLR`, `CyclicLR`), `cycle_momentum=False` keeps it as "
            "it is, which is another schedule")


def on_value_of_each_object(change: ValueChange, at: Circumstances) -> str | None:
    """Return advice on an attribute that each object has its own value of."""
    owner, _, name = change.subject.partition(".")
    if owner != "self" or name not in at.failed.set_once or change.subject in at.open.ranges:
        return None
    return ("only `__init__` sets it, so objects with other values of it are used; a value has a version of its own, "
            f"for all objects that have it; where there are more than the limit, raise it: {LIMIT}")


def _changed_in_function(change: ValueChange, ways: Sequence[str], setting: str = "") -> str:
    """Return the sentence on a number that the function itself changes, with ways to spare a version for each value."""
    return (f"the compiled function changes it itself (`{change.cause.strip()}`), so that no version serves the next "
            f"call; {', or '.join(filter(None, ways))}" + (f"; or {setting}" if setting else ""))


def tested_at(change: ValueChange, at: Circumstances) -> str:
    """Return the place of a test of the program's that reads what changed; ``""`` for none."""
    return at.uses.tests.get(change.subject) or at.uses.tests.get(last_part(change.subject), "")


def breaks_at_test(place: str) -> str:
    """Return the advice on a number that a test at a place reads, so that it cannot become a tensor."""
    return (f"make the test of it (at {place}) before the call, and pass its outcome; where other lines need the "
            "number, pass that as a tensor, too (which at the test would break the graph)")


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
    stored = ast.unparse(target)
    if (last_part(stored) or stored) == (last_part(subject) or subject):
        return True
    match target, parsed_expression(subject):
        case ast.Subscript(owner, key), ast.Subscript(of) if not isinstance(key, ast.Constant):
            return last_name(owner) == last_name(of) != ""  # (A function that is called may have it as a variable.)
    return False
