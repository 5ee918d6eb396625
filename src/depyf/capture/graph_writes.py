"""Which of its arguments a graph writes to, read off torch's print of it.

A graph that was captured has the program's own operations in place::

    steps += 1                                # writes to steps
    k.index_copy_(1, pos, x)                  # writes to k
    x[0].mul_(2)                              # writes to x: x[0] is a view of it
    batch_norm(y, mean, var, w, b, True)      # writes to mean and var, when training

Operators that are not torch's own are not known to write.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

#: A text without any of these writes to nothing.
_SIGNS = re.compile(r"[a-z\d]_(?:\.\w+)?\(| (?:[-+*/%@&|^]|//|\*\*|<<|>>)= |\] = |inplace ?= ?True|out ?= ?|_norm\(")
#: What gives a view of its first argument. (``reshape`` does where it can.)
_VIEWS = frozenset({
    "view", "view_as", "reshape", "flatten", "unflatten", "transpose", "t", "permute", "movedim", "swapaxes", "squeeze",
    "unsqueeze", "expand", "expand_as", "narrow", "select", "slice", "split", "split_with_sizes", "chunk",
    "tensor_split", "unbind", "unfold", "diagonal", "detach", "alias", "as_strided", "real", "imag", "view_as_real",
    "view_as_complex", "getitem", "T", "mT", "H", "mH", "data"})
#: Functions that update running statistics: ``name: (places of these, place and name of the switch)``.
_STATISTICS = {"batch_norm": ((1, 2), 5, "training"), "instance_norm": ((1, 2), 5, "use_input_stats")}
#: Names of overloads behind the names of operators.
_OVERLOADS = re.compile(r"\.(?:default|out|self|dim|int|source|Tensor\w*|Scalar\w*|Dimname\w*|Stream\w*)$")


def written_arguments(text: str) -> list[str]:
    """Return the names of the parameters that a graph writes to, in the order of its parameters.

    Args:
        text: torch's print of it; nothing is returned for text that is no graph.
    """
    if not _SIGNS.search(text):
        return []
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    if body and isinstance(body[0], ast.ClassDef):
        body = body[0].body
    function = next((each for each in body if isinstance(each, ast.FunctionDef)), None)
    if function is None:
        return []
    names = [argument.arg for argument in function.args.args if argument.arg != "self"]
    found = _Writes(names)
    for statement in function.body:
        found.statement(statement)
    return [name for name in names if name in found.written]


class _Writes:
    """What is known after some statements.

    Attributes:
        views: of which parameters a value is a view, by its name.
        written: parameters that were written to.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.views: dict[str, frozenset[str]] = {name: frozenset({name}) for name in names}
        self.written: set[str] = set()

    def statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.AugAssign):
            self.written |= self.seen_through(statement.target)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            source = self.seen_through(statement.value)
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                if isinstance(target, ast.Name):
                    self.views[target.id] = source
                elif isinstance(target, ast.Subscript):
                    self.written |= self.seen_through(target.value)
        elif isinstance(statement, ast.Expr):
            self.seen_through(statement.value)

    def seen_through(self, value: ast.expr) -> frozenset[str]:
        """The parameters that an expression is a view of."""
        match value:
            case ast.Name(name):
                return self.views.get(name, frozenset())
            case ast.Subscript(base):
                return self.seen_through(base)
            case ast.Attribute(base, name) if name in _VIEWS:
                return self.seen_through(base)
            case ast.Call():
                return self.called(value)
            case ast.List(items) | ast.Tuple(items):
                return frozenset().union(*map(self.seen_through, items))
        return frozenset()

    def called(self, call: ast.Call) -> frozenset[str]:
        name = _OVERLOADS.sub("", ast.unparse(call.func))
        operation = name.rpartition(".")[2]
        arguments = list(call.args)
        if isinstance(call.func, ast.Attribute) and not name.startswith("torch."):
            arguments.insert(0, call.func.value)
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        if operation in _STATISTICS:
            places, switch, word = _STATISTICS[operation]
            if _is_true(keywords.get(word) or (arguments[switch] if len(arguments) > switch else None)):
                self.written |= {name for place in places for name in self.seen_through(arguments[place])}
        if "out" in keywords:
            result = self.seen_through(keywords["out"])
            self.written |= result
            return result
        if not arguments:
            return frozenset()
        if operation.endswith("_") and not operation.endswith("__") or _is_true(keywords.get("inplace")) \
                or name in ("operator.setitem", "_operator.setitem"):
            result = self.seen_through(arguments[0])
            self.written |= result
            return result
        return self.seen_through(arguments[0]) if operation in _VIEWS else frozenset()


def _is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True
