"""The arguments that a graph writes to, read off torch's print of it.

A graph that was captured has the program's own operations in place::

    steps += 1                                # writes to steps
    k.index_copy_(1, pos, x)                  # writes to k
    x[0].mul_(2)                              # writes to x: x[0] is a view of it
    batch_norm(y, mean, var, w, b, True)      # writes to mean and var, when training
    x.to(torch.float32).mul_(2)               # writes to x if it is a tensor of that type already

Operators that are not torch's own are not known to write.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

#: A line without any of these writes to nothing. (Looking for them one by one is much faster than one pattern.)
_SIGNS = ("_(", "_.", "] = ", "inplace", "out=", "out =", "batch_norm(", "instance_norm(",
          *(f" {operator}= " for operator in ("+", "-", "*", "/", "//", "%", "@", "**", "&", "|", "^", "<<", ">>")))
#: What gives a view of its first argument. (``reshape`` does where it can.)
_VIEWS = frozenset({
    "view", "view_as", "reshape", "flatten", "unflatten", "transpose", "t", "permute", "movedim", "swapaxes", "squeeze",
    "unsqueeze", "expand", "expand_as", "narrow", "select", "slice", "split", "split_with_sizes", "chunk",
    "tensor_split", "unbind", "unfold", "diagonal", "detach", "alias", "as_strided", "real", "imag", "view_as_real",
    "view_as_complex", "getitem", "T", "mT", "H", "mH", "data"})
#: Methods that give the tensor itself where it is of the wanted type, and in the wanted place and layout, already.
_CONVERSIONS = frozenset({
    "to", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool",
    "cfloat", "cdouble", "cpu", "cuda", "contiguous"})
#: What stands before the name of a parameter that a value may be a view of, where the text does not tell.
_PERHAPS = "?"
#: Functions that update running statistics: ``name: (places of these, place and name of the switch)``.
_STATISTICS = {"batch_norm": ((1, 2), 5, "training"), "instance_norm": ((1, 2), 5, "use_input_stats")}
#: Names of overloads behind the names of operators.
_OVERLOADS = re.compile(r"\.(?:default|out|self|dim|int|source|Tensor\w*|Scalar\w*|Dimname\w*|Stream\w*)$")


def written_arguments(
    parameters: Sequence[str], body: Sequence[str], types: Mapping[str, str] | None = None
) -> dict[str, bool]:
    """Return the parameters that a graph writes to, in their order: ``True`` where it does, ``False`` where it may.

    Args:
        parameters: their names.
        body: the lines of its ``forward`` in torch's print of it.
        types: what torch prints of the parameters: ``"f32[2][1]cpu"``.
    """
    text = "\n".join(body)
    present = [sign for sign in _SIGNS if sign in text]
    signs = sorted({number for sign in present for number, line in enumerate(body) if sign in line})
    if not signs:
        return {}
    writes = _Writes(parameters, text, types or {})
    for number in signs:
        for statement in _statements(body[number]):
            writes.statement(statement)
    return {name: name in writes.written for name in parameters if {name, _PERHAPS + name} & writes.written}


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

    def __init__(self, parameters: Sequence[str], text: str, types: Mapping[str, str]) -> None:
        self.views: dict[str, frozenset[str]] = {name: frozenset({name}) for name in parameters}
        self.written: set[str] = set()
        self._types = types
        self._text = text

    def named(self, name: str) -> frozenset[str]:
        """Return the parameters that a value is a view of."""
        if name not in self.views:
            self.views[name] = frozenset()
            assignment = self.assignment(name)
            for statement in _statements(assignment[2]) if assignment is not None else ():
                if assignment is not None and isinstance(statement, ast.Expr):
                    self.views[name] = self.seen_through(statement.value, assignment[1] or "")
        return self.views[name]

    def assignment(self, name: str) -> re.Match[str] | None:
        """Return a match of ``(type, expression)`` of the statement that makes a value."""
        return re.search(rf"(?m)(?:^ *|;  ){name}(?:: \"([^\"\n]*)\")? = (?!None\b)([^;\n]*)", self._text)

    def type(self, value: ast.expr) -> str:
        """Return the type that torch prints of a value."""
        if not isinstance(value, ast.Name):
            return ""
        assignment = None if value.id in self._types else self.assignment(value.id)
        if assignment is None:
            return self._types.get(value.id, "")
        return assignment[1] or self._types.get(assignment[2], "")

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

    def seen_through(self, value: ast.expr, result: str = "") -> frozenset[str]:
        """Return the parameters that an expression is a view of.

        Args:
            value: the expression.
            result: what torch prints of its value.
        """
        match value:
            case ast.Name(name):
                return self.named(name)
            case ast.Subscript(base):
                return self.seen_through(base)
            case ast.Attribute(base, name) if name in _VIEWS:
                return self.seen_through(base)
            case ast.Call():
                return self.called(value, result)
            case ast.List(items) | ast.Tuple(items):
                return frozenset().union(*map(self.seen_through, items))
        return frozenset()

    def called(self, call: ast.Call, new_type: str) -> frozenset[str]:
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
        if operation in _CONVERSIONS and not name.startswith("torch.") and not _is_true(keywords.get("copy")):
            return self.converted(arguments[0], new_type)
        return self.seen_through(arguments[0]) if operation in _VIEWS else frozenset()

    def converted(self, value: ast.expr, new_type: str) -> frozenset[str]:
        """Return the parameters that a value is a view of after a conversion that gives a value of a type."""
        views, before = self.seen_through(value), self.type(value)
        if before and new_type and before != new_type:
            return frozenset()
        if before and "][" in new_type:  # (the type tells the layout and the device)
            return views
        return frozenset(name if name.startswith(_PERHAPS) else _PERHAPS + name for name in views)


def _is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True
