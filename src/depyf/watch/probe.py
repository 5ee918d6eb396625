"""A running function of a graph, with a check after each line that computes something.

The function object stays; while it is observed, it has the code of the same text with calls between the statements, and
its own code again afterwards. That works in every thread (the backward pass has its own) and with any debugger, and the
pause is a ``breakpoint()`` in the graph's own frame, where its tensors are live. The calls are on the lines of the
statements that they follow, so breakpoints and tracebacks stay right.
"""

from __future__ import annotations

import ast
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, Literal, Protocol

from ..link.graph_code import named_like, nested_codes
from ..link.lifetimes import is_release, node_groups
from ..values import frozen

#: Local variable with the observation of the call.
LOCAL = "__depyf_watch__"
_MARK = "__depyf_observe__ (replaced by the function that begins an observation)"


class CannotWatch(Exception):
    """The function cannot be observed."""


class Observation(Protocol):
    """One call of an observed function."""

    def before(self, step: Step, reads: tuple[Any, ...]) -> None:
        """Look at the values of ``step.reads`` before the step."""

    def after(self, step: Step, writes: tuple[Any, ...], reads: tuple[Any, ...]) -> bool:
        """Look at the values of a step after it, and return whether to pause in the frame of the function."""


#: Begins an observation; called with nothing at the beginning of each call of the function.
Observer = Callable[[], Observation]


class _Probe:
    """The steps of an observed function, and its observers."""

    def __init__(self, original: CodeType, steps: Sequence[Step]) -> None:
        self.original = original
        self.steps = steps
        self.observers: list[Observer] = []

    def begin(self) -> _Call:
        return _Call(self.steps, [observer() for observer in list(self.observers)])


class _Call:
    """A call of an observed function: the inserted calls go here, and to all observations."""

    def __init__(self, steps: Sequence[Step], observations: Sequence[Observation]) -> None:
        self.steps = steps
        self.observations = observations

    def before(self, index: int, *reads: Any) -> None:
        for observation in self.observations:
            observation.before(self.steps[index], reads)

    def after(self, index: int, writes: tuple[Any, ...], reads: tuple[Any, ...]) -> tuple[_Call, ...]:
        """Return one item, to pause, or none."""
        pause = [observation.after(self.steps[index], writes, reads) for observation in self.observations]
        return (self,) if any(pause) else ()


_probes: weakref.WeakKeyDictionary[FunctionType, _Probe] = weakref.WeakKeyDictionary()
_lock = threading.RLock()


def observe(
    function: FunctionType, text: str, groups_of: Callable[[ast.Module, int], Sequence[Group]], observer: Observer
) -> Callable[[], None]:
    """Observe each call of a function until the returned function is called.

    Args:
        text: its Python source, with the same line numbers.
        groups_of: returns the steps of the function that begins at a line of the parsed text.
        observer: begins an observation.

    Raises:
        CannotWatch: the function is not in the text.
    """
    with _lock:
        probe = _probes.get(function)
        if probe is None:
            code, steps = _observed(function, text, groups_of)
            probe = _Probe(function.__code__, steps)
            function.__code__ = code.replace(
                co_consts=tuple(probe.begin if const == _MARK else const for const in code.co_consts))
            _probes[function] = probe
        probe.observers.append(observer)
    reference = weakref.ref(function)

    def leave() -> None:
        with _lock:
            if observer in probe.observers:
                probe.observers.remove(observer)
            running = reference()
            if not probe.observers and running is not None and _probes.get(running) is probe:
                del _probes[running]
                running.__code__ = probe.original

    return leave


def _observed(
    function: FunctionType, text: str, groups_of: Callable[[ast.Module, int], Sequence[Group]]
) -> tuple[CodeType, list[Step]]:
    running = function.__code__
    try:
        tree = ast.parse(text)
        groups = groups_of(tree, running.co_firstlineno)
        definition = find_function(tree, running.co_firstlineno)
        if definition is None:
            raise CannotWatch(f"no function begins at line {running.co_firstlineno} of its file")
        steps = [group.step for group in groups]
        _insert(groups)
        _begin(definition.body)
        ast.fix_missing_locations(tree)
        top = compile(tree, running.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CannotWatch(f"its text cannot be compiled ({type(error).__name__}: {error})") from None
    codes = [code for code in nested_codes(top)
             if code.co_firstlineno == running.co_firstlineno and _MARK in code.co_consts]
    for code in codes:
        count = running.co_argcount + running.co_kwonlyargcount
        if code.co_varnames[:count] == running.co_varnames[:count] and code.co_freevars == running.co_freevars \
                and code.co_argcount == running.co_argcount:
            return named_like(code, running).replace(co_flags=running.co_flags), steps
    raise CannotWatch("its text is another function")


# --- the calls between the statements -------------------------------------------------------------
def _begin(body: list[ast.stmt]) -> None:
    """Begin a body with ``__depyf_watch__ = <begin>`` and ``__depyf_watch__ = __depyf_watch__()``."""
    at = 1 if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1 else 0
    place = body[at]
    check = ast.parse(f"{LOCAL} = {_MARK!r}\n{LOCAL} = {LOCAL}()").body
    body[at:at] = [_at_line(each, place.lineno) for each in check]


def _insert(groups: Sequence[Group]) -> None:
    """Insert ``...before(...)`` before each step, and after it ``for <itself> in ...after(...): breakpoint()``.

    The back edge of the loop is on the line, and calls nothing, so a debugger stops there: in the graph's frame, before
    the line releases anything.
    """
    # (In reverse, so that indices in a body stay valid.)
    for number, group in reversed(list(enumerate(groups))):
        step = group.step
        reads = "".join(f"{each}, " for each in step.reads)
        writes = "".join(f"{each}, " for each in step.writes)
        after = ast.parse(f"for {LOCAL} in {LOCAL}.after({number}, ({writes}), ({reads})): breakpoint()").body[0]
        group.body.insert(group.last + 1, _at_line(after, step.end_line))
        if step.kind == "call" and step.reads:
            before = ast.parse(f"{LOCAL}.before({number}, {reads})").body[0]
            group.body.insert(group.index, _at_line(before, step.line))


def _at_line(statement: ast.stmt, line: int) -> ast.stmt:
    for node in ast.walk(statement):
        if isinstance(node, (ast.expr, ast.stmt, ast.keyword)):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
    return statement


# --- The lines of a graph, or of a generated module, that compute something ---------------------------
# A *step* is such a line, with its reads and writes. Only the form of torch's texts is used here:
#
# * of a graph, a statement computes one node, then values are released (``x = None``, see
#   :mod:`depyf.link.lifetimes`). In-place operations are ``x += 1`` and ``x[0] = 2``, followed by ``y = x``;
# * in ``call`` of a generated module, buffers are allocated (their memory holds anything), kernels write to them, and
#   library calls write to ``out=`` or give a result.
#: ``"input"``: the line binds an argument, or an attribute of the module; ``"empty"``: uninitialized memory;
#: ``"call"``: anything that computes.
Kind = Literal["input", "empty", "call"]

#: They return uninitialized memory (``torch.empty_like``, ``aten.new_empty.default``).
_EMPTY = frozenset(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize_ empty_quantized".split())
#: In-place operations that do not read what they write to.
_OVERWRITE = frozenset(
    "copy_ fill_ zero_ normal_ uniform_ random_ bernoulli_ exponential_ geometric_ log_normal_ cauchy_".split())
#: A view that is made where it is used; it can be made again.
_REPEATABLE = frozenset({"reinterpret_tensor"})


@frozen
class Step:
    """A line that binds or computes something.

    Attributes:
        line, end_line: from 1.
        reads: expressions for what it reads, mostly names.
        writes: for what it writes.
        changes: those of the reads that it writes to, where the text says so (an in-place kernel).
        opaque: an operation whose writes to its arguments torch's version counters may not count.
        literals: those of ``{"inf", "nan"}`` that are constants in the line.
    """

    line: int
    end_line: int
    kind: Kind
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    opaque: bool = False
    literals: frozenset[str] = frozenset()


@dataclass
class Group:
    """The statements of one step: those from ``index`` to ``last`` of ``body``."""

    step: Step
    body: list[ast.stmt]
    index: int
    last: int


def find_function(tree: ast.AST, line: int) -> ast.FunctionDef | None:
    """Return the function that begins at a line, or whose decorators do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if line in (first, node.lineno):
                return node
    return None


# --- graphs ---------------------------------------------------------------------------------------
def graph_steps(function: ast.FunctionDef) -> list[Group]:
    """Return the steps of ``forward`` of a graph, in order."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    known = {each.arg for each in every if each.arg != "self"}
    result: list[Group] = []
    body = function.body
    for index, last in node_groups(body):
        end = last
        while end >= index and is_release(body[end]):
            end -= 1
        if end >= index:
            step = _graph_step(body[index : end + 1], known)
            if step is not None:
                result.append(Group(step, body, index, end))
                known.update(step.writes)
    return result


def _graph_step(statements: Sequence[ast.stmt], known: Collection[str]) -> Step | None:
    if isinstance(statements[0], (ast.Return, ast.Expr, ast.FunctionDef, ast.ClassDef, ast.Pass)):
        return None
    writes = list(dict.fromkeys(
        name.id for statement in statements for name in ast.walk(statement)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)))
    in_place = [statement for statement in statements if not isinstance(_target(statement), ast.Name)
                or isinstance(statement, ast.AugAssign)]
    reads = list(dict.fromkeys(
        name.id for statement in statements for name in _names(statement)
        if name.id in known and (isinstance(name.ctx, ast.Load) or statement in in_place)))
    value = statements[0].value if isinstance(statements[0], (ast.Assign, ast.AnnAssign)) else None
    target = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    if in_place and isinstance(_target(statements[0]), (ast.Tuple, ast.List)):
        in_place = []  # the arguments, unpacked
        target = "tree_flatten"
    overwritten = _overwritten(value, set(target.split(".")))
    return Step(
        statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno,
        _kind_of(target, value, bool(in_place)),
        tuple(name for name in reads if name not in overwritten), tuple(writes),
        opaque=target.startswith("torch.ops.") and not target.startswith(("torch.ops.aten.", "torch.ops.prims.")),
        literals=_literals(statements))


def _kind_of(target: str, value: ast.expr | None, in_place: bool) -> Kind:
    if target in ("next", "iter") or "tree_flatten" in target:
        return "input"
    if value is not None and not isinstance(value, ast.Call) and not in_place and _is_place(value):
        return "input"
    return "empty" if _EMPTY.intersection(target.split(".")) else "call"


def _target(statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.Assign):
        return statement.targets[0]
    return statement.target if isinstance(statement, (ast.AnnAssign, ast.AugAssign)) else None


def _is_place(value: ast.expr) -> bool:
    """Return whether an expression is of the form ``l_x_``, ``self.weight``, ``getattr(self, "0").weight``."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "getattr" and not value.keywords
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name) or (isinstance(value, ast.Call) and _is_place(value))


def _overwritten(value: ast.expr | None, names: Collection[str]) -> set[str]:
    """Return the names of values that an operation writes without reading them."""
    if not isinstance(value, ast.Call):
        return set()
    written = {name.id for keyword in value.keywords if keyword.arg == "out" for name in _names(keyword.value)}
    if _OVERWRITE & set(names):
        first = value.args[0] if value.args and ast.unparse(value.func).startswith("torch.") else value.func
        written.update(name.id for name in _names(first))
    return written - {name.id for argument in value.args[1:] for name in _names(argument)}


def _literals(statements: Sequence[ast.AST]) -> frozenset[str]:
    result = {name.id for statement in statements for name in _names(statement) if name.id in ("inf", "nan")}
    for statement in statements:
        for constant in ast.walk(statement):
            if isinstance(constant, ast.Constant) and constant.value in ("inf", "-inf", "nan"):
                result.add(str(constant.value).lstrip("-"))  # float('-inf')
    return frozenset(result)


def _names(tree: ast.AST) -> Iterator[ast.Name]:
    return (name for name in ast.walk(tree) if isinstance(name, ast.Name))


# --- generated modules ----------------------------------------------------------------------------
def kernel_steps(
    function: ast.FunctionDef, launches: Collection[int], parameters: Mapping[str, Sequence[str]]
) -> list[Group]:
    """Return the steps of ``call``, or of a part of it, in order.

    Args:
        launches: lines at which kernels are called.
        parameters: the uses of buffers by each kernel of the module: ``("in", "out", "in_out")``; both where not known.
    """
    result: list[Group] = []
    arguments: set[str] = set()

    def visit(body: list[ast.stmt]) -> None:
        for index, statement in enumerate(body):
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name) \
                    and statement.value.id == "args":
                names = tuple(name.id for target in statement.targets for name in _names(target))
                arguments.update(names)
                result.append(Group(Step(
                    statement.lineno, statement.end_lineno or statement.lineno, "input", (), names),
                    body, index, index))
            elif statement.lineno in launches:
                step = _launch(statement, parameters, arguments)
                if step is not None:
                    result.append(Group(step, body, index, index))
            else:
                for inner in ("body", "orelse", "finalbody"):
                    nested = getattr(statement, inner, None)
                    if isinstance(nested, list) and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                        visit(nested)

    visit(function.body)
    return result


def _launch(statement: ast.stmt, parameters: Mapping[str, Sequence[str]], arguments: Collection[str]) -> Step | None:
    value = statement.value if isinstance(statement, (ast.Assign, ast.Expr, ast.AnnAssign)) else None
    if not isinstance(value, ast.Call):
        return None
    target = ast.unparse(value.func)
    results = [name.id for each in getattr(statement, "targets", ()) for name in _names(each)]
    given = [argument.value if isinstance(argument, ast.Starred) else argument for argument in value.args]
    named = {keyword.arg: keyword.value for keyword in value.keywords if keyword.arg not in ("stream", "grid")}
    uses = parameters.get(target.removesuffix(".run"))
    reads: dict[str, None] = {}
    writes: dict[str, None] = dict.fromkeys(results)
    changes: dict[str, None] = {}
    if uses is None:
        out = named.pop("out", None)
        changes = dict.fromkeys(_places(given[:1]) if not results and out is None else [])  # an in-place operation
        writes |= changes | dict.fromkeys(_places([out] if out is not None else []))
        reads = dict.fromkeys(_places([*given, *named.values()]))
    else:
        buffers = [*given, *named.values()]
        for argument, use in zip(buffers, [*uses, *["in_out"] * (len(buffers) - len(uses) if not uses else 0)]):
            for place in _places([argument]):
                if use != "in":
                    writes[place] = None
                # A kernel that writes to an argument of the graph may write to a part of it.
                if use != "out" or place in arguments:
                    reads[place] = None
                    if use != "in":
                        changes[place] = None
    if not writes:
        return None
    return Step(statement.lineno, statement.end_lineno or statement.lineno, "call", tuple(reads), tuple(writes),
                tuple(changes))


def _places(expressions: Sequence[ast.expr]) -> list[str]:
    """Return the names of values in arguments; views of them as expressions."""
    result = []
    for expression in expressions:
        if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name) \
                and expression.func.id in _REPEATABLE:
            result.append(ast.unparse(expression))
        elif isinstance(expression, ast.Call):
            result += _places([*expression.args, *(keyword.value for keyword in expression.keywords)])
        elif isinstance(expression, ast.Name):
            result.append(expression.id)
        elif isinstance(expression, ast.Attribute):
            continue  # torch.float32
        else:
            result += _places([each for each in ast.iter_child_nodes(expression) if isinstance(each, ast.expr)])
    return result
