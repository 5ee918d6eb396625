"""Code that is moved: what torch cannot compile stays where it is, the rest becomes separate compiled functions.

    @torch.compile                      @torch.compile
    def f(x):                           def f_part(x):
        while x.norm() > 1:       ->        return x * 0.5
            x = x * 0.5
        return x                        def f(x):
                                            while x.norm() > 1:
                                                x = f_part(x)
                                            return x

The same statements run in the same order on the same objects, so results are the same for each input. Methods are left
alone, and so is code that works differently in another function (a generator, a closure, ``global``, ``del``).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence

from .branches import stands_alone
from .facts import Facts
from .model import Advice, Edit, indented
from .recompiles import is_compile
from .source import Function, names_set, parameters, path_to, stored_names, variables

#: The rules on what torch can compile nowhere, or only with a setting, so that the code around it is to be moved.
RULES = frozenset({"turn", "drawn", "skipped", "context", "generator", "iterator", "number",
                   "capture_scalar_outputs", "capture_dynamic_output_shape_ops"})
_SUFFIX = "_part"
_ASSIGNING = (ast.Assign, ast.AugAssign, ast.AnnAssign)
_LEFT_ALONE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Yield, ast.YieldFrom, ast.Await,
               ast.Global, ast.Nonlocal, ast.NamedExpr, ast.Import, ast.ImportFrom, ast.Delete, ast.Try)
#: Names of functions that depend on their caller.
_OF_CALLER = frozenset({"locals", "super", "exec", "eval", "stacklevel", "_getframe", "inspect"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def outlined(at: Facts, rule: str, setting: str, broken: Collection[int] = ()) -> Iterator[Advice]:
    """Yield the changes by which the code around a break is compiled as functions of its own.

    Args:
        setting: by which torch may compile the statement that breaks, too.
        broken: lines of the file with breaks of which the advice is to move code.
    """
    function, statement = at.function, at.statement
    if (rule not in RULES or not isinstance(function, ast.FunctionDef) or at.site.statement is None or at.where is None
            or not at.site.editable or not at.is_of_compiled or not _may_be_divided(function.decorator_list)
            or function.name.endswith(_SUFFIX) or any(isinstance(each, ast.ClassDef) and function in each.body
                                                      for each in ast.walk(at.site.module or ast.Pass()))):
        return
    loop = at.loops[-1] if at.loops else statement if isinstance(statement, (ast.For, ast.While)) else None
    top = next((each for _, block, each in path_to(function, statement.lineno) if block is function.body), None)
    if top is not (loop or statement):
        return
    inner = loop.body if loop is not None else statement.body if isinstance(statement, ast.With) else []
    own = {at.where.line}
    tried: list[tuple[set[int], tuple[str, ...]]] = [(own.union(broken), ()), (own, ())]
    for lines, settings in (*tried, (set(broken) - own, (setting,))) if loop is not None else tried:
        runs = [*_runs(at, function.body, lines, top), *_runs(at, inner, lines, known=loop is None)]
        edits = [edit for number, run in enumerate(runs) for edit in _moved(at, function, run, number)]
        if runs and len(edits) == 2 * len(runs):
            decorator = function.decorator_list[0]
            made = tuple(line for edit in edits[::2] for line in edit.lines)
            first = Edit(at.where.filename, decorator.lineno, decorator.end_lineno or decorator.lineno, made)
            parts = ", ".join(f"`{_name(function, number)}`" for number in range(len(runs)))
            yield Advice("outline", f"compile {parts} in the place of `{function.name}`"
                         + "".join(f", and set `{line}`" for line in settings),
                         "what torch cannot compile stays in plain Python, and the rest is compiled by itself",
                         "one call of compiled code for each part", (first, *edits[1::2]), settings)


def _may_be_divided(decorators: Sequence[ast.expr]) -> bool:
    """Return whether a function is only compiled; not with CUDA graphs, whose next run overwrites what one returned.

    The decorator is written for each part, so nothing may be called in it.
    """
    written = (ast.Constant, ast.Name, ast.Attribute)
    return len(decorators) == 1 and is_compile(decorators[0]) and "cudagraph" not in ast.unparse(decorators[0]) and all(
        keyword.arg not in ("mode", "options", None) and isinstance(keyword.value, written)
        for keyword in getattr(decorators[0], "keywords", ()))


def _name(function: Function, number: int) -> str:
    return f"{function.name}{_SUFFIX}{number + 1 if number else ''}"


def _runs(at: Facts, block: Sequence[ast.stmt], broken: Collection[int], top: ast.stmt | None = None,
          known: bool = False) -> Iterator[list[ast.stmt]]:
    """Yield the longest sequences of statements of a block that can be moved and compute with tensors.

    What follows the last break in the block of the function is one of them, with its ``return``. An empty one is
    for a statement that computes with tensors and cannot be moved.

    Args:
        block: of the function, or of a loop or a context in it.
        broken: lines with breaks.
        top: the statement of the function that contains this break.
        known: only what is known to be a tensor counts.
    """
    stay = [each for each in block if each is top or any(
        each.lineno <= line <= (each.end_lineno or each.lineno) for line in broken)]
    last = block.index(stay[-1]) if top is not None else len(block)
    run: list[ast.stmt] = []
    for statement in block[: last + 1]:
        if statement not in stay and _is_simple(statement) and at.computes(statement, known):
            run.append(statement)
            continue
        if run:
            yield run
            run = []
        inside = ast.walk(statement) if statement is not top and not _is_simple(statement) else ()
        if any(_is_simple(each) and at.computes(each, known) for each in inside):
            yield []
    run += block[last + 1 :]
    if any(at.computes(each) for each in run):
        yield run


def _is_simple(statement: ast.AST) -> bool:
    """Return whether a statement sets variables, or changes a tensor in place."""
    match statement:
        case ast.Expr(ast.Call(ast.Attribute(_, name))):
            return name.endswith("_") and not name.startswith("_")
        case ast.Assign(targets):
            return all(isinstance(each, (ast.Name, ast.Tuple)) for each in targets)
        case ast.AugAssign(target) | ast.AnnAssign(target, value=ast.expr()):
            return isinstance(target, ast.Name)
    return False


def _moved(at: Facts, function: Function, run: Sequence[ast.stmt], number: int) -> tuple[Edit, ...]:
    """Return a new function, and the lines that call it; none where the statements cannot be moved."""
    if not run or at.where is None:
        return ()
    nodes = [node for statement in run for node in ast.walk(statement)]
    names = {each for node in nodes for each in (
        getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "arg", ""))}
    spans = any(isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno != node.lineno for node in nodes)
    name = _name(function, number)
    if (spans or names & _OF_CALLER or any(isinstance(node, _LEFT_ALONE) for node in nodes) or name in at.site.text
            or not all(stands_alone(at.site, each, with_comment=True) for each in run)):
        return ()
    inputs = _inputs(function, run)
    returns = any(isinstance(node, ast.Return) for node in nodes)
    inner = [node for each in ast.walk(function) if isinstance(each, _SCOPES) and each is not function
             for node in ast.walk(each)]
    if inputs is None or returns and run[-1] is not function.body[-1] or stored_names(nodes) & _loaded(inner):
        return ()
    outputs = _outputs(function, run, inputs)
    first, last = run[0].lineno, run[-1].end_lineno or run[-1].lineno
    lines = at.site.lines[first - 1 : last]
    blanks = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    body = [line[len(blanks):] if line.startswith(blanks) else line.lstrip() for line in lines]
    result = ", ".join(outputs)
    match run:
        case [ast.Assign([ast.Name(target)])] if [target] == outputs:
            body[0] = f"return {body[0].partition('=')[2].strip()}"
        case _ if outputs and not returns:
            body.append(f"return {result}")
    call = f"{name}({', '.join(inputs)})"
    called = f"return {call}" if returns else f"{result} = {call}" if outputs else call
    decorator = function.decorator_list[0]
    around = " " * function.col_offset
    head = at.site.lines[decorator.lineno - 1 : decorator.end_lineno]
    new = (*head, *indented((f"def {call}:", *indented(body, "    ")), around), "", *([] if around else [""]))
    return (Edit(at.where.filename, first, last, new), Edit(at.where.filename, first, last, (blanks + called,)))


def _of_comprehensions(nodes: Iterable[ast.AST]) -> set[str]:
    return {each for node in nodes if isinstance(node, _COMPREHENSIONS) for part in node.generators
            for each in names_set(part.target)}


def _loaded(nodes: Sequence[ast.AST]) -> set[str]:
    """Return the names that nodes read, those of comprehensions in them too."""
    changed = {each for node in nodes if isinstance(node, ast.AugAssign) for each in names_set(node.target)}
    return changed | {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _inputs(function: Function, run: Sequence[ast.stmt]) -> list[str] | None:
    """Return the variables of a function that statements of it read; ``None`` where one may not be set before them."""
    bound = set(parameters(function))
    for around, block, statement in path_to(function, run[0].lineno):
        bound |= names_set(around.target) if isinstance(around, ast.For) else set()
        for before in block[: block.index(statement)]:
            bound |= names_set(before) if isinstance(before, (*_ASSIGNING, ast.With)) else set()
    inputs, made, inside = set[str](), set[str](), list[ast.AST]()
    for statement in run:
        nodes = list(ast.walk(statement))
        inside += nodes
        inputs |= _loaded(nodes) - _of_comprehensions(nodes) - made
        made |= names_set(statement) if isinstance(statement, _ASSIGNING) else set()
    if not _is_in_loop(function, run):  # (what nothing else sets is a variable of the new function)
        inputs -= stored_names(inside) - stored_names(_others(function, inside)) - bound
    found = [each for each in variables(function) if each in inputs]
    return found if set(found) <= bound and not bound & _of_comprehensions(inside) else None


def _others(function: Function, nodes: Iterable[ast.AST]) -> list[ast.AST]:
    ids = set(map(id, nodes))
    return [node for node in ast.walk(function) if id(node) not in ids]


def _is_in_loop(function: Function, run: Sequence[ast.stmt]) -> bool:
    return any(isinstance(around, (ast.For, ast.While)) for around, *_ in path_to(function, run[0].lineno))


def _outputs(function: Function, run: Sequence[ast.stmt], inputs: Sequence[str]) -> list[str]:
    """Return the variables that statements set and others of the function, or the next turn of a loop, read."""
    if run[-1] is function.body[-1]:
        return []
    inside = [node for statement in run for node in ast.walk(statement)]
    read = _loaded(_others(function, inside)).union(inputs if _is_in_loop(function, run) else ())
    return sorted(stored_names(inside) & read)
