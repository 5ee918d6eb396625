"""A running function of a graph, with a check after each line that computes something.

The function object stays; while it is observed, it has the code of the same text with calls between the statements, and
its own code again afterwards. That works in every thread (the backward pass has its own) and with any debugger, and the
pause is a ``breakpoint()`` in the graph's own frame, where its tensors are live. The calls are on the lines of the
statements that they follow, so breakpoints and tracebacks stay right.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, Literal, Protocol

from ..link.functions import named_like, nested_codes
from ..link.lifetimes import is_release, node_groups, on_line
from ..model.folding import fold
from ..model.graph import Graph, Node
from ..values import frozen

#: Local variable with the observation of the call.
LOCAL = "__depyf_watch__"
_MARK = "__depyf_observe__ (replaced by the function that begins an observation)"
_STEP_MARK = "__depyf_step__ (replaced by a step) "
#: The code of observed functions: their own, then that of each observation; the last one runs.
_codes: weakref.WeakKeyDictionary[FunctionType, list[CodeType]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class CannotWatch(Exception):
    """The function cannot be observed."""


class Observation(Protocol):
    """One call of an observed function."""

    def before(self, step: Step, *reads: Any) -> None:
        """Look at the values of ``step.reads`` before the step."""

    def after(self, step: Step, writes: tuple[Any, ...], reads: tuple[Any, ...]) -> bool:
        """Look at the values of a step after it, and return whether to pause in the frame of the function."""


def observe(
    function: FunctionType, text: str, groups_of: Callable[[ast.Module, int], Sequence[Group]],
    begin: Callable[[], Observation],
) -> Callable[[], None]:
    """Observe each call of a function until the returned function is called, or while a later one observes it.

    Args:
        text: its Python source, with the same line numbers.
        groups_of: returns the steps of the function that begins at a line of the parsed text.
        begin: begins an observation; called at the beginning of each call of the function.

    Raises:
        CannotWatch: the function is not in the text.
    """
    with _lock:
        observed = _observed(function.__code__, text, groups_of, begin)
        _codes.setdefault(function, [function.__code__]).append(observed)
        function.__code__ = observed
    reference = weakref.ref(function)

    def leave() -> None:
        running = reference()
        with _lock:
            if running is not None:
                codes = _codes[running]
                codes.remove(observed)
                running.__code__ = codes[-1]

    return leave


def _observed(
    running: CodeType, text: str, groups_of: Callable[[ast.Module, int], Sequence[Group]],
    begin: Callable[[], Observation],
) -> CodeType:
    try:
        tree = ast.parse(text)
        groups = groups_of(tree, running.co_firstlineno)
        definition = find_function(tree, running.co_firstlineno)
        if definition is None:
            raise CannotWatch(f"no function begins at line {running.co_firstlineno} of its file")
        _insert(groups, definition.body)
        top = compile(tree, running.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CannotWatch(f"its text cannot be compiled ({type(error).__name__}: {error})") from None
    objects = {_MARK: begin, **{f"{_STEP_MARK}{number}": group.step for number, group in enumerate(groups)}}
    for code in nested_codes(top):
        if code.co_firstlineno == running.co_firstlineno and _MARK in code.co_consts \
                and inspect.getargs(code) == inspect.getargs(running) and code.co_freevars == running.co_freevars:
            consts = tuple(objects.get(const, const) if isinstance(const, str) else const for const in code.co_consts)
            return named_like(code, running).replace(co_flags=running.co_flags, co_consts=consts)
    raise CannotWatch("its text is another function")


def _insert(groups: Sequence[Group], body: list[ast.stmt]) -> None:
    """Insert ``...before(...)`` before each step, and after it a loop, of which a turn pauses: ``breakpoint()``.

    The back edge of the loop is on the line, and calls nothing, so a debugger stops there: in the graph's frame, before
    the line releases anything. The body begins with ``__depyf_watch__ = <begin>``, ``__depyf_watch__ =
    __depyf_watch__()``.
    """
    # (In reverse, so that indices in a body stay valid.)
    for number, group in reversed(list(enumerate(groups))):
        step, mark = group.step, repr(f"{_STEP_MARK}{number}")
        reads = "".join(f"{each}, " for each in step.reads)
        writes = "".join(f"{each}, " for each in step.writes)
        _insert_text(group.body, group.last + 1, step.end_line, f"for {LOCAL} in ({LOCAL},) * {LOCAL}.after({mark}, "
                                                                f"({writes}), ({reads})): breakpoint()")
        if step.kind == "call" and step.reads:
            _insert_text(group.body, group.index, step.line, f"{LOCAL}.before({mark}, {reads})")
    at = 1 if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1 else 0
    _insert_text(body, at, body[at].lineno, f"{LOCAL} = {_MARK!r}\n{LOCAL} = {LOCAL}()")


def _insert_text(body: list[ast.stmt], at: int, line: int, text: str) -> None:
    body[at:at] = [on_line(statement, line) for statement in ast.parse(text).body]


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
_REPEATABLE = frozenset({"reinterpret_tensor"})  #: A view that is made where it is used; it can be made again.


@frozen
class Step:
    """A line that binds or computes something."""

    # line, end_line: from 1
    line: int
    end_line: int
    kind: Kind
    reads: tuple[str, ...] = ()  # expressions for what it reads, mostly names
    writes: tuple[str, ...] = ()  # for what it writes
    changes: tuple[str, ...] = ()  # those of the reads that it writes to, where the text says so (an in-place kernel)
    opaque: bool = False  # an operation whose writes to its arguments torch's version counters may not count


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
def graph_steps(function: ast.FunctionDef, graph: Graph) -> list[Group]:
    """Return the steps of ``forward`` of a graph, or of one in it, in order; ``graph`` is what its text contains."""
    nodes = fold((node for _, node in graph.named_nodes() if node.op != "output"), lambda node: node.line)
    result: list[Group] = []
    body = function.body
    for index, last in node_groups(body):
        while last >= index and is_release(body[last]):
            last -= 1
        lines = dict.fromkeys(statement.lineno for statement in body[index : last + 1])
        if known := [node for line in lines for node in nodes.get(line, ())]:
            result.append(Group(_graph_step(body[index : last + 1], known), body, index, last))
    return result


def _graph_step(statements: Sequence[ast.stmt], nodes: Sequence[Node]) -> Step:
    first, node, writes = statements[0], nodes[0], [node.name for node in nodes]
    if node.op in ("placeholder", "get_attr"):
        return _step(first, "input", (), writes)
    words = set(node.target.split("."))
    overwritten = _overwritten(first.value, words) if isinstance(first, ast.Assign | ast.AnnAssign) else ()
    if isinstance(first, ast.AugAssign):
        writes.insert(0, node.inputs[0])
    reads = tuple(name for name in node.inputs if name not in overwritten)
    return Step(
        first.lineno, statements[-1].end_lineno or first.lineno, "empty" if _EMPTY & words else "call", reads,
        tuple(writes), opaque=words >= {"torch", "ops"} and words.isdisjoint(("aten", "prims")))


def _overwritten(value: ast.expr | None, names: Collection[str]) -> set[str]:
    """Return the names of values that an operation writes without reading them."""
    if not isinstance(value, ast.Call):
        return set()
    written = {name.id for keyword in value.keywords if keyword.arg == "out" for name in _names(keyword.value)}
    if _OVERWRITE & set(names):
        first = value.args[0] if value.args and ast.unparse(value.func).startswith("torch.") else value.func
        written.update(name.id for name in _names(first))
    return written - {name.id for argument in value.args[1:] for name in _names(argument)}


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
                names = [name.id for target in statement.targets for name in _names(target)]
                arguments.update(names)
                result.append(Group(_step(statement, "input", (), names), body, index, index))
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
    if uses is None:  # (of a library; without a result it works in place)
        out = [named.pop("out")] if "out" in named else []
        changes = [] if results or out else _places(given[:1])
        reads, writes = _places([*given, *named.values()]), [*results, *changes, *_places(out)]
    else:
        used = [(place, use) for argument, use in zip([*given, *named.values()], uses or itertools.repeat("in_out"))
                for place in _places([argument])]
        writes = [*results, *(place for place, use in used if use != "in")]
        # A kernel that writes to an argument of the graph may write to a part of it.
        reads = [place for place, use in used if use != "out" or place in arguments]
        changes = [place for place, use in used if use == "in_out" or use == "out" and place in arguments]
    reads, writes, changes = (list(dict.fromkeys(each)) for each in (reads, writes, changes))
    return _step(statement, "call", reads, writes, changes) if writes else None


def _step(
    statement: ast.stmt, kind: Kind, reads: Sequence[str], writes: Sequence[str], changes: Sequence[str] = (),
) -> Step:
    return Step(statement.lineno, statement.end_lineno or statement.lineno, kind, tuple(reads), tuple(writes),
                tuple(changes))


def _places(expressions: Sequence[ast.expr]) -> list[str]:
    """Return the names of values in arguments; views of them as expressions."""
    result = []
    for expression in expressions:
        match expression:
            case ast.Call(ast.Name(name)) if name in _REPEATABLE:
                result.append(ast.unparse(expression))
            case ast.Call(_, values, keywords):
                result += _places([*values, *(keyword.value for keyword in keywords)])
            case ast.Name(name):
                result.append(name)
            case ast.Attribute():
                pass  # torch.float32
            case _:
                result += _places([each for each in ast.iter_child_nodes(expression) if isinstance(each, ast.expr)])
    return result
