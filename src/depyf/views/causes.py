"""The cause of a graph break, in one sentence, in the words of the program that did it.

Torch names the kind of each break (``GB0170``, "Data-dependent branching") and explains it in general. Here the kinds
that programs meet most are said of the line at hand; for every other kind torch's heading is the sentence.

Below: groups of what repeats in a run, graph breaks by reason and place, recompiles by guard, losses by function.
"""

from __future__ import annotations

import ast
import os
import string
from collections.abc import Callable, Iterable, Mapping

from ..advice.source import called, parsed_statement
from ..model.folding import fold
from ..records.model import Compilation, GraphBreak, GuardFailure, SourceLocation
from ..torch_text.events import graph_break
from ..torch_text.global_names import plain_name
from ..torch_text.libraries import is_library
from ..torch_text.met import Met, bound_method, is_step_of_scheduler, met
from ..torch_text.parsed import parsed_file
from ..torch_text.run_ids import without_values
from .formatting import NOT_LOST
from .markdown import code, one_line

_SHORT = 24  #: Longer calls are shown without their arguments.
#: Breaks at which torch needs a number.
_NEED_NUMBER = ("branch", "assertion", "data", "item", "operation", "constant", "python type")


def cause(broken: GraphBreak) -> str:
    """Return why the graph broke, as the end of a sentence: "its branch depends on values in a tensor"."""
    found = met(broken)
    if found.is_number and found.kind in _NEED_NUMBER:
        return _number_cause(broken, found)
    say = _SENTENCES.get(found.kind, "")
    sentence = say(broken, found) if callable(say) else _filled(say, found)
    return sentence or found.heading or "torch gives no reason"


def heading(broken: GraphBreak) -> str:
    """Return torch's heading of a graph break, shortened; ``""`` where it gives none."""
    return met(broken).heading


def statement(line: str) -> str:
    """Return a line of the user's as it reads in a sentence: ``if x.abs().max() > 3.0``."""
    text = line.strip()
    return text[:-1].rstrip() if text.endswith(":") else text


def in_plain_python(broken: GraphBreak, whole_statement: str = "", *, is_split: bool = True) -> str:
    """Return what runs in plain Python in the line, as Markdown: ``loss.item()``; ``""`` where not known.

    Args:
        broken: the graph break.
        whole_statement: its statement, where that is of several lines.
        is_split: what the line does before the break is in a graph.
    """
    text, node = _parsed(broken, whole_statement)
    found = met(broken)
    if found.kind.startswith("branch"):
        tests = [each.test for each in ast.walk(node) if isinstance(each, (ast.If, ast.While, ast.IfExp, ast.Assert))]
        return f"the choice by {code(ast.get_source_segment(text, tests[0]) or '')}" if len(tests) == 1 else ""
    calls = _calls(found, node)
    functions = {ast.get_source_segment(text, each.func) for each in calls}
    if len(calls) > 1 and len(functions) == 1:
        return code(f"{functions.pop()}(...)")
    call = calls[0] if len(calls) == 1 else None
    whole = call and ast.get_source_segment(text, call)
    if call is None or not whole:
        return ""
    if found.kind == "item" and is_split:
        tensor = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0] if call.args else call
        if not isinstance(tensor, (ast.Name, ast.Attribute)):  # (what computes it is in the graph)
            return f"the number is taken out of {code(ast.get_source_segment(text, tensor) or whole)}"
    return code(whole if len(whole) <= _SHORT else f"{ast.get_source_segment(text, call.func)}(...)")


def call_of(line: str, function: str) -> str:
    """Return the call by which a user's line reaches a function; ``""`` where several calls may."""
    node = parsed_statement(line)
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)] if node is not None else []
    named = calls if len(calls) == 1 else [each for each in calls if called(each) == function]
    if len(named) != 1:
        return ""
    whole = ast.unparse(named[0])
    return whole if len(whole) <= _SHORT else f"{ast.unparse(named[0].func)}(...)"


def _calls(found: Met, node: ast.Module) -> list[ast.Call]:
    """Return the calls of the user's line of which one broke the graph, by the name that torch reports."""
    match node:
        case ast.Module([ast.Expr(ast.Call() as call)]) if found.kind == "logger":
            return [call]
    name = _METHODS.get(found.kind, "")
    operator = found.name.strip("_").removeprefix("linalg_") if found.overload else ""
    wanted = name or operator or found.cls or found.shown or found.name
    inside = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    calls = [each for each in inside if wanted and called(each) == wanted.rpartition(".")[2]]
    if name == "item" and not calls:
        calls = [each for each in inside if isinstance(each.func, ast.Name) and each.func.id in _NUMBERS]
    return calls


def _parsed(broken: GraphBreak, whole_statement: str = "") -> tuple[str, ast.Module]:
    """Return the user's line and what it says, where it is a statement by itself."""
    text = whole_statement or (broken.location.text.strip() if broken.location else "")
    for each in (text, f"{text} pass"):
        if (tree := parsed_file(each)) is not None:
            return each, tree
    return text, ast.Module([], [])


_NUMBERS = ("float", "int", "bool")  #: Functions that take the number out of a tensor, as its method ``item`` does.
#: Methods and functions that a kind of break is of.
_METHODS = {"item": "item", "backward": "backward", "asked": "graph_break"}


def _filled(sentence: str, found: Met) -> str:
    """Return a sentence with the names that torch reports; ``""`` where it does not report one of them."""
    names = [name for _, name, _, _ in string.Formatter().parse(sentence) if name]
    return sentence.format(**vars(found)) if all(getattr(found, name) for name in names) else ""


def _failing_call(broken: GraphBreak, found: Met) -> str:
    if not found.message:
        return ""
    of_size = "; that value depends on a size that torch keeps open" if found.fails_on_symbol else ""
    return f"the call fails with the fake tensors that torch traces with: {code(found.message)}{of_size}"


def _number_cause(broken: GraphBreak, found: Met) -> str:
    """Return the cause where torch has a number of Python's as a tensor: one that it does not know yet."""
    line = parsed_statement(broken.location.text) if broken.location is not None else None
    is_random = line is not None and any(
        "random" in ast.unparse(each.func).split(".") for each in ast.walk(line) if isinstance(each, ast.Call))
    number = "a random number" if is_random else "a number of Python's, as random ones are,"
    needed = "does not know this operation on it" if found.kind == "operation" else "this line needs its value"
    return f"torch has {number} as a tensor while it traces, and {needed}"


def _undecided(broken: GraphBreak, found: Met) -> str:
    text, node = _parsed(broken)
    of_user = broken.location is not None and not is_library(broken.location.filename)
    match node:
        case ast.Module([ast.If(test) | ast.While(test)]) if of_user and found.tested:
            tested = code(ast.get_source_segment(text, test) or "")
            return f"{tested} depends on a number known only when the graph runs"
    return _filled("a decision depends on a number known only when the graph runs: `{tested}`", found)


def _graph_break(broken: GraphBreak, found: Met) -> str:
    if broken.location is not None and is_library(broken.location.filename):
        return "a library asks for a graph break here (`torch._dynamo.graph_break()`); your program need not change"
    asked = "the program asks for a graph break here (`torch._dynamo.graph_break()`)"
    return asked if found.message in ("", "None") else f"{asked}: {found.message}"


def _skipped(broken: GraphBreak, found: Met) -> str:
    method = bound_method(broken)
    if method:
        return f"torch does not trace `{method}` where the bound method is looked up before the graph begins"
    why = _filled("torch does not trace `{shown}`", found)
    if is_step_of_scheduler(broken):
        return f"{why}, which a learning-rate scheduler wraps (`LRScheduler`); the wrapped step is compiled by itself"
    return why


def _text(broken: GraphBreak, found: Met) -> str:
    if not found.needs_text:
        return ""
    return "an f-string needs the value of a number, and torch keeps that open" if found.kind == "string" else (
        "`%` needs the value of what it formats, and torch knows none while it captures the graph")


#: What there is to say of each kind of break, with the names that torch reports.
_SENTENCES: Mapping[str, str | Callable[[GraphBreak, Met], str]] = {
    "branch": "which branch is taken depends on values in a tensor, and a graph has none while it is captured",
    "branch on a symbol": "which branch is taken depends on a size or number, which has no value while the graph is "
                          "captured",
    "item": "`.item()` needs a value out of a tensor, and a graph has none while it is captured",
    "backward": "torch does not trace `.backward()`",
    "operator": lambda broken, found: "it takes numbers out of a tensor, and a graph has none while it is captured" * (
        found.name == "_local_scalar_dense"),
    **dict.fromkeys(("assertion", "data"),
                    "it depends on values in a tensor, and a graph has none while it is captured"),
    "failed assertion": "the assertion fails, and a graph cannot raise an exception",
    "asked": _graph_break,
    "builtin": lambda broken, found: _filled(
        "a graph cannot `print`" if found.shown == "print" else "torch cannot trace the built-in `{shown}`", found),
    "skipped": _skipped,
    "method": "torch did not trace the method `{method}` of `{owner}` here",
    "numpy": "torch has no function of its own for NumPy's `{name}`",
    "context": "torch cannot enter the context manager `{shown}`",
    "undecided": _undecided,
    "value": "the line needs the value of a number while the graph is captured, and it is known only when the graph "
             "runs",
    "size": "the size of what `{shown}` returns depends on values in a tensor",
    "fails on types": _failing_call,
    "no fake": "the operator `{name}` has no implementation for fake tensors, which torch traces with",
    "function": "torch did not trace `{cls}` here",
    "method in C": "torch cannot trace `{method}` of `{owner}`, which is written in C",
    "copy": "torch cannot trace `copy.deepcopy` of a tensor",
    "recurrent": "torch does not trace `nn.RNN`, `nn.GRU` and `nn.LSTM`",
    "running generator": "a generator, or what torch traces as one (`enumerate`), is at work where the graph breaks, "
                         "and torch cannot make it anew for the code after the break",
    **dict.fromkeys(("string", "exception"), _text),
    "effect": "what `{operator}` runs changes something outside of it",
    "backend": "the backend could not compile the graph",
}


def sentences(breaks: Iterable[GraphBreak]) -> list[str]:
    """Return a sentence for each graph break: where and why a graph ends before the function does."""
    result = []
    for each in breaks:
        where = each.location
        at = f" at {os.path.basename(where.filename)}:{where.line} ({statement(where.text)})" if where else ""
        result.append(f"graph break{at}: {cause(each)}")
    return result


# --- Groups of what repeats --------------------------------------------------------------------------
def breaks_by_reason(compilations: Iterable[Compilation]) -> list[list[tuple[GraphBreak, Compilation]]]:
    """Group graph breaks by their reason."""
    pairs = ((broken, compilation) for compilation in compilations for broken in compilation.breaks)
    return list(fold(pairs, lambda pair: (pair[0].registry_id, one_line(pair[0].reason))).values())


def breaks_by_place(group: Iterable[tuple[GraphBreak, Compilation]]) -> list[list[tuple[GraphBreak, Compilation]]]:
    """Group the graph breaks of one reason by place and cause, by function, and by what was given up."""
    def key(pair: tuple[GraphBreak, Compilation]) -> tuple[object, ...]:
        where, meant = pair[0].location, pair[1].user_function
        # (One wrapper's name is that of many functions.)
        function = (meant.name, meant.wrappers[:1]) if meant is not None else plain_name(pair[1].function)
        # (At one place torch may meet several calls that it does not trace.)
        return where and (where.filename, where.line), cause(pair[0]), function, pair[0].skips_function

    return list(fold(group, key).values())


def path_to(broken: GraphBreak, compilation: Compilation) -> tuple[SourceLocation, ...]:
    """Return the stack from the user's function to the break; longer than one if functions were inlined."""
    meant = compilation.user_function
    path = path_from_frame(broken, compilation)
    if meant is not None and meant.location is not None and meant.wrappers:
        for at, place in enumerate(path):
            if (place.function, place.filename) == (meant.location.function, meant.location.filename):
                return path[at:]
    return path


def path_from_frame(broken: GraphBreak, compilation: Compilation) -> tuple[SourceLocation, ...]:
    """Return the stack from what torch compiled, which may be a wrapper."""
    stack = broken.stack
    if 0 < broken.depth <= len(stack):
        return stack[-broken.depth :]
    own, location = plain_name(compilation.function), compilation.location
    begins = [at for at, place in enumerate(stack) if plain_name(place.function) == own
              and (location is None or place.filename == location.filename)]
    return stack[begins[-1] if begins else -1 :]


def kind_of_failure(failure: GuardFailure) -> str:
    """Return the text of the guard that failed, values left out."""
    text = one_line(failure.text)
    for value in (failure.expected, failure.seen):
        if value and not value.isnumeric():
            text = text.replace(one_line(value), "_")
    return without_values(text, failure.source)


def not_compiled(compilations: Iterable[Compilation]) -> list[list[Compilation]]:
    """Group compilations that gave no code by function and by what torch raised, and where; values left out."""
    def key(lost: Compilation) -> tuple[object, ...]:
        place, failure = lost.location, lost.failure
        account = graph_break(lost.compile_id, failure.reason if failure is not None else "")
        return (lost.outcome, lost.function, place and (place.filename, place.line), failure and failure.kind,
                failure and failure.location, without_values(account.reason), without_values(account.explanation))

    return list(fold((each for each in compilations if each.outcome not in NOT_LOST), key).values())
