"""One compilation as a program that runs alone: its captured graph, inputs like the recorded ones, and the check.

    def inputs():
        return [
            s77,  # s77: x.shape[0]
            tensor((s77, 4), (4, 1), torch.float32, "cpu"),  # x
        ]

The graph is the one of the dump. Inputs have the recorded sizes, strides, dtypes and devices, and require gradients as
the guards say; their numbers are not in a dump and are drawn at random, the same in each run. Eager PyTorch and the
backend run it from the same start, and results, gradients and what was changed in place are compared.
"""

from __future__ import annotations

import ast
import builtins
import string
from collections.abc import Iterable, Iterator

from ..model.graph import Node, TensorType
from ..model.graph_text import read_graph
from ..model.guards import State, Tensor
from ..model.reading import condition_of, in_shape_words
from ..reading import own_text
from ..records.model import CacheEntry, Capture, Compilation, CompiledGraph, Frame, GraphStage
from ..torch_text import wrapping
from ..torch_text.global_names import operator_imports
from ..torch_text.libraries import installed_module
from ..torch_text.parsed import literal, parsed_expression
from ..torch_text.size_names import is_float, symbols_in
from ..torch_text.user_expressions import user_expression
from ..torch_text.wrapping import NOT_PYTHON
from ..values import frozen
from .dump.directory import files_table, sizes_table, stage_view
from .dump.graph_view import GraphView

_BACKENDS = ("eager", "aot_eager", "aot_eager_decomp_partition", "inductor")  #: Backends that a fresh process has.
_KNOWN = {*dir(builtins), "torch", "device", "inf", "nan"}  #: Names that every program of these has.
_MODULES = ("math", "operator", "_operator", "functools", "numpy")  #: Modules that graphs name.
_MOST_CONDITIONS = 40  #: Conditions that are listed.
#: Namespaces of operators that ``import torch`` registers.
_NAMESPACES = ("aten", "prim", "prims", "higher_order", "inductor", "quantized", "quantized_decomposed", "mkldnn",
               "_c10d_functional", "_c10d_functional_autograd", "c10d", "c10d_functional", "fsdp", "profiler",
               "rngprims", "debugprims", "streams", "symm_mem", "_inductor_test")
#: Operators of torch's that a compilation registers, with the line of a program that does.
_REGISTERED_LATE = {"register_hook": "import torch._higher_order_ops.register_hook"}


class NotReproducible(ValueError):
    """A compilation of which a dump does not contain enough; the message says what is missing."""


@frozen
class _Subject:
    frame: Frame
    entry: CacheEntry
    graph: CompiledGraph
    stage: GraphStage
    compilation: Compilation | None


def repro(capture: Capture, name: str, backend: str = "") -> str:
    """Return the program.

    Args:
        name: id of the compilation, ``"0/1"``; or a name of a graph.
        backend: which one is checked by default; the recorded one where it is left out.

    Raises:
        NotReproducible: there is no such compilation, or it has no graph.
    """
    subject = _subject(capture, name)
    used = backend or (subject.graph.backend if subject.graph.backend in _BACKENDS else "inductor")
    if subject.stage.text.startswith(NOT_PYTHON):
        raise NotReproducible("torch printed the graph in a form that is not Python")
    view = stage_view(subject.stage, subject.graph.inputs)
    operators = operator_imports(view.text)
    entry, frame = subject.entry, subject.frame
    place = f" ({frame.location.filename}:{frame.location.line})" if frame.location else ""
    versions = ", ".join(f"{name} {capture.environment[name.lower()]}" for name in ("torch", "Python")
                         if capture.environment.get(name.lower()))
    state = next((dict(one.settings) for one in map(condition_of, entry.guards) if isinstance(one, State)), {})
    cast = parsed_expression(state.get("autocast", "{}"))
    entered = [*([f"torch.set_grad_enabled({state['grad_mode']})"] if "grad_mode" in state else []),
               *(f"torch.autocast({ast.unparse(device or dtype)}, {ast.unparse(dtype)})"
                 for device, dtype in (zip(cast.keys, cast.values) if isinstance(cast, ast.Dict) else ()))]
    return string.Template(own_text("views/repro.py.txt")).substitute(
        title=f"Version {entry.compile_id} of {frame.title or frame.name}, alone{place}.",
        recorded=f"Recorded with {versions}.\n" if versions else "",
        function="\n".join([*(f"#   {line}".rstrip() for line in frame.original.text.strip().splitlines()),
                            *_conditions(subject)]),
        imports=_lines(f"import {name}" for name in _modules(operators + view.text))
        + _lines(_registrations(subject.stage)) + operators,
        backend=repr(used), **_arguments(subject), symbols=_lines(_symbols(subject)),
        tables=_lines([*files_table(view), *sizes_table(view)]), graph=view.text.rstrip(),
        inputs=_items(_inputs(subject, view)), attributes=_items(_attributes(subject)),
        entered=_lines(f"        stack.enter_context({each})" for each in entered),
        dtype=state.get("default_dtype", "torch.float32"))


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _items(items: Iterable[str]) -> str:
    """Return the items of a list or a dictionary, each on a line by itself, for between its brackets."""
    text = _lines(f"        {each}" for each in items)
    return f"\n{text}    " if text else ""


def _subject(capture: Capture, name: str) -> _Subject:
    graphs = capture.by_name
    there: list[str] = []
    found: list[_Subject] = []
    without = False
    for frame in capture.frames:
        for entry in frame.entries:
            label = f"{entry.compile_id.frame}/{entry.compile_id.recompile}"
            asked = name.strip("[]") == label
            without = without or asked and not entry.graph_names
            for graph in (graphs[each] for each in entry.graph_names if each in graphs):
                there.append(f"{label} ({frame.title or frame.name}: {graph.name})")
                if graph.captured is not None and (asked or name == graph.name):
                    found.append(_Subject(
                        frame, entry, graph, graph.captured, capture.by_id.get(entry.compile_id.key)))
    if len(found) == 1:
        return found[0]
    if found:
        raise NotReproducible(f"{name} has {len(found)} graphs; give the name of one: "
                              + ", ".join(each.graph.name for each in found))
    if without:
        raise NotReproducible(f"{name} has no graph: what torch compiled of it calls none")
    raise NotReproducible(f"there is no graph of {name}; there is {', '.join(there[:12]) or 'none'}")


# --- texts ------------------------------------------------------------------------------------------------
def _conditions(subject: _Subject) -> Iterator[str]:
    """Yield the conditions on the inputs under which the version serves a call, as comments."""
    sources = [each.source for each in subject.graph.inputs if each.source]
    about = [guard for guard in subject.entry.guards if guard.kind != "DIMENSION_DYNAMIC_MARKING_GUARD"
             and any(source in guard.expression for source in sources)]
    if not about:
        return
    yield "#"
    yield f"# It serves a call if {len(subject.entry.guards)} conditions hold; those on the graph's inputs:"
    for guard in about[:_MOST_CONDITIONS]:
        yield from wrapping.comment("  " + in_shape_words(user_expression(guard.expression)), 0)
    if len(about) > _MOST_CONDITIONS:
        yield f"#   ... and {len(about) - _MOST_CONDITIONS} more"


def _symbols(subject: _Subject) -> list[str]:
    used = sorted({symbol for node in _placeholders(subject.stage) if node.type
                   for symbol in symbols_in(node.type.text)})
    decisions = subject.compilation.symbols if subject.compilation else ()
    values = {each.symbol: each.value for each in decisions if each.kind == "created" and each.value}
    lines = [f"{symbol} = {literal(values.get(symbol, ''), 1.5 if is_float(symbol) else 4)!r}"
             + ("" if symbol in values else "  # (its value is not recorded)") for symbol in used]
    return ["# Open sizes and numbers, with their values when the graph was compiled:", *lines] if lines else []


def _placeholders(stage: GraphStage) -> list[Node]:
    return [node for node in read_graph(stage.text).nodes if node.op == "placeholder"]


def _inputs(subject: _Subject, view: GraphView) -> Iterator[str]:
    sources = {each.name: each.source for each in subject.graph.inputs}
    tensors = {guard.source: one for guard in subject.entry.guards if isinstance(one := condition_of(guard), Tensor)}
    for number, node in enumerate(_placeholders(subject.stage)):
        source = sources.get(node.target, sources.get(node.name, ""))
        shown = view.parameters[number] if number < len(view.parameters) else node.name
        words = in_shape_words(user_expression(source)) if source else shown
        comment = f"{shown}: {words}" if words != shown else shown
        yield f"{_value(node.type, tensors.get(source))},  # {comment}"


def _value(kind: TensorType | None, tensor: Tensor | None) -> str:
    if kind is not None and kind.number:
        return kind.number
    if kind is None or kind.shape is None:
        return "None"
    options = ""
    if tensor is not None:
        options = ", grad=True" * tensor.requires_grad + ", parameter=True" * (tensor.cls == "Parameter")
    stride = _tuple(kind.stride) if kind.stride is not None else "None"
    return f"tensor({_tuple(kind.shape)}, {stride}, torch.{kind.dtype}, {kind.device or 'cpu'!r}{options})"


def _tuple(items: tuple[str, ...]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _modules(text: str) -> list[str]:
    """Return the modules that a graph names; refuse one that names a function which is in none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:  # (records may come from anywhere)
        raise NotReproducible(f"the recorded text of the graph is not Python ({error.args[0]})") from None
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    known = {node.id for node in names if isinstance(node.ctx, ast.Store)} | {
        node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} | {
        node.asname for node in ast.walk(tree) if isinstance(node, ast.alias)} | _KNOWN
    free = sorted({node.id for node in names} - known)
    unknown = [name for name in free if name not in _MODULES]
    if unknown:
        raise NotReproducible(f"the graph calls {unknown[0]}, a function that is in no dump")
    return free


def _registrations(stage: GraphStage) -> Iterator[str]:
    """Yield imports that register operators that ``import torch`` does not; raise where the program registers them."""
    done: set[str] = set()
    for node in read_graph(stage.text).nodes:
        match node.target.split(".") if node.is_call else []:
            case "torch", "ops", "higher_order", name if name in _REGISTERED_LATE and name not in done:
                done.add(name)
                yield f"{_REGISTERED_LATE[name]}  # registers higher_order::{name}"
                continue
            case "torch", "ops", "higher_order", name if name.startswith("triton_kernel_wrapper"):
                raise NotReproducible(f"the graph calls a Triton kernel ({name}), which is in no dump")
            case "torch", "ops", space, name, *_ if space not in _NAMESPACES and space not in done:
                done.add(space)
            case _:
                continue
        module = installed_module(node.location.filename) if node.location else ""
        if not module:
            raise NotReproducible(f"the graph calls the operator {space}::{name}, which the program registers")
        if not module.startswith("torch."):
            yield f"import {module}  # registers {space}::{name}"


def _attributes(subject: _Subject) -> list[str]:
    graph = read_graph(subject.stage.text)
    inner = {each.name for _, each in graph.walk()}
    read = [node for node in graph.nodes if node.target.partition(".")[0] not in inner]
    nodes = [node for node in read if node.op == "get_attr"]
    called = [node.target for node in read if node.op == "call_module"]
    if called:
        raise NotReproducible(f"the graph calls the module {called[0]}, which is not in the dump")
    unknown = [node.target for node in nodes if node.type is None or node.type.shape is None]
    if unknown:
        raise NotReproducible(f"the graph reads {unknown[0]} from itself, and the dump does not say what that is")
    return [f"{target!r}: {_value(kind, None)}," for target, kind in {node.target: node.type for node in nodes}.items()]


def _arguments(subject: _Subject) -> dict[str, str]:
    """Return the arguments of ``torch.compile``, by backend, and comments on those that are left out."""
    given = (subject.compilation.arguments if subject.compilation is not None else None) or {}
    backend = subject.graph.backend
    known: dict[str, object] = {}
    unknown: list[str] = []
    for name in [each for each in ("mode", "options") if given.get(each)]:
        node = parsed_expression(given[name])
        if isinstance(node, ast.Dict):
            items = [(key, _value_of(ast.Dict([key], [value]))) for key, value in zip(node.keys, node.values)]
            unknown += [f"{name}[{ast.unparse(key or node)}]" for key, item in items if item is None]
            known[name] = {key: value for _, item in items if isinstance(item, dict) for key, value in item.items()}
        elif (value := _value_of(node)) is not None:
            known[name] = value
        else:
            unknown.append(name)
    lines = wrapping.comment(f"Left out, as no record has its value: {', '.join(unknown)}") if unknown else []
    known = {name: value for name, value in known.items() if value}
    if known and backend not in _BACKENDS:
        lines += wrapping.comment(f"Left out, as it is for the backend {backend!r}: {', '.join(known)}")
        known = {}
    return {"left_out": _lines(lines), "arguments": repr({backend: known} if known else {})}


def _value_of(node: ast.expr | None) -> object:
    """Return the value that an expression writes out; ``None`` where it leaves anything out."""
    if node is None or any(isinstance(each, ast.Constant) and each.value is ... for each in ast.walk(node)):
        return None  # (``...`` is what was cut)
    return literal(node, None)
