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
from collections.abc import Sequence

#: A line without any of these writes to nothing. (Looking for them one by one is much faster than one pattern.)
_SIGNS = ("_(", "_.", "] = ", "inplace", "out=", "out =", "batch_norm(", "instance_norm(",
          *(f" {operator}= " for operator in ("+", "-", "*", "/", "//", "%", "@", "**", "&", "|", "^", "<<", ">>")))
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


def written_arguments(parameters: Sequence[str], body: Sequence[str]) -> list[str]:
    """Return the parameters that a graph writes to, in their order.

    Args:
        parameters: their names.
        body: the lines of its ``forward`` in torch's print of it.
    """
    text = "\n".join(body)
    present = [sign for sign in _SIGNS if sign in text]
    signs = [line for line in body if any(sign in line for sign in present)] if present else []
    if not signs:
        return []
    found = _Writes(parameters, text)
    for line in signs:
        for statement in _statements(line):
            found.statement(statement)
    return [name for name in parameters if name in found.written]


def _statements(line: str) -> list[ast.stmt]:
    try:
        return ast.parse(line.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


class _Writes:
    """The writes of a graph. Of its statements only those are read that matter: parsing a large graph takes long.

    Attributes:
        views: of which parameters a value is a view, by its name.
        written: parameters that were written to.
    """

    def __init__(self, parameters: Sequence[str], text: str) -> None:
        self.views: dict[str, frozenset[str]] = {name: frozenset({name}) for name in parameters}
        self.written: set[str] = set()
        self._text = text

    def named(self, name: str) -> frozenset[str]:
        """The parameters that a value is a view of."""
        if name not in self.views:
            self.views[name] = frozenset()
            made = re.search(rf"(?m)(?:^ *|;  ){name}(?:: \"[^\"\n]*\")? = (?!None\b)([^;\n]*)", self._text)
            for statement in _statements(made[1]) if made is not None else ():
                if isinstance(statement, ast.Expr):
                    self.views[name] = self.seen_through(statement.value)
        return self.views[name]

    def statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.AugAssign):
            self.written |= self.seen_through(statement.target)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                if isinstance(target, ast.Subscript):
                    self.written |= self.seen_through(target.value)
            self.seen_through(statement.value)
        elif isinstance(statement, ast.Expr):
            self.seen_through(statement.value)

    def seen_through(self, value: ast.expr) -> frozenset[str]:
        """The parameters that an expression is a view of."""
        match value:
            case ast.Name(name):
                return self.named(name)
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
