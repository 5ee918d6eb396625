"""What torch met at a graph break: read once from its "developer debug context" and its explanation.

    module: random, qualname: Random.choice, skip reason: ...     ->   module "random", name "Random.choice"
    builtin print [<class ...>] False                             ->   name "print", with the types of its arguments
    aten.nonzero.default                                          ->   module "aten", name "nonzero"
    attempted to jump with UnspecializedPythonVariable()          ->   a number of Python's that torch holds as a tensor

(torch/_dynamo/variables, each ``unimplemented(...)``.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..records.model import GraphBreak, NamedValue

#: By event: ids of torch's registry (``graph_break_registry.json``); how its headings begin, for versions without ids.
EVENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "branch": ("GB0170 GB0035", ("Data-dependent branching", "Data-dependent jump")),
    "assertion": ("GB0034", ("Data-dependent assertion",)),
    "item": ("GB0124", ("Unsupported Tensor.item()",)),
    "number": ("GB0178 GB0213 GB4841", ("Unsupported python_type()", "unimplemented builtin op", "constant fold")),
    "tolist": ("GB0109", ("Tensor.tolist() with non-integer",)),
    "operator": ("GB0033", ("Data dependent operator",)),
    "size": ("GB0036 GB0037", ("Dynamic shape operator",)),
    "symbol": ("", ("Could not extract specialized integer from", "Could not guard on data-dependent expression")),
    "builtin": ("GB0059", ("Failed to trace builtin operator",)),
    "reordered": ("GB0296", ("attempted to reorder",)),
    "logger": ("GB0291", ("logging.Logger method",)),
    "asked": ("GB0025", ("Call to `torch._dynamo.graph_break()`",)),
    "disabled": ("GB0098 GB0099", ("Skip calling `torch.compiler.disable", "Skip inlining `torch.compiler.disable")),
    "copy": ("GB4198", ("Attempted to copy.deepcopy a tensor",)),
    "skipped": ("GB0007 GB0008 GB0156 GB0207 GB0208 GB0294", (
        "Attempted to call function marked as skipped", "Attempted to inline function marked as skipped",
        "Unsupported method call", "sort with non-constant keys", "attempted to trace numpy function")),
    "generator": ("GB0363 GB7650 GB0055", ("An opaque object was created", "torch.Generator method",
                                            "Failed to convert args/kwargs to proxy")),
    "context": ("GB0142", ("Unsupported context manager",)),
    "iterator": ("GB0811 GB4347", ("missing tp_iter", "Missing tp_iternext")),
    "attribute": ("GB0467", ("setattr() on unsupported type",)),
    "exception": ("GB0088 GB0021", ("Observed exception", "BUILD_STRING type error")),
    "fails": ("GB4315", ("RuntimeError when making fake tensor call",)),
    "backward": ("GB0123", ("Unsupported Tensor.backward()",)),
    "gradients": ("GB9186", ("using `torch.autograd.grad`",)),
    "recurrent": ("GB0014", ("Attempted to wrap RNN",)),
    "class": ("GB8977", ("Invalid call to __build_class__",)),
    "parameter": ("GB0264 GB0119", ("Attempted to use `torch.nn.Parameter()`", "Uninitialized nn")),
}
#: The forms of the context, then those of the explanation, that name what was called.
_IN_CONTEXT = (
    re.compile(r"module: (?P<module>[^,]*), qualname: (?P<name>[\w.<>]+),"),
    re.compile(r"qualname: (?P<name>[\w.<>]+), name: "),
    re.compile(r"builtin (?P<name>\w+) \["),
    re.compile(r"call_method (?:.*\)|\S+) (?P<name>\w+) [\[({]"),
    re.compile(r"target: <(?:function|built-in \w+) (?P<name>[\w.]+) "),
    re.compile(r"method: <Logger .*>\.(?P<name>\w+), args: "),
    re.compile(r"(?P<module>\w+)\.(?P<name>\w+)\.(?P<overload>\w+)$"),
)
_IN_EXPLANATION = (
    re.compile(r"[Ff]unction `?<function (?P<name>[\w.<>]+) at"),
    re.compile(r"numpy function <(?:bound method|built-in method|function) (?P<name>[\w.]+)"),
    re.compile(r"Operator `(?P<module>\w+)\.(?P<name>\w+)\.(?P<overload>\w+)`"),
    re.compile(r"(?:function|method|builtin|operator) `(?P<name>[^`]+?)\.?`"),
)
_TYPES = re.compile(r"argument types \[(?P<types>[^\]]*)\]")
_RAISED = re.compile(r"raised exception (?P<kind>\w+)\(")
#: Python's words where a part is taken of ``None``.
_OF_NONE = re.compile(r"'NoneType' object (?:is not (?:subscriptable|iterable|callable)|has no attribute)")
#: Calls of operators that are not torch's own.
_CUSTOM = re.compile(r"\bcustom_op|call_function (?!<built-in|aten\.|prims\.|<function)")
#: Numbers of Python's that torch holds as tensors: those that ``random`` draws, above all.
_NUMBER = "UnspecializedPythonVariable"
_GENERATOR = ("(Generator)", "C.Generator", "torch.Generator")
#: Methods of a tensor, or of its shape, that came into what is compiled as a value.
_BOUND = re.compile(r"module: (?:<unknown module>|None), qualname: (?P<what>(?:Tensor|Parameter|Size)\.\w+),")


@dataclass(frozen=True)
class Met:
    """What torch could not trace.

    Attributes:
        name: of what was called, ``"Random.choice"``, ``"print"``, ``"nonzero"``; ``""`` where torch names nothing.
        module: its module, or the namespace of an operator; ``""`` where torch names none.
        overload: of an operator, ``"default"``.
        types: of the arguments of a builtin.
        raised: the exception that left the function, ``"TypeError"``.
        is_number: a number of Python's that torch holds as a tensor.
        is_none: a part was taken of ``None``.
        is_custom: an operator that is not torch's own.
        needs_text: a text needs the value of a number that torch keeps open.
        is_generator: a ``torch.Generator``.
        is_in_operator: a function that an operator calls (``torch.cond``) would do it.
        has_no_meta: an operator that torch cannot run without values.
    """

    name: str = ""
    module: str = ""
    overload: str = ""
    types: tuple[str, ...] = ()
    raised: str = ""
    is_number: bool = False
    is_none: bool = False
    is_custom: bool = False
    needs_text: bool = False
    is_generator: bool = False
    is_in_operator: bool = False
    has_no_meta: bool = False

    @property
    def last(self) -> str:
        """The name without what it is an attribute of."""
        return self.name.rpartition(".")[2]


def met(broken: GraphBreak) -> Met:
    """Return what torch met at a graph break."""
    found = next((match for text, forms in ((broken.context, _IN_CONTEXT), (broken.explanation, _IN_EXPLANATION))
                  for form in forms if (match := form.search(text))), None)
    named = found.groupdict() if found is not None else {}
    if broken.reason.startswith("sort with non-constant keys"):  # (It names the type of a key.)
        named = {"name": "sorted"}
    types, raised = _TYPES.search(broken.explanation), _RAISED.search(broken.context)
    return Met(
        named.get("name", ""), named.get("module") or "", named.get("overload") or "",
        tuple(each.strip().strip("'") for each in types["types"].split(",")) if types is not None else (),
        raised["kind"] if raised is not None else "", _NUMBER in broken.context,
        _OF_NONE.search(broken.context) is not None, _CUSTOM.search(broken.explanation) is not None,
        broken.reason.startswith("BUILD_STRING type error") and broken.context.startswith("SymNodeVariable")
        or "TypeError(\"unsupported operand type(s) for %: 'str' and " in broken.context,  # (never of Python's own `%`)
        any(each in broken.context for each in _GENERATOR), "Higher Order" in broken.reason,
        "no meta kernel" in broken.reason)


def events_of(broken: GraphBreak) -> list[str]:
    """Return the keys of :data:`EVENTS` that a graph break is one of."""
    known = broken.registry_id
    return [event for event, (ids, headings) in EVENTS.items()
            if (known in ids.split() if known else broken.reason.startswith(headings))]


def bound_method(broken: GraphBreak) -> str:
    """Return the method of a tensor, or of its shape, that torch met as a value: ``Tensor.index_fill``; else ``""``.

    Torch traces ``x.index_fill(...)`` as a call of a method. A bound method that comes into what it compiles as a value
    (on the stack of a resume function, in a variable) is to it a built-in of no module, which it skips
    (``torch/_dynamo/variables/builder.py``, ``bound_builtin_method_descriptor``).
    """
    match = _BOUND.match(broken.context) if broken.registry_id == "GB0007" else None
    return match["what"] if match is not None else ""


def is_drawn(value: NamedValue) -> bool:
    """Return whether a variable is a number that ``random`` drew (``RandomValueSource``), to torch a tensor."""
    return value.source.startswith("random_value_")


def is_step_of_scheduler(broken: GraphBreak) -> bool:
    """Return whether a graph broke at ``optimizer.step()``, which a learning-rate scheduler wraps."""
    path = broken.explanation.replace("\\", "/")
    return "torch/optim/lr_scheduler.py" in path and met(broken).last == "step"


# --- contexts entered at a break ---------------------------------------------------------------------
# Stack variable source attribution:
#   WithExitFunctionVariable() originated from:
#   File "/home/a/model.py", line 14                ->  [14]
#         with counting({}):
_EXIT = re.compile(r'WithExitFunctionVariable\(\) originated from:\n\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+)')
#: Torch's heading where a context is entered that it cannot leave and enter again at a graph break.
NOT_AGAIN = "Graph break under GenericContextWrappingVariable"


def entered_contexts(account: str, filename: str) -> list[int]:
    """Return the lines of the ``with`` statements of a file that were entered at a break, the outermost first."""
    return list(dict.fromkeys(int(match["line"]) for match in _EXIT.finditer(account) if match["file"] == filename))


# --- frames of quoted stacks -------------------------------------------------------------------------
FRAME = re.compile(
    r'^ *File "(?P<file>[^"\n]*)", line (?P<line>\d+), in (?P<function>[^\n]*)\n(?: {4,}(?P<text>[^\n]*))?', re.M)
