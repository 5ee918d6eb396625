"""What torch met at a graph break: read once from its "developer debug context" and its explanation.

    module: random, qualname: Random.choice, skip reason: ...     ->   module "random", name "Random.choice"
    builtin print [<class ...>] False                             ->   name "print", with the types of its arguments
    aten.nonzero.default                                          ->   module "aten", name "nonzero"
    attempted to jump with UnspecializedPythonVariable()          ->   a number of Python's that torch holds as a tensor

(torch/_dynamo/variables, each ``unimplemented(...)``.)
"""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Iterable, Mapping

from ..records.model import GraphBreak, NamedValue, SourceLocation
from ..values import frozen


@frozen
class Kind:
    """A kind of graph break, as torch's registry has it (``graph_break_registry.json``)."""

    event: str  # its name in the rules of advice; "" where there is no rule
    ids: str  # in the registry
    headings: tuple[str, ...]  # how its headings begin
    call: str = ""  # the function or method that it is of, where torch names none


#: Of headings that begin alike the longer one comes first.
KINDS: Mapping[str, Kind] = {
    "branch": Kind("branch", "GB0170 GB0035", ("Data-dependent branching", "Data-dependent jump")),
    "branch on a symbol": Kind("symbol", "", ()),
    "assertion": Kind("assertion", "GB0034", ("Data-dependent assertion",)),
    "failed assertion": Kind("assert", "GB0002", ("Assertion failed on symbolic shapes",)),
    "data": Kind("", "", ("Data-dependent",)),
    "item": Kind("item", "GB0124", ("Unsupported Tensor.item()",)),
    "operation": Kind("number", "GB0213", ("unimplemented builtin op",)),
    "constant": Kind("number", "GB0178", ("constant fold",)),
    "python type": Kind("number", "GB4841", ("Unsupported python_type()",)),
    "tolist": Kind("", "GB0109", ("Tensor.tolist() with non-integer",)),
    "operator": Kind("operator", "GB0033", ("Data dependent operator",)),
    "size": Kind("size", "GB0036 GB0037", ("Dynamic shape operator",)),
    "value": Kind("symbol", "", ("Could not extract specialized integer from",)),
    "undecided": Kind("symbol", "", ("Could not guard on data-dependent expression",)),
    "builtin": Kind("builtin", "GB0059", ("Failed to trace builtin operator",)),
    "reordered": Kind("reordered", "GB0296", ("attempted to reorder",)),
    "logger": Kind("logger", "GB0291", ("logging.Logger method",)),
    "asked": Kind("asked", "GB0025", ("Call to `torch._dynamo.graph_break()`",)),
    "disabled": Kind("disabled", "GB0098 GB0099", (
        "Skip calling `torch.compiler.disable", "Skip inlining `torch.compiler.disable")),
    "copy": Kind("copy", "GB4198", ("Attempted to copy.deepcopy a tensor",)),
    "no tensor": Kind("returned", "GB0208 GB0292", (
        "torch.* op returned non-Tensor", "constant-like method call with unsupported return type")),
    "skipped": Kind("skipped", "GB0007 GB0008", (
        "Attempted to call function marked as skipped", "Attempted to inline function marked as skipped")),
    "method": Kind("skipped", "GB0156", ("Unsupported method call",)),
    "reconstruction": Kind("", "GB0092", ("Reconstruction failure",)),
    "sort": Kind("skipped", "GB0207", ("sort with non-constant keys",), "sorted"),
    "handle": Kind("skipped", "GB0013", ("Attempted to represent unregistered RemovableHandle",), "remove"),
    "numpy": Kind("skipped", "GB0294", ("attempted to trace numpy function",)),
    "function": Kind("", "", ("Unsupported function call",)),
    "method in C": Kind("", "", ("vectorcall_maybe on C method descriptor",)),
    "generator": Kind("generator", "GB0363 GB7650 GB0055", (
        "An opaque object was created", "torch.Generator method", "Failed to convert args/kwargs to proxy")),
    "running generator": Kind("", "", ("Generator reconstruction with mutations",)),
    "context": Kind("context", "GB0142", ("Unsupported context manager",)),
    "iterator": Kind("iterator", "GB0811", ("missing tp_iter",)),
    "next": Kind("iterator", "GB4347", ("Missing tp_iternext",)),
    "attribute": Kind("skipped", "GB0467", ("setattr() on unsupported type",)),
    "in place": Kind("skipped", "GB0148 GB0247", (
        "Unsupported function call (delayed)", "Shape mismatch with out= tensor variant")),
    "exception": Kind("exception", "GB0088", ("Observed exception",)),
    "string": Kind("exception", "GB0021", ("BUILD_STRING type error",)),
    "fails": Kind("fails", "GB4315", ("RuntimeError when making fake tensor call",)),
    "fails on types": Kind("", "", ("TypeError when making fake tensor call",)),
    "no fake": Kind("", "", ("Operator does not support running with fake tensors",)),
    "backward": Kind("backward", "GB0123", ("Unsupported Tensor.backward()",)),
    "gradients": Kind("gradients", "GB9186", ("using `torch.autograd.grad`",)),
    "recurrent": Kind("recurrent", "GB0014", ("Attempted to wrap RNN",)),
    "leaked": Kind("leaked", "GB8985", ("requires_grad_() intermediate leaked",)),
    "sparse": Kind("sparse", "GB0015", ("Attempted to wrap sparse Tensor",)),
    "class": Kind("class", "GB8977", ("Invalid call to __build_class__",)),
    "effect": Kind("effect", "GB0067 GB4413", ("HOP: Unsafe side effect", "HOP: Non-nullified side effect")),
    "backend": Kind("", "", ("Backend compiler exception", "Backend compiler failed")),
}
_BY_ID = {each: kind for kind, of in KINDS.items() for each in of.ids.split()}
#: The forms of the context, then those of the explanation, that name what was called.
_IN_CONTEXT = (
    re.compile(r"module: (?P<module>[^,]*), qualname: (?P<name>[\w.<>]+),"),
    re.compile(r"qualname: (?P<name>[\w.<>]+), name: "),
    re.compile(r"builtin (?P<name>\w+) \["),
    re.compile(r"torch\.Generator\.(?P<name>\w+)$"),
    re.compile(r"call_method (?:.*\)|\S+) (?P<name>\w+) [\[({]"),
    re.compile(r"target: <(?:function|built-in \w+) (?P<name>[\w.]+) "),
    re.compile(r"method: <Logger .*>\.(?P<name>\w+), args: "),
    re.compile(r"unsupported operator: (?P<name>\S+)"),
    re.compile(r"(?P<module>\w+)\.(?P<name>\w+)\.(?P<overload>\w+)$"),
    re.compile(r"source: AttrSource\(.* member='(?P<name>\w+)'\)$"),
    re.compile(r"fn=<built-in method (?P<name>\w+) of type object at "),
)
_IN_EXPLANATION = (
    re.compile(r"[Ff]unction `?<function (?P<name>[\w.<>]+) at"),
    re.compile(r"numpy function <(?:bound method|built-in method|(?:cy)?function) (?P<name>[\w.]+)"),
    re.compile(r"Operator `(?P<module>\w+)\.(?P<name>\w+)\.(?P<overload>\w+)`"),
    re.compile(r"(?:function|method|builtin|operator) `(?P<name>[^`]+?)\.?`"),
)
#: How the explanation names it.
_SHOWN = (
    re.compile(r"(?:function|builtin) `(?:<unknown module>\.)?(?P<what>[^`]+?)\.?`"),
    re.compile(r"`(?P<what>[^`]+?)\.?`"),
)
_CLASS = re.compile(r"`<class '(?P<what>[\w.]+)'>`")
_METHOD = re.compile(r"method [`'](?P<method>[^`']+)[`'] (?:of class|implemented in C on user-defined type) "
                     r"[`'](?P<owner>[^`']+)[`']")
_MESSAGE = re.compile(r"Message: (?P<what>.*)", re.S)
_TYPE_ERROR = re.compile(r"\s*TypeError .*?: (?P<what>\w+\(\).*?)\s*\Z", re.S)
_TESTED = re.compile(r"Could not guard on data-dependent expression (?P<what>.+?) \(unhinted: ")
#: Branches on a size or number without a value, and on a constant, as only an assertion that fails has it.
_WITHOUT_TENSOR = {"SymNodeVariable": "branch on a symbol", "ConstantVariable": "failed assertion"}
_UNBACKED = re.compile(r"z?uf?\d+")  #: A number whose value depends on the data, as torch names it.
#: Longer headings are messages of errors, of which the first sentence is shown.
_LONG = 200
_TYPES = re.compile(r"argument types \[(?P<what>[^\]]+)\]")
_OPERATOR = re.compile(r"Higher Order Operator: (?P<what>\S+)")
#: Torch's own error where a resume function raises a class (or the user's, of ``raise 5``).
_NO_EXCEPTION = "exceptions must derive from BaseException"
_RAISED = re.compile(r"raised exception (?P<what>\w+)\(")
#: Numbers of Python's that torch holds as tensors: those that ``random`` draws, above all.
_NUMBER = "UnspecializedPythonVariable"
#: The iterator of a ``range`` to such a number.
_OF_RANGE = "DelayGraphBreakVariable()"
_GENERATOR = ("(Generator)", "C.Generator", "torch.Generator")
#: Methods of a tensor, or of its shape, that came into what is compiled as a value.
_BOUND = re.compile(r"module: (?:<unknown module>|None), qualname: (?P<what>(?:Tensor|Parameter|Size)\.\w+),")


@frozen
class Met:
    """What torch could not trace. Texts are empty where torch names nothing."""

    kind: str = ""  # key of :data:`KINDS`, by the id or (versions without ids) by the heading
    event: str = ""  # its name in the rules of advice; "" for an id that they do not know
    heading: str = ""  # torch's, without its full stop; of the message of an error the first sentence
    name: str = ""  # of what was called: "Random.choice", "print", "nonzero"
    module: str = ""  # its module, or the namespace of an operator
    overload: str = ""  # of an operator: "default"
    shown: str = ""  # its name in torch's explanation (or context, where there is none): "random.choice"
    cls: str = ""  # a class that was called: "itertools.tee"
    method: str = ""
    owner: str = ""  # the class of the method
    message: str = ""  # given to ``torch._dynamo.graph_break``; of a ``TypeError``
    tested: str = ""  # a condition on numbers whose values depend on the data
    types: tuple[str, ...] = ()  # of the arguments of a builtin
    raised: str = ""  # the exception that left the function: "TypeError"; not where it is torch's own
    raises_class: bool = False  # that: a resume function raises what is on the stack, the class of an ``assert``
    is_number: bool = False  # a Python number that torch represents as a tensor
    needs_text: bool = False  # a text needs the value of a number that torch leaves open
    is_generator: bool = False  # a ``torch.Generator``
    operator: str = ""  # the higher-order operator of which a function would do it: "autograd.Function"
    fails_on_symbol: bool = False  # an error: a size that torch leaves open is no number

    @property
    def last(self) -> str:
        """The name without what it is an attribute of."""
        return self.name.rpartition(".")[2]


@functools.lru_cache(1024)
def met(broken: GraphBreak) -> Met:
    """Return what torch met at a graph break."""
    context, explanation = broken.context, broken.explanation
    named = next((match.groupdict("") for text, forms in ((context, _IN_CONTEXT), (explanation, _IN_EXPLANATION))
                  for form in forms if (match := form.search(text))), {})
    known = _BY_ID.get(broken.registry_id)
    kind = known or next((kind for kind, of in KINDS.items() if broken.reason.startswith(of.headings)), "")
    if kind and KINDS[kind].call:
        named = {"name": KINDS[kind].call}
    if kind == "branch":
        kind = next((other for variable, other in _WITHOUT_TENSOR.items() if variable in context), kind)
    account = explanation.strip() or context
    method = match.groupdict() if (match := _METHOD.search(explanation)) else {}
    types, tested = _first_match(explanation, _TYPES), _first_match(broken.reason, _TESTED)
    return Met(
        kind="value" if _UNBACKED.fullmatch(tested) else kind,  # (the number itself, which nothing tests)
        event=KINDS[kind].event if kind and (known or not broken.registry_id) else "",
        heading=_heading(broken.reason),
        name=named.get("name", ""), module=named.get("module", ""), overload=named.get("overload", ""),
        shown=_first_match(account, *_SHOWN), cls=_first_match(account, _CLASS), **method,
        message=_first_match(explanation, _MESSAGE).strip().rstrip(".") or _first_match(context, _TYPE_ERROR),
        tested=tested,
        types=tuple(each.strip().strip("'") for each in types.split(",")) if types else (),
        raised="" if _NO_EXCEPTION in context else _first_match(context, _RAISED),
        raises_class=_NO_EXCEPTION in context,
        is_number=_NUMBER in context or kind == "python type" and context.startswith(_OF_RANGE),
        needs_text=kind == "string" and context.startswith("SymNodeVariable")
        or "TypeError(\"unsupported operand type(s) for %: 'str' and " in context,  # (never of Python's own `%`)
        is_generator=any(each in context for each in _GENERATOR),
        operator=_first_match(broken.reason, _OPERATOR),
        fails_on_symbol="not Sym" in context)


def _first_match(text: str, *forms: re.Pattern[str]) -> str:
    return next((match["what"] for form in forms if (match := form.search(text)) is not None), "")


def _heading(reason: str) -> str:
    """Return a heading that fits on a line: of an error torch gives the whole message, with stacks."""
    reason = reason.rstrip(".")
    if len(reason) <= _LONG:
        return reason
    first = reason.partition("\n")[0]
    sentence = re.split(r"(?<=[.!?])\s|\s\((?=unhinted|Size-like)", first)[0].rstrip(". ")
    return textwrap.shorten(sentence, _LONG, placeholder=" ...")


def what_blocks(broken: GraphBreak) -> str:
    """Return what keeps torch from going on after a graph break.

    ``"loop"``, ``"context"`` (one that cannot be left and entered again), ``"other"``; ``""`` where nothing does.
    """
    return next((what for what, heading in _BLOCKS if broken.gave_up.startswith(heading)),
                "other" if broken.gave_up else "")


def bound_method(broken: GraphBreak) -> str:
    """Return the method of a tensor, or of its shape, that torch met as a value: ``Tensor.index_fill``; else ``""``.

    Torch traces ``x.index_fill(...)`` as a call of a method. A bound method that comes into what it compiles as a value
    (on the stack of a resume function, in a variable) is to it a built-in of no module, which it skips
    (``torch/_dynamo/variables/builder.py``, ``bound_builtin_method_descriptor``).
    """
    match = _BOUND.match(broken.context) if _BY_ID.get(broken.registry_id) == "skipped" else None
    return match["what"] if match is not None else ""


def is_drawn(value: NamedValue) -> bool:
    """Return whether a variable is a number that ``random`` drew (``RandomValueSource``), to torch a tensor."""
    return value.source.startswith("random_value_")


def is_step_of_scheduler(broken: GraphBreak) -> bool:
    """Return whether a graph broke at ``optimizer.step()``, which a learning-rate scheduler wraps."""
    path = broken.explanation.replace("\\", "/")
    return "torch/optim/lr_scheduler.py" in path and met(broken).last == "step"


def is_fundamental(hint: str) -> bool:
    """Return whether torch's hint says that Dynamo will never trace such code (the program may be changed)."""
    return hint.startswith("This graph break is fundamental")


def in_order(hints: Iterable[str]) -> list[str]:
    """Return torch's hints with those last that ask for a report: no program is better for one."""
    return sorted(hints, key=lambda hint: "report an issue" in hint)


def is_computation(text: str) -> bool:
    """Return whether a part of an explanation shows all that the tensor tested by a branch is computed of."""
    return text.startswith("The branch condition involves")


IN_LOOP = "graph break in loop"  #: Torch's heading of a break that a loop does not let it continue from.
#: Torch's headings where it cannot continue.
_BLOCKS = (("loop", IN_LOOP), ("context", "Graph break under GenericContextWrappingVariable"))


# --- frames of quoted stacks -------------------------------------------------------------------------
_FRAME = re.compile(r'^ *File "([^"\n]*)", line (\d+), in ([^\n]*)\n(?: {4,}([^\n]*))?', re.M)


def frames_in(stack: str) -> list[SourceLocation]:
    """Return the places that a stack names, outermost first."""
    return [SourceLocation(file, int(line), function.strip(), text.strip())
            for file, line, function, text in _FRAME.findall(stack)]
