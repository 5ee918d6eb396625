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
from collections.abc import Iterator

from ..model.graph import Node, TensorType
from ..model.graph_text import read_graph
from ..model.guards import State, Tensor
from ..model.reading import condition_of, in_shape_words
from ..records.model import CacheEntry, Capture, Compilation, CompiledGraph, Frame, GraphStage
from ..torch_text import wrapping
from ..torch_text.global_names import operator_imports
from ..torch_text.libraries import installed_module
from ..torch_text.parsed import literal, parsed_expression
from ..torch_text.size_names import is_float, symbols_in
from ..torch_text.user_expressions import user_expression
from ..torch_text.wrapping import NOT_PYTHON
from ..values import frozen
from .dump.graph_file import files_table, sizes_table, stage_view

#: Backends that a fresh process has.
_BACKENDS = ("eager", "aot_eager", "aot_eager_decomp_partition", "inductor")
#: Names that every program of these has.
_KNOWN = {*dir(builtins), "torch", "device", "inf", "nan"}
#: Modules that graphs name.
_MODULES = ("math", "operator", "_operator", "functools", "numpy")
#: Conditions that are listed.
_MOST_CONDITIONS = 40
_PURPOSE = """\
The captured graph, and inputs of the recorded sizes, strides, dtypes and devices. Their numbers are not in a dump: they
are drawn at random, the same in each run. Eager PyTorch and the backend run the graph; results, gradients and what it
changed in place are compared. Exit status: 0 equal, 1 different, 2 both raise the same.
"""
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
    imports = "".join(f"import {name}\n" for name in _modules(operators + view.text)) + "".join(
        _registrations(subject.stage)) + operators
    parts = [_head(subject, capture), imports + IMPORTS, f"BACKEND = {used!r}", _arguments(subject),
             *_symbols(subject), "", *files_table(view), *sizes_table(view), "", view.text.rstrip(), "", "",
             *_inputs(subject), "", "", *_attributes(subject), "", "", *_settings(subject), CHECK.rstrip()]
    return "\n".join(parts) + "\n"


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
def _head(subject: _Subject, capture: Capture) -> str:
    entry, frame = subject.entry, subject.frame
    place = f" ({frame.location.filename}:{frame.location.line})" if frame.location else ""
    versions = ", ".join(f"{name} {capture.environment[name.lower()]}" for name in ("torch", "Python")
                         if capture.environment.get(name.lower()))
    lines = [f'"""Version {entry.compile_id} of {frame.title or frame.name}, alone{place}.', "",
             "    python THIS_FILE [BACKEND]", "",
             _PURPOSE.rstrip(),
             *([f"Recorded with {versions}."] if versions else []), '"""']
    text = frame.original.text.strip()
    lines += ["", "# The function that it was captured from:", *(f"#   {line}".rstrip() for line in text.splitlines())]
    return "\n".join([*lines, *_conditions(subject), ""])


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


def _inputs(subject: _Subject) -> list[str]:
    view = stage_view(subject.stage, subject.graph.inputs)
    sources = {each.name: each.source for each in subject.graph.inputs}
    tensors = {guard.source: one for guard in subject.entry.guards if isinstance(one := condition_of(guard), Tensor)}
    lines = []
    for number, node in enumerate(_placeholders(subject.stage)):
        source = sources.get(node.target, sources.get(node.name, ""))
        shown = view.parameters[number] if number < len(view.parameters) else node.name
        words = in_shape_words(user_expression(source)) if source else shown
        comment = f"{shown}: {words}" if words != shown else shown
        lines.append(f"        {_value(node.type, tensors.get(source))},  # {comment}")
    return ["def inputs():", '    """Return the inputs of the graph, in order."""',
            *(["    return [", *lines, "    ]"] if lines else ["    return []"])]


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
                yield f"{_REGISTERED_LATE[name]}  # registers higher_order::{name}\n"
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
            yield f"import {module}  # registers {space}::{name}\n"


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
    values = [f"        {target!r}: {_value(kind, None)},"
              for target, kind in {node.target: node.type for node in nodes}.items()]
    return ["def attributes():", '    """Return what the graph reads from itself, by path."""',
            *(["    return {", *values, "    }"] if values else ["    return {}"])]


def _arguments(subject: _Subject) -> str:
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
    return "\n".join([*lines, f"ARGUMENTS = {({backend: known} if known else {})!r}  # of torch.compile, by backend"])


def _value_of(node: ast.expr | None) -> object:
    """Return the value that an expression writes out; ``None`` where it leaves anything out."""
    if node is None or any(isinstance(each, ast.Constant) and each.value is ... for each in ast.walk(node)):
        return None  # (``...`` is what was cut)
    return literal(node, None)


def _settings(subject: _Subject) -> list[str]:
    conditions = map(condition_of, subject.entry.guards)
    state = next((dict(one.settings) for one in conditions if isinstance(one, State)), {})
    entered = [f"torch.set_grad_enabled({state['grad_mode']})"] if "grad_mode" in state else []
    cast = parsed_expression(state.get("autocast", "{}"))
    entered += [f"torch.autocast({ast.unparse(device or dtype)}, {ast.unparse(dtype)})"
                for device, dtype in (zip(cast.keys, cast.values) if isinstance(cast, ast.Dict) else ())]
    return ["@contextlib.contextmanager", "def settings():",
            '    """Set torch as it was when the graph was compiled."""', "    with contextlib.ExitStack() as stack:",
            *(f"        stack.enter_context({each})" for each in entered),
            f"        torch.set_default_dtype({state.get('default_dtype', 'torch.float32')})", "        yield", "", ""]


# --- What is the same in all of these programs: imports, and the check --------------------------------
IMPORTS = """\
import contextlib
import random
import sys

import torch
from torch import device, inf, nan

Max, Min = max, min
"""

CHECK = '''\
moving = 0  # the number of the run in which each number of the inputs is moved by about its last digit
digit = 0.0  # the last digit of what autocast computes in, relative to a number


def tensor(shape, stride, dtype, where, grad=False, parameter=False):
    """Return a tensor. Whole numbers are 0 or 1, so that they index whatever they index."""
    span = 1 + sum((size - 1) * step for size, step in zip(shape, stride or ())) if 0 not in shape else 0
    count = span if stride is not None else torch.Size(shape).numel()
    if dtype.is_floating_point or dtype.is_complex:
        wide = dtype if dtype.itemsize >= 4 else torch.float32
        flat = torch.randn(count, dtype=wide)
        if moving:
            ways = torch.randint(0, 2, (count,), generator=torch.Generator().manual_seed(moving)) * 2 - 1
            flat = flat * (1 + max(torch.finfo(dtype).eps, digit) * ways)
        flat = flat.to(dtype)
    else:
        flat = torch.randint(0, 2, (count,)).to(dtype)
    flat = flat.to(where)
    made = flat.as_strided(shape, stride) if stride is not None else flat.reshape(shape)
    if parameter:
        return torch.nn.Parameter(made, requires_grad=grad)
    return made.requires_grad_(grad)


def without_inner(kind):
    """Take classes of inner graphs out of their class, where their names would hide the members."""
    inner = {name: value for name, value in vars(kind).items()
             if isinstance(value, type) and issubclass(value, torch.nn.Module)}
    for name, value in inner.items():
        delattr(kind, name)
        without_inner(value)
    kind.inner_graphs = inner


def built(kind, own=None):
    """Return an instance of a graph with its inner graphs and what it reads from itself."""
    made = kind()
    for name, inner in kind.inner_graphs.items():
        setattr(made, name, as_graph(inner))
    for path, value in (own or {}).items():
        *owners, name = path.split(".")
        holder = made
        for owner in owners:
            if not hasattr(holder, owner):
                setattr(holder, owner, torch.nn.Module())
            holder = getattr(holder, owner)
        setattr(holder, name, value)
    return made


def as_graph(kind):
    """Return an inner graph in the form that operators ask for that read it."""
    inner = built(kind)
    if kind.inner_graphs:
        return inner
    try:
        return torch.fx.symbolic_trace(inner)
    except Exception:
        return inner


def seed():
    torch.manual_seed(0)
    random.seed(0)


def flat(value):
    """Return the items of a structure, in order."""
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in flat(item)]
    if isinstance(value, dict):
        return [each for item in value.values() for each in flat(item)]
    return [value]


def run(backend=None):
    """Run the graph from fresh inputs; return its results, the inputs afterwards, and gradients."""
    seed()
    args, graph = inputs(), built(GraphModule, attributes())
    call = graph if backend is None else torch.compile(graph, backend=backend, **ARGUMENTS.get(backend, {}))
    with settings():
        seed()
        try:
            results = flat(call(*args))
        except Exception as error:
            if backend is None:
                return [f"raises {type(error).__name__}"]
            print(f"{backend} raises {type(error).__name__}: {str(error).strip().splitlines()[0]}")
            return [f"raises {type(error).__name__}"]
        leaves = [each for each in (*flat(args), *graph.parameters()) if isinstance(each, torch.Tensor)
                  and each.requires_grad and each.is_leaf]
        sums = [each.sum() for each in results if isinstance(each, torch.Tensor) and each.requires_grad
                and each.is_floating_point()]
        gradients = torch.autograd.grad(sum(sums), leaves, allow_unused=True) if sums and leaves else ()
        gradients = [each if each is None else each.contiguous() for each in gradients]  # (their layout is free)
    return [*results, *flat(args), *gradients]


def strides(one, other):
    """Return how two tensors lie otherwise in memory, an empty text if they do not."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and one.shape == other.shape:
        if one.stride() != other.stride() and one.numel():
            return f"strides {one.stride()} and {other.stride()}"
    return ""


def same(one, other):
    """Return why two values differ, an empty text if they are equal."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        try:
            torch.testing.assert_close(one, other, equal_nan=True)
        except AssertionError as error:
            return str(error)
        return ""
    equal = type(one) is type(other) and (one == other or one != one and other != other)
    return "" if equal else f"{one!r} and {other!r}"


def distance(one, other):
    """Return the largest difference between numbers of two tensors; infinite where there is none."""
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
            and (one.shape, one.dtype) == (other.shape, other.dtype)):
        return inf
    wide = torch.complex128 if one.dtype.is_complex else torch.float64
    one, other = one.detach().to(wide), other.detach().to(wide)
    alike = (one == other) | (one.isnan() & other.isnan())
    return max((one - other).abs().masked_fill(alike, 0).nan_to_num(nan=inf).flatten().tolist(), default=0.0)


def moved():
    """Return what eager PyTorch gives for inputs that are moved by about their last digit, twice."""
    global moving, digit
    runs = []
    with settings():
        digit = max((torch.finfo(torch.get_autocast_dtype(kind)).eps for kind in ("cpu", "cuda")
                     if torch.is_autocast_enabled(kind)), default=0.0)
    for moving in (1, 2):
        runs.append(run())
    moving = 0
    return runs


def main():
    backend = sys.argv[1] if len(sys.argv) > 1 else BACKEND
    if backend == "inductor":
        from torch._inductor import config

        config.fallback_random = True  # random numbers as eager PyTorch draws them
    without_inner(GraphModule)
    eager, compiled = run(), run(backend)
    pairs = list(zip(eager, compiled))
    differences = {number: why for number, pair in enumerate(pairs) if (why := same(*pair))}
    rounded = {}
    if any(distance(*pairs[number]) < inf for number in differences):
        others = [each for each in moved() if len(each) == len(eager)]
        for number in list(differences):
            far = distance(*pairs[number])
            noise = max((distance(eager[number], each[number]) for each in others), default=0.0)
            if far <= 10 * noise and far < inf:
                largest = distance(eager[number], torch.zeros_like(eager[number]))
                rounded[number] = (f"value {number} (at most {largest:.2g}) by {far:.2g}, "
                                   f"{noise:.2g} if the inputs move by their last digit")
                del differences[number]
    for number, pair in enumerate(pairs):
        if why := strides(*pair):
            numbers = "equal up to rounding" if number in rounded else "equal"
            differences[number] = f"{why}; {differences.get(number, f'its numbers are {numbers}')}"
    for number, why in differences.items():
        print(f"eager and {backend} differ: value {number}: {why}")
    if len(eager) != len(compiled):
        print(f"eager and {backend} differ: {len(eager)} values and {len(compiled)}")
    if rounded:
        print(f"different by no more than 10 times what rounding does: {'; '.join(rounded.values())}")
    if differences or len(eager) != len(compiled):
        return 1
    if str(eager[:1]).startswith("['raises"):
        print(f"not judged: both {eager[0].replace('raises', 'raise')}; no value was compared")
        return 2
    print(f"equal{' up to rounding' * bool(rounded)}: {len(eager)} values of eager and {backend}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
