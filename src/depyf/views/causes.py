"""The cause of a graph break, in one sentence, in the words of the program that did it.

Torch names the kind of each break (``GB0170``, "Data-dependent branching") and explains it in general. Here the kinds
that programs meet most are said of the line at hand; for every other kind torch's heading is the sentence.
"""

from __future__ import annotations

import ast
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence

from ..advice.source import parsed_statement
from ..records.model import GraphBreak
from ..torch_text.libraries import is_library
from ..torch_text.met import bound_method, is_step_of_scheduler, met
from .markdown import code

#: Longer calls are shown without their arguments.
_SHORT = 24
#: Longer headings are messages of errors, of which the first sentence is shown.
_LONG = 200
#: Torch's heading of a number that is taken out of a tensor.
_ITEM = r"^Unsupported Tensor\.item\(\)"
#: Torch's headings of breaks at which it needs a number that it holds as a tensor.
_NEEDS_NUMBER = r"^Data-dependent|^Unsupported Tensor\.item\(\)|^unimplemented builtin op|^constant fold"
_QUOTED = r"`(?P<what>[^`]+)`"
#: A class that torch's explanation names.
_CLASS = r"`<class '(?P<what>[\w.]+)'>`"
#: An operator of torch's that its explanation names, ``aten._ctc_loss.Tensor``.
_OPERATOR = r"Operator `\w+\.(?P<what>\w+)\.\w+`"


def cause(broken: GraphBreak) -> str:
    """Return why the graph broke, as the end of a sentence: "its branch depends on values in a tensor".

    Names of the program stand in backticks, as in torch's sentences.
    """
    if "UnspecializedPythonVariable" in broken.context and re.search(_NEEDS_NUMBER, broken.reason):
        return _of_number(broken)
    for pattern, say in _KINDS:
        if re.search(pattern, broken.reason):
            sentence = say(broken)
            if sentence:
                return sentence
    return heading(broken) or "torch gives no reason"


def heading(broken: GraphBreak) -> str:
    """Return torch's heading of a graph break, without its full stop; ``""`` where it gives none.

    Of an error that broke the graph torch gives the whole message, with stacks: its first line is the heading, without
    remarks in parentheses.
    """
    reason = broken.reason.rstrip(".")
    if len(reason) <= _LONG:
        return reason
    first = reason.partition("\n")[0]
    sentence = re.split(r"(?<=[.!?])\s|\s\((?=unhinted|Size-like)", first)[0].rstrip(". ")
    return textwrap.shorten(sentence, _LONG, placeholder=" ...")


def statement(line: str) -> str:
    """Return a line of the user's as it reads in a sentence: ``if x.abs().max() > 3.0``."""
    text = line.strip()
    return text[:-1].rstrip() if text.endswith(":") else text


def operation(broken: GraphBreak) -> str:
    """Return the call of the user's line that torch could not trace, ``"loss.item()"``.

    ``""`` where the line has none that torch's explanation or its heading names, or several.
    """
    text, node = _parsed(broken)
    call = _breaking(broken, node)
    return (ast.get_source_segment(text, call) or "") if call is not None else ""


def in_plain_python(broken: GraphBreak, whole_statement: str = "") -> str:
    """Return what of the user's line runs in plain Python, as Markdown: ``loss.item()``, ``print(...)``.

    ``""`` where torch does not tell.

    Args:
        broken: has the line.
        whole_statement: the text of a statement of several lines that the line is in.
    """
    text, node = _parsed(broken, whole_statement)
    if re.search(r"^Data-dependent (branching|jump)", broken.reason):
        tests = [each.test for each in ast.walk(node) if isinstance(each, (ast.If, ast.While, ast.IfExp, ast.Assert))]
        return f"the choice by {code(ast.get_source_segment(text, tests[0]) or '')}" if len(tests) == 1 else ""
    calls = _calls(broken, node)
    functions = {ast.get_source_segment(text, each.func) for each in calls}
    if len(calls) > 1 and len(functions) == 1:
        return code(f"{functions.pop()}(...)")
    call = _breaking(broken, node)
    whole = call and ast.get_source_segment(text, call)
    if call is None or not whole:
        return ""
    if re.search(_ITEM, broken.reason):
        tensor = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0] if call.args else call
        if not isinstance(tensor, (ast.Name, ast.Attribute)):  # (what computes it is in the graph)
            return f"the number is taken out of {code(ast.get_source_segment(text, tensor) or whole)}"
    return code(whole if len(whole) <= _SHORT else f"{ast.get_source_segment(text, call.func)}(...)")


def call_of(line: str, function: str) -> str:
    """Return the call by which a line of the user's comes to a function; ``""`` where several calls may.

    ``self.b(torch.relu(self.a(x)))`` comes to ``_wrapped_call_impl`` by two of its calls.
    """
    node = parsed_statement(line)
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)] if node is not None else []
    named = calls if len(calls) == 1 else [each for each in calls if _called(each) == function]
    if len(named) != 1:
        return ""
    whole = ast.unparse(named[0])
    return whole if len(whole) <= _SHORT else f"{ast.unparse(named[0].func)}(...)"


def _breaking(broken: GraphBreak, node: ast.Module) -> ast.Call | None:
    match node:
        case ast.Module([ast.Expr(ast.Call() as call)]) if broken.reason.startswith("logging.Logger method"):
            return call
    calls = _calls(broken, node)
    return calls[0] if len(calls) == 1 else None


def _calls(broken: GraphBreak, node: ast.Module) -> list[ast.Call]:
    """Return the calls of the user's line of which one broke the graph, by the name that torch tells."""
    name = next((name for heading, name in _CALLS if re.search(heading, broken.reason)), None)
    operator = _in(_OPERATOR, broken.explanation).strip("_").removeprefix("linalg_")
    wanted = name or operator or _in(_CLASS, broken.explanation) or _in(
        r"function `(?P<what>[^`]+)`", broken.explanation) or _in(_QUOTED, broken.explanation)
    inside = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    if _data_operator(broken) and _comes_first("tolist", inside) and not _indexes(node):
        wanted = "tolist"
    wanted = wanted.rstrip(".")  # (torch writes the full stop behind a built-in into its name)
    calls = [each for each in inside if wanted and _called(each) == wanted.rpartition(".")[2]]
    if name == "item" and not calls:
        calls = [each for each in inside if isinstance(each.func, ast.Name) and each.func.id in _NUMBERS]
    return calls


def _comes_first(name: str, calls: Sequence[ast.Call]) -> bool:
    """Return whether a line calls one method of a name before anything else: all other calls are around it."""
    found = [each for each in calls if _called(each) == name]
    return len(found) == 1 and all(found[0] in ast.walk(each) for each in calls)


def _indexes(node: ast.AST) -> bool:
    """Return whether a statement takes items by what is no constant.

    (An index by a tensor takes its number, too.)
    """
    return any(isinstance(each, ast.Subscript) and not isinstance(each.slice, ast.Constant) for each in ast.walk(node))


def _parsed(broken: GraphBreak, whole_statement: str = "") -> tuple[str, ast.Module]:
    """Return the user's line and what it says, where it is a statement by itself."""
    text = whole_statement or (broken.location.text.strip() if broken.location else "")
    for each in (text, f"{text} pass"):
        try:
            return each, ast.parse(each)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return text, ast.Module([], [])


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(name) | ast.Attribute(_, name):
            return name
    return ""


#: Functions that take the number out of a tensor, as its method ``item`` does.
_NUMBERS = ("float", "int", "bool")
#: Headings of breaks that name a method themselves.
_CALLS = ((_ITEM, "item"), (r"^Unsupported Tensor\.backward\(\)", "backward"),
          (r"^Call to `torch\._dynamo\.graph_break\(\)`", "graph_break"))


def _in(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match["what"] if match else ""


def _named(template: str, pattern: str = _QUOTED) -> Callable[[GraphBreak], str]:
    """Return a sentence with the name that torch gives in its explanation, or in its context where it explains nothing.

    ``""`` where it gives none.
    """

    def say(broken: GraphBreak) -> str:
        name = _in(pattern, broken.explanation.strip() or broken.context)
        return template.format(name) if name else ""

    return say


def _failing_call(broken: GraphBreak) -> str:
    match = re.fullmatch(r"TypeError .*?: (?P<message>\w+\(\).*)", broken.context.strip(), re.DOTALL)
    if match is None:
        return ""
    of_size = "; that value depends on a size that torch keeps open" if "not Sym" in match["message"] else ""
    return f"the call fails with the fake tensors that torch traces with: {code(match['message'])}{of_size}"


def _always(sentence: str) -> Callable[[GraphBreak], str]:
    return lambda broken: sentence


def _of_number(broken: GraphBreak) -> str:
    """Return the cause where torch holds a number of Python's as a tensor: one that it does not know yet."""
    line = broken.location.text if broken.location is not None else ""
    number = "a random number" if re.search(r"\brandom\.\w+\(|\.random\(", line) else (
        "a number of Python's, as random ones are,")
    needed = "does not know this operation on it" if broken.reason.startswith("unimplemented builtin op") else (
        "this line needs its value")
    return f"torch holds {number} as a tensor while it traces, and {needed}"


#: Torch has a symbol for a number, and something needs its value: it is hashed, or chooses an item of a list.
_NEEDS_VALUE = ("a key, a size or an index has to be a known number while the graph is captured, and this one only the "
                "data tells")


def _undecided(broken: GraphBreak) -> str:
    tested = re.match(r"Could not guard on data-dependent expression (?P<what>.+?) \(unhinted: ", broken.reason)
    if tested is not None and re.fullmatch(r"z?u[f]?\d+", tested["what"]):  # (the number itself, which nothing tests)
        return _NEEDS_VALUE
    if tested is None:
        return ""
    text, node = _parsed(broken)
    of_user = broken.location is not None and not is_library(broken.location.filename)
    match node:
        case ast.Module([ast.If(test) | ast.While(test)]) if of_user:
            return f"{code(ast.get_source_segment(text, test) or '')} depends on a number that only the data tells"
    return f"a decision depends on a number that only the data tells: `{tested['what']}`"


def _graph_break(broken: GraphBreak) -> str:
    if broken.location is not None and is_library(broken.location.filename):
        return "a library asks for a graph break here (`torch._dynamo.graph_break()`); your program need not change"
    message = broken.explanation.partition("Message: ")[2].strip().rstrip(".")
    asked = "the program asks for a graph break here (`torch._dynamo.graph_break()`)"
    return asked if message in ("", "None") else f"{asked}: {message}"


def _data_operator(broken: GraphBreak) -> str:
    return "it takes numbers out of a tensor, and a graph has none while it is captured" if (
        "_local_scalar_dense" in broken.explanation) else ""


def _method(broken: GraphBreak) -> str:
    names = re.search(r"method `([^`]+)` of class `([^`]+)`", broken.explanation)
    return f"torch cannot trace the method `{names[1]}` of `{names[2]}`" if names else ""


def _method_in_c(broken: GraphBreak) -> str:
    names = re.search(r"method '(\w+)' implemented in C on user-defined type '(\w+)'", broken.explanation)
    return f"torch cannot trace `{names[1]}` of `{names[2]}`, which is written in C" if names else ""


def _builtin(broken: GraphBreak) -> str:
    name = _in(_QUOTED, broken.explanation)
    if name == "print":
        return "a graph cannot `print`"
    return f"torch cannot trace the built-in `{name}`" if name else ""


def _skipped(broken: GraphBreak) -> str:
    method = bound_method(broken)
    if method:
        return f"torch does not trace `{method}` where the bound method is looked up before the graph begins"
    name = _in(r"(?:function|builtin) `(?:<unknown module>\.)?(?P<what>[^`]+?)\.?`", broken.explanation)
    why = f"torch does not trace `{name}`" if name else ""
    if is_step_of_scheduler(broken):
        return f"{why}, which a learning-rate scheduler wraps (`LRScheduler`); the step behind it is compiled by itself"
    return why


def _numpy(broken: GraphBreak) -> str:
    name = _in(r"numpy function <(?:bound method|built-in method|function) (?P<what>[\w.]+)", broken.explanation)
    return f"torch has no function of its own for NumPy's `{name}`" if name else ""


def _text(broken: GraphBreak) -> str:
    if not met(broken).needs_text:
        return ""
    return "an f-string needs the value of a number, and torch keeps that open" if (
        broken.reason.startswith("BUILD_STRING")) else (
        "`%` needs the value of what it formats, and torch knows none while it captures the graph")


#: Torch's headings (torch/_dynamo/graph_break_registry.json), and what to say of each.
_KINDS: tuple[tuple[str, Callable[[GraphBreak], str]], ...] = (
    (r"^Data-dependent (branching|jump)", _always(
        "which branch is taken depends on values in a tensor, and a graph has none while it is captured")),
    (_ITEM, _always(
        "`.item()` needs a value out of a tensor, and a graph has none while it is captured")),
    (r"^Unsupported Tensor\.backward\(\)", _always("torch does not trace `.backward()`")),
    (r"^Data dependent operator", _data_operator),
    (r"^Data-dependent", _always("it depends on values in a tensor, and a graph has none while it is captured")),
    (r"^Call to `torch\._dynamo\.graph_break\(\)`", _graph_break),
    (r"^Failed to trace builtin operator", _builtin),
    (r"^Attempted to (call|inline) function marked as skipped", _skipped),
    (r"^Unsupported method call", _method),
    (r"^attempted to trace numpy function", _numpy),
    (r"^Unsupported context manager", _named("torch cannot enter the context manager `{}`")),
    (r"^Could not guard on data-dependent expression", _undecided),
    (r"^Could not extract specialized integer from data-dependent expression", _always(_NEEDS_VALUE)),
    (r"^Dynamic shape operator", _named("the size of what `{}` returns depends on values in a tensor")),
    (r"^TypeError when making fake tensor call", _failing_call),
    (r"^Operator does not support running with fake tensors",
     _named("the operator `{}` has no implementation for fake tensors, which torch traces with",
            r"unsupported operator: (?P<what>\S+)")),
    (r"^Unsupported function call", _named("torch does not trace `{}`", _CLASS)),
    (r"^vectorcall_maybe on C method descriptor", _method_in_c),
    (r"^Attempted to copy\.deepcopy a tensor", _always("torch cannot trace `copy.deepcopy` of a tensor")),
    (r"^Attempted to wrap RNN", _always("torch does not trace `nn.RNN`, `nn.GRU` and `nn.LSTM`")),
    (r"^Generator reconstruction with mutations", _always(
        "a generator is at work where the graph breaks, and torch cannot make it anew for the code behind the break")),
    (r"^BUILD_STRING type error|^Observed exception", _text),
    (r"^Backend compiler exception|^Backend compiler failed", _always("the backend could not compile the graph")),
)


def sentences(breaks: Iterable[GraphBreak]) -> list[str]:
    """Return a sentence for each graph break: where and why a graph ends before the function does."""
    result = []
    for each in breaks:
        where = each.location
        at = f" at {os.path.basename(where.filename)}:{where.line} ({statement(where.text)})" if where else ""
        result.append(f"graph break{at}: {cause(each)}")
    return result
