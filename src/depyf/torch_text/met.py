"""What torch met at a graph break: read once from its "developer debug context" and its explanation.

    module: random, qualname: Random.choice, skip reason: ...     ->   module "random", name "Random.choice"
    builtin print [<class ...>] False                             ->   name "print", with the types of its arguments
    aten.nonzero.default                                          ->   module "aten", name "nonzero"
    attempted to jump with UnspecializedPythonVariable()          ->   a number of Python's that torch holds as a tensor

(torch/_dynamo/variables, each ``unimplemented(...)``.)
"""

from __future__ import annotations

from dataclasses import dataclass

from ..patterns import pattern
from ..records.model import GraphBreak

#: The forms of the context, then those of the explanation, that name what was called.
_IN_CONTEXT = (
    pattern(r"module: (?P<module>[^,]*), qualname: (?P<name>[\w.<>]+),"),
    pattern(r"qualname: (?P<name>[\w.<>]+), name: "),
    pattern(r"builtin (?P<name>\w+) \["),
    pattern(r"call_method (?:.*\)|\S+) (?P<name>\w+) [\[({]"),
    pattern(r"target: <(?:function|built-in \w+) (?P<name>[\w.]+) "),
    pattern(r"method: <Logger .*>\.(?P<name>\w+), args: "),
    pattern(r"(?P<module>\w+)\.(?P<name>\w+)\.(?P<overload>\w+)$"),
)
_IN_EXPLANATION = (
    pattern(r"[Ff]unction `?<function (?P<name>[\w.<>]+) at"),
    pattern(r"numpy function <(?:bound method|built-in method|function) (?P<name>[\w.]+)"),
    pattern(r"Operator `(?P<module>\w+)\.(?P<name>\w+)\.(?P<overload>\w+)`"),
    pattern(r"(?:function|method|builtin|operator) `(?P<name>[^`]+?)\.?`"),
)
_TYPES = pattern(r"argument types \[(?P<types>[^\]]*)\]")
_RAISED = pattern(r"raised exception (?P<kind>\w+)\(")
#: Python's words where a part is taken of ``None``.
_OF_NONE = pattern(r"'NoneType' object (?:is not (?:subscriptable|iterable|callable)|has no attribute)")
#: Calls of operators that are not torch's own.
_CUSTOM = pattern(r"\bcustom_op|call_function (?!<built-in|aten\.|prims\.|<function)")
#: Numbers of Python's that torch holds as tensors: those that ``random`` draws, above all.
_NUMBER = "UnspecializedPythonVariable"
#: Methods of a tensor, or of its shape, that came into what is compiled as a value.
_BOUND = pattern(r"module: (?:<unknown module>|None), qualname: (?P<what>(?:Tensor|Parameter|Size)\.\w+),")


@dataclass(frozen=True)
class Met:
    """What torch could not trace.

    Attributes:
        name: of what was called, ``"Random.choice"``, ``"print"``, ``"nonzero"``; ``""`` where torch names nothing.
        module: its module, or the namespace of an operator; ``""`` where torch does not tell.
        overload: of an operator, ``"default"``.
        types: of the arguments of a builtin.
        raised: the exception that left the function, ``"TypeError"``.
        is_number: a number of Python's that torch holds as a tensor.
        is_none: a part was taken of ``None``.
        is_custom: an operator that is not torch's own.
        needs_text: a text needs the value of a number that torch keeps open.
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
        or "TypeError(\"unsupported operand type(s) for %: 'str' and " in broken.context)  # (never of Python's own `%`)


def bound_method(broken: GraphBreak) -> str:
    """Return the method of a tensor, or of its shape, that torch met as a value: ``Tensor.index_fill``; else ``""``.

    Torch traces ``x.index_fill(...)`` as a call of a method. A bound method that comes into what it compiles as a value
    (on the stack of a resume function, in a variable) is to it a built-in of no module, which it skips
    (``torch/_dynamo/variables/builder.py``, ``bound_builtin_method_descriptor``).
    """
    match = _BOUND.match(broken.context) if broken.registry_id == "GB0007" else None
    return match["what"] if match is not None else ""


def is_step_of_scheduler(broken: GraphBreak) -> bool:
    """Return whether a graph broke at ``optimizer.step()``, which a learning-rate scheduler wraps."""
    path = broken.explanation.replace("\\", "/")
    return "torch/optim/lr_scheduler.py" in path and met(broken).last == "step"
