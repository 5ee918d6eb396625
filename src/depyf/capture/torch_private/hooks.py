"""Hooks into torch: one function for each thing that watching needs of it.

Which names of torch's these use, and what is lost without each, says the table in
:mod:`depyf.capture.torch_private.private_api`. Where a name is missing the function raises
:class:`~depyf.capture.torch_private.private_api.MissingPrivateApi` (an ``AttributeError``) or does without.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import functools
import hashlib
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any, Literal, NamedTuple

from . import private_api
from .shared import SharedPatch, Undo, leave_traceback, shared_patch

#: Whether an event of the trace is wanted; ``"metadata"``: without its payload; ``"payload"``: without its metadata;
#: ``"object"``: its payload as torch has it before it makes JSON of it, and the numbers of the compilation.
Wanted = bool | Literal["metadata", "payload", "object"]
#: By what name transformed code calls a resume function.
RESUME_NAME = re.compile(rf"{private_api.RESUME_NAME.key}(?P<offset>\d+)_(?P<number>\d+)")
TRACE_LOGGER = private_api.TRACE_LOG.key
BYTECODE_LOGGER = private_api.BYTECODE_LOG.key
#: A graph in transformed code, without the unique ending that torch gives it since 2.7.
GRAPH_NAME = re.compile(rf"({private_api.GRAPH_NAME.key}\d+)(?:_[0-9a-f_]{{36,}})?$")


_never_compiled: set[str] = set()


def missing() -> list[private_api.PrivateApi]:
    """Return the private API that this torch lacks, of the modules that the program has had torch import."""
    return [api for api in private_api.TABLE if api.imported() and not api.present()]


def compile_id() -> tuple[int, int, int] | None:
    """Return ``(frame, recompile, attempt)`` of the compilation that this thread is in."""
    try:
        trace_id = private_api.COMPILE_ID.get()()
        current = trace_id.compile_id
        return int(current.frame_id), int(current.frame_compile_id), int(trace_id.attempt)
    except (AttributeError, TypeError):
        return None


def never_compile(package: str) -> None:
    """Make Dynamo run functions of the package as they are.

    A backward graph may be compiled inside a compiled frame, and our hooks with it. This is said once for each process:
    torch adds to a list, and looks through all of it for each file.
    """
    add = private_api.NEVER_COMPILE.get()
    if package not in _never_compiled:
        add(package)
        _never_compiled.add(package)


def on_bytecode(hook: Callable[[CodeType, CodeType], CodeType | None]) -> Undo:
    """Register ``hook(original, transformed)`` for each code object that Dynamo makes.

    What it returns runs in place of the transformed code, unless it is ``None`` (torch/_dynamo/convert_frame.py,
    ``register_bytecode_hook``).
    """
    handle = private_api.BYTECODE_HOOK.get()(hook)
    return lambda: handle.remove()


def on_bytecode_when_imported(hook: Callable[[CodeType, CodeType], CodeType | None]) -> Undo | None:
    """:func:`on_bytecode`, for those who must not be the ones to import torch; ``None`` while it is not."""
    if private_api.BYTECODE_HOOK.places[0].partition(":")[0] not in sys.modules:
        return None
    try:
        return on_bytecode(hook)
    except private_api.MissingPrivateApi:
        return None


class CompiledFrame(NamedTuple):
    """The frame that torch compiles: its code, its local variables (captured ones included) and its globals."""

    code: CodeType
    values: dict[str, Any]
    namespace: dict[str, Any]


def compiled_frame() -> CompiledFrame | None:
    """Return the frame being compiled, from inside a hook: torch's ``_compile`` is on the stack meanwhile."""
    try:
        module, function = private_api.COMPILED_FRAME.module, private_api.COMPILED_FRAME.attribute
    except private_api.MissingPrivateApi:
        return None
    frame: Any = sys._getframe(1)
    for _ in range(60):
        if frame is None:
            break
        if frame.f_code.co_name == function and frame.f_globals.get("__name__") == module:
            code, values, namespace = (frame.f_locals.get(each) for each in ("code", "locals", "globals"))
            if not isinstance(code, CodeType):
                return None
            return CompiledFrame(
                code, values if isinstance(values, dict) else {},
                namespace if type(namespace) is dict and "__builtins__" in namespace else {})
        frame = frame.f_back
    return None


#: Modules whose functions lie between a frame and what compiles it.
_COMPILING = re.compile(r"torch\._dynamo\.convert_frame|torch\._utils_internal|contextlib|depyf(\..*)?")


def callers() -> list[tuple[str, int, str]]:
    """Return ``(file, line, function)`` of who called the frame that torch is about to compile, outermost first.

    Empty where that cannot be known. (Torch's own event leaves out the last ones.)
    """
    try:
        module, function = private_api.COMPILED_FRAME.module, private_api.COMPILED_FRAME.attribute
    except private_api.MissingPrivateApi:
        return []
    frame: Any = sys._getframe(1)
    for _ in range(40):
        if frame is None or frame.f_code.co_name == function and frame.f_globals.get("__name__") == module:
            break
        frame = frame.f_back
    caller = frame
    while frame is not None and _COMPILING.fullmatch(str(frame.f_globals.get("__name__"))):
        if frame.f_globals.get("__name__") == module:
            caller = frame
        frame = frame.f_back
    places = []
    frame = caller.f_back if caller is not None else None
    while frame is not None:
        places.append((frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name))
        frame = frame.f_back
    return places[::-1]


class Resume(NamedTuple):
    """A resume function: its code, and the parameters of what goes by its name.

    Where it has free variables, the name is that of a factory which takes the cells
    (torch/_dynamo/output_graph.py, ``install_resume_function_global``). What was compiled up to 2.11 and without
    :mod:`~depyf.capture.torch_private.resume_factories` makes such a function itself, of a constant, which goes by its
    own name.
    """

    code: CodeType
    parameters: tuple[str, ...]


def resume_functions(transformed: CodeType, namespace: dict[str, Any]) -> dict[str, Resume]:
    """Return the resume functions that transformed code calls, by name."""
    resumes = {}
    for name in transformed.co_names:
        if name.startswith(private_api.RESUME_NAME.key):
            value = namespace.get(name)
            value = getattr(value, private_api.ORIGINAL_CALLABLE.key, value)
            if isinstance(value, FunctionType):
                parameters = value.__code__.co_varnames[: value.__code__.co_argcount]
                resumes[name] = Resume(_made_by(value) or value.__code__, parameters)
            elif isinstance(value, functools.partial) and value.func is FunctionType:
                resumes[name] = Resume(value.args[0], ("closure",))
    for value in transformed.co_consts:
        if isinstance(value, CodeType) and is_resume(value):
            resumes.setdefault(value.co_name, Resume(value, value.co_varnames[: value.co_argcount]))
    return resumes


class TracedCode(NamedTuple):
    """A function as Dynamo traces it: with other instructions for some of its own.

    Attributes:
        code: it, with the places of the original.
        offsets: of its instructions, by those that Dynamo names resume functions by.
    """

    code: CodeType
    offsets: dict[int, int]

    def name(self, resume: str) -> str:
        """Return a resume function's name with the offset in :attr:`code`; ``""`` if no instruction is there."""
        match = RESUME_NAME.fullmatch(resume)
        offset = self.offsets.get(int(match["offset"])) if match is not None else None
        return f"{private_api.RESUME_NAME.key}{offset}_{match['number']}" if match and offset is not None else ""


def traced_code(code: CodeType) -> TracedCode:
    """Rewrite a function as Dynamo does before it traces it.

    Dynamo splits instructions that do several things, and numbers all anew without the extensions of long arguments
    (torch/_dynamo/bytecode_transformation.py, ``cleaned_instructions``).
    """
    before: list[tuple[int, Any]] = []

    def number(instructions: list[Any], options: dict[str, Any]) -> None:
        before.extend((each.offset, each) for each in instructions)

    result = private_api.TRACED_CODE.get()(code, number)
    # (The instructions know their final offsets now. Up to 2.8 there is no second result.)
    traced = result[0] if isinstance(result, tuple) else result
    return TracedCode(traced, {offset: each.offset for offset, each in before})


def _made_by(factory: FunctionType) -> CodeType | None:
    """Return the code of the functions that a factory makes, which is in its closure."""
    for cell in factory.__closure__ or ():
        try:
            if isinstance(cell.cell_contents, CodeType):
                return cell.cell_contents
        except ValueError:
            pass  # an empty cell
    return None


class _TraceHandler(logging.Handler):
    def __init__(
        self, receive: Callable[[dict[str, Any], Any], None], wanted: Callable[[str, str], Wanted],
        kinds: frozenset[str] | None,
    ) -> None:
        super().__init__(logging.DEBUG)
        self.receive = receive
        self.wanted = wanted
        self.kinds = kinds

    def handle(self, record: logging.LogRecord) -> bool:
        """Hand the event to the receiver, without the handler's lock.

        The receiver has a lock of its own, and two can be taken crosswise.
        """
        metadata = getattr(record, "metadata", None)
        if metadata:
            self.receive(metadata, getattr(record, "payload", None))
        return True


def on_trace(
    receive: Callable[[dict[str, Any], Any], None], wanted: Callable[[str, str], Wanted],
    kinds: frozenset[str] | None = None,
) -> Undo:
    """Call ``receive(metadata, payload)`` for events of torch's structured trace.

    Args:
        receive: gets the events.
        wanted: whether an event is needed, by its kind and, for an ``artifact``, its name.  Others may come all
            the same; while nobody else listens they are mostly not made (torch prints a graph before and after each
            of its passes, which costs more than all that we do).
        kinds: of those that may be needed; ``None``: all. (Of others there are thousands, and none is asked about.)
    """
    private_api.TRACE_LOG.get()
    logger = logging.getLogger(TRACE_LOGGER)
    handler = _TraceHandler(receive, wanted, kinds)
    release = _choose_trace()
    logger.addHandler(handler)

    def undo() -> None:
        logger.removeHandler(handler)
        release()

    return undo


def _choose_trace() -> Undo:
    """Events that no handler of ours wants are not made while there are no other handlers."""
    try:
        original = private_api.TRACE_STRUCTURED.get()
    except private_api.MissingPrivateApi:
        return lambda: None
    logger = logging.getLogger(TRACE_LOGGER)

    @functools.wraps(original)
    def trace_structured(name: str, metadata_fn: Callable[[], Any] = dict, *args: Any, **kwargs: Any) -> None:
        handlers = []
        alone = bool(logger.handlers)
        for handler in logger.handlers:
            if type(handler) is not _TraceHandler:
                alone = False
            elif handler.kinds is None or name in handler.kinds:
                handlers.append(handler)
        if alone:
            if not handlers:
                return
            metadata = metadata_fn() if name == "artifact" else None
            artifact = str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
            answers = [handler.wanted(name, artifact) for handler in handlers]
            kinds = set(answers) - {False}
            if not kinds:
                return
            if kinds == {"object"} and (current := compile_id()) is not None:
                frame, recompile, attempt = current
                ids = {"frame_id": frame, "frame_compile_id": recompile, "attempt": attempt}
                payload = kwargs["payload_fn"]() if "payload_fn" in kwargs else None
                for handler, answer in zip(handlers, answers):
                    if answer:
                        handler.receive({name: {}, **ids}, payload)
                return
            if kinds == {"metadata"}:
                kwargs = {**kwargs, "payload_fn": str}
            elif kinds == {"payload"}:
                metadata_fn = dict
        original(name, metadata_fn, *args, **kwargs)

    def make(_: SharedPatch[None]) -> Undo:
        return _rebound(private_api.TRACE_STRUCTURED.attribute, original, trace_structured)

    return shared_patch("the choice of events").acquire(None, make)


def interned_string(number: int) -> str:
    """Return the file name behind a number in torch's trace (torch/_logging/structured.py, ``intern_string``)."""
    try:
        for text, known in private_api.INTERN_TABLE.get().items():
            if known == number:
                return str(text)
    except AttributeError:
        pass  # no table, or no longer a dictionary
    return f"<file {number}>"


def node_modules(gm: Any) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """``(node, [(key, path, class), ...])`` of the modules that each node of a captured graph was called in.

    Dynamo keeps the stack of modules in ``node.meta["nn_module_stack"]``: ``{key: (path as an expression, class)}``,
    outermost first (torch/_dynamo/variables/nn_module.py, ``record_nn_module_stack``). The key tells two calls of the
    same module apart. A node of a graph within the graph is named with that graph's name: ``"wrap_body_0.linear"``.
    """
    modules = []
    for node in gm.graph.nodes:
        stack = node.meta.get(private_api.MODULE_STACK.key)
        if stack:
            modules.append((str(node.name), [
                (str(key), str(path), cls if isinstance(cls, str) else getattr(cls, "__qualname__", str(cls)))
                for key, (path, cls) in stack.items()]))
    for name, inner in gm.named_children():
        if hasattr(inner, "graph"):
            modules += [(f"{name}.{node}", stack) for node, stack in node_modules(inner)]
    return modules


_PLACE = r'File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)(?:\n *(?P<text>.*))?'


def calls_into_torch(gm: Any) -> list[tuple[str, tuple[str, int, str, str]]]:
    """Return the nodes of a captured graph that were made in torch's Python code, each with a place outside of it.

    ``(node, (file, line, function, text))``: the line that led into torch (``torch.func``, optimisers). Names of nodes
    as in :func:`node_modules`.

    Torch prints the innermost place of a node's stack (torch/fx/graph.py, ``_parse_stack_trace``).
    """
    torchs = os.path.join(os.path.dirname(str(sys.modules["torch"].__file__)), "")
    known: dict[str, tuple[str, int, str, str] | None] = {}

    def outside(stack: str) -> tuple[str, int, str, str] | None:
        if torchs not in stack[stack.rfind('File "') :]:
            return None
        places = [place for place in re.finditer(_PLACE, stack) if not place["file"].startswith(torchs)]
        if not places:
            return None
        return places[-1]["file"], int(places[-1]["line"]), places[-1]["function"], (places[-1]["text"] or "").strip()

    result = []
    for node in gm.graph.nodes:
        stack = getattr(node, "stack_trace", None)
        if isinstance(stack, str) and node.op not in ("placeholder", "output"):
            if stack not in known:
                known[stack] = outside(stack)
            place = known[stack]
            if place is not None:
                result.append((str(node.name), place))
    for name, inner in gm.named_children():
        if hasattr(inner, "graph"):
            result += [(f"{name}.{node}", place) for node, place in calls_into_torch(inner)]
    return result


def graph_inputs(gm: Any) -> list[tuple[str, str]]:
    """Return ``(parameter, source)`` of the inputs of a captured graph, in order: ``("L_x_", "L['x']")``.

    The source is empty where torch does not tell.

    Dynamo keeps what an input is in ``node.meta["grapharg"]`` until the backend is done (torch/_dynamo/output_graph.py,
    ``SubgraphTracer.create_graph_input``; torch/_dynamo/variables/builder.py, ``GraphArg``).
    """
    inputs = []
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            source = getattr(node.meta.get(private_api.GRAPH_INPUTS.key), "source", None)
            name = getattr(source, "name", "")
            inputs.append((str(node.target), str(name() if callable(name) else name)))
    return inputs


def seen_in_recompiled_frame(expression: str) -> str:
    """Return the value of a guarded expression in the frame that torch is about to compile again, as text.

    ``""`` where that cannot be known without running code of the user's.

    Args:
        expression: ``L['k']``, ``k``, ``L['self'].depth``, ``type(k)``: names, constant keys and plain attributes.
    """
    where = private_api.RECOMPILE_REASONS
    try:
        function = where.attribute
    except private_api.MissingPrivateApi:
        return ""
    frame: Any = sys._getframe(1)
    for _ in range(40):
        if frame is None:
            return ""
        if frame.f_code.co_name == function:
            seen = frame.f_locals.get(where.key)
            return _shown(expression, getattr(seen, "f_locals", {}), getattr(seen, "f_globals", {}))
        frame = frame.f_back
    return ""


def stack_of_graph_break() -> list[tuple[str, int, str, str]]:
    """Return ``(file, line, function, text)`` of the frames that led to the break that torch is about to log.

    These are the compiled frame and each function that was inlined on the way to the break. Empty where that cannot be
    known.
    """
    where = private_api.GRAPH_BREAK_LOG
    try:
        function = where.attribute
    except private_api.MissingPrivateApi:
        return []
    frame: Any = sys._getframe(1)
    for _ in range(40):
        if frame is None:
            return []
        if frame.f_code.co_name == function:
            stack = getattr(frame.f_locals.get(where.key), "real_stack", None) or ()
            return [(each.filename, each.lineno or 0, each.name, (each.line or "").strip()) for each in stack]
        frame = frame.f_back
    return []


def _shown(expression: str, local: Any, namespace: Any) -> str:
    try:
        value = _static_value(ast.parse(expression.strip(), mode="eval").body, local, namespace)
    except (SyntaxError, LookupError, AttributeError, TypeError, ValueError):
        return ""
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}".removeprefix("builtins.")
    if isinstance(value, FunctionType):
        return f"the function {value.__qualname__.rpartition('<locals>.')[2]}"
    if type(value) in (list, tuple) and all(type(item) in (bool, int, float, str) for item in value) \
            or value is None or type(value) in (bool, int, float, complex, str, bytes):
        text = repr(value)
        return text if len(text) <= 80 else text[:77] + "..."
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return repr(value)
    return f"an object of type {type(value).__qualname__}"


#: Questions about torch's state that have an answer without any code of the user's.
_STATE_QUESTIONS = frozenset({
    "is_grad_enabled", "get_default_dtype", "get_num_threads", "are_deterministic_algorithms_enabled",
    "is_deterministic_algorithms_warn_only_enabled"})


def _of_plain_tensor(value: Any, method: str) -> Any:
    """Return ``value.size()`` or ``value.stride()`` of a tensor that is not of a class of the user's."""
    torch = sys.modules["torch"]
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        raise LookupError("not a plain tensor")
    return tuple(getattr(torch.Tensor, method)(value))


def _static_value(node: ast.expr, local: Any, namespace: Any) -> Any:
    """Return the value of an expression, by look-ups that run no code of the user's."""
    match node:
        case ast.Name("L"):
            return local
        case ast.Name("G"):
            return namespace
        case ast.Name(name):
            return local[name] if name in local else namespace[name]
        case ast.Call(ast.Name("type"), [inner], []):
            return type(_static_value(inner, local, namespace))
        case ast.Call(ast.Name("len"), [inner], []):
            value = _static_value(inner, local, namespace)
            if type(value) in (list, tuple, dict, set, str, collections.OrderedDict, collections.deque):
                return len(value)
        case ast.Call(ast.Name("list"), [inner], []):
            value = _static_value(inner, local, namespace)
            if type(value) in (list, tuple, dict, collections.OrderedDict):
                return list(value)
        case ast.Call(ast.Attribute(ast.Name("torch"), name), [], []) if name in _STATE_QUESTIONS:
            return getattr(sys.modules["torch"], name)()
        case ast.Subscript(ast.Call(ast.Attribute(inner, "size" | "stride" as method), [], []), ast.Constant(key)):
            return _of_plain_tensor(_static_value(inner, local, namespace), method)[key]
        case ast.Subscript(inner, ast.Constant(key)):
            value = _static_value(inner, local, namespace)
            if type(value) in (list, tuple, dict, collections.OrderedDict) or value is local or value is namespace:
                return value[key]
        case ast.Attribute(inner, name):
            held = object.__getattribute__(_static_value(inner, local, namespace), "__dict__")
            if isinstance(held, dict):
                return held[name]
    raise LookupError(ast.dump(node))


def _rebound(name: str, old: Any, new: Any) -> Undo:
    """Have modules of torch that imported a function by its name hold another one; return what takes it back.

    (There are thousands of modules. One of others' that took it, too, only gets more events made.)
    """
    before = sys.modules.copy()
    holders = [names for path, module in before.items() if path.startswith("torch")
               and type(names := getattr(module, "__dict__", None)) is dict and names.get(name) is old]
    for names in holders:
        names[name] = new

    def undo() -> None:
        later = [module.__dict__ for path, module in list(sys.modules.items())
                 if path not in before and path.startswith("torch") and type(module) is ModuleType]
        for names in (*holders, *later):
            if names.get(name) is new:
                names[name] = old

    return undo


def replaced(api: private_api.PrivateApi, make: Callable[[Any], Any]) -> Undo:
    """Replace a function of torch's by ``make`` of it, which is called anew when another joins or leaves.

    Several may do so and end in any order.

    Where somebody else replaced it later and keeps ours, ours falls silent but stays.
    """
    owner, name = api.owner(), api.attribute

    def install(users: SharedPatch[Callable[[Any], Any]]) -> Undo:
        original = owner.__dict__[name]
        plain = original.__func__ if isinstance(original, (classmethod, staticmethod)) else original

        current: tuple[tuple[Callable[[Any], Any], ...], Any] = ((), plain)  # (wanted, the function for that)

        @functools.wraps(plain)
        def function(*args: Any, **kwargs: Any) -> Any:
            nonlocal current
            wanted, call = current
            if wanted is not users.wanted:
                wanted, call = users.wanted, plain
                for wrap in wanted:
                    call = wrap(call)
                current = wanted, call  # (at once: threads may come here together)
            try:
                return call(*args, **kwargs)
            except BaseException as error:
                with contextlib.suppress(Exception):
                    leave_traceback(error)
                raise

        wrapper: Any = function
        if isinstance(original, (classmethod, staticmethod)):
            wrapper = type(original)(function)
        setattr(owner, name, wrapper)

        def undo() -> None:
            if owner.__dict__.get(name) is wrapper:
                setattr(owner, name, original)

        return undo

    return shared_patch((owner, name)).acquire(make, install)


def on_captured_graph(before: Callable[[Any, Any], None], after: Callable[[Any, Any], None]) -> Undo:
    """``before(graph module, backend)`` and ``after(graph module, what the backend returned)``."""

    def make(original: Any) -> Any:
        def call_user_compiler(self: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
            before(gm, getattr(self, "compiler_fn", None))
            result = original(self, gm, *args, **kwargs)
            after(gm, result)
            return result

        return call_user_compiler

    return replaced(private_api.CAPTURED_GRAPH, make)


def on_traced_line(begun: Callable[[], Callable[[tuple[str, int]], None] | None]) -> Undo:
    """Each line that Dynamo comes to while it traces: thousands for a model.

    Args:
        begun: called each time that another compilation or attempt goes on (:func:`compile_id` tells which); what it
            returns takes ``(file, line)`` of the lines of that, one by one.
    """
    # (Looked up once. The compilation's context has what the id is made of, which would be made anew for each line.)
    current = getattr(private_api.COMPILE_ID.owner(), "try_get", None) or private_api.COMPILE_ID.get()

    def make(original: Any) -> Any:
        compile_id: Any = None
        attempt: Any = None
        take: Callable[[tuple[str, int]], None] | None = None

        def set_current_loc(filename: str, lineno: int, *args: Any, **kwargs: Any) -> None:
            nonlocal compile_id, attempt, take
            original(filename, lineno, *args, **kwargs)
            compiling = current()
            if compiling is None or compiling.compile_id is None:
                return
            # (The object, not its numbers: they begin again after torch._dynamo.reset().)
            if compiling.compile_id is not compile_id or compiling.attempt != attempt:
                compile_id, attempt = compiling.compile_id, compiling.attempt
                take = begun()
            if take is not None:
                take((filename, lineno))

        return set_current_loc

    return replaced(private_api.TRACED_LINE, make)


def draws_numpy_from_torch() -> bool:
    """Return whether compiled code takes torch's random numbers where the program asks NumPy for some."""
    try:
        return not private_api.NUMPY_RANDOM.get()
    except private_api.MissingPrivateApi:
        return False


def backend_name(compiler: Any) -> str:
    """Return the name of a backend, found behind torch's wrappers: its ``compiler_name``, else its own name."""
    for _ in range(10):
        name = getattr(compiler, "compiler_name", None)
        if isinstance(name, str):
            return name
        inner = getattr(compiler, private_api.BACKEND_CHAIN.key, None) or getattr(
            compiler, private_api.ORIGINAL_CALLABLE.key, None)  # up to 2.6
        if inner is None:
            break
        compiler = inner
    return str(getattr(compiler, "__name__", type(compiler).__name__))


def on_aot_graph(before: Callable[[frozenset[str]], None], after: Callable[[str, Any, Any], None]) -> Undo:
    """Tell of each graph of AOTAutograd that a plain function compiles.

    ``after(stage, graph module, what was made of it)`` once the function compiled a graph, or failed to (``None`` was
    made), and ``before(stages)`` when AOTAutograd begins, with those that are compiled so.

    Inductor's own compilers are not wrapped: they are keys of its caches, and its graphs are not run.
    """
    stages = {"fw_compiler": "Forward_graph", "inference_compiler": "Forward_graph",
              "bw_compiler": "Backward_graph"}

    def make(original: Any) -> Any:
        def aot_module_simplified(*args: Any, **kwargs: Any) -> Any:
            plain = {key: stage for key, stage in stages.items() if isinstance(kwargs.get(key), FunctionType)}
            for key, stage in plain.items():
                kwargs[key] = _observed(kwargs[key], stage)
            before(frozenset(plain.values()))
            return original(*args, **kwargs)

        return aot_module_simplified

    def _observed(compiler: FunctionType, stage: str) -> Any:
        @functools.wraps(compiler)
        def compile_graph(gm: Any, *args: Any, **kwargs: Any) -> Any:
            result = None
            try:
                result = compiler(gm, *args, **kwargs)
            except BaseException as error:
                with contextlib.suppress(Exception):
                    leave_traceback(error)
                raise
            finally:
                after(stage, gm, result)
            return result

        return compile_graph

    return replaced(private_api.AOT_GRAPHS, make)


def interprets(compiled: Any) -> bool:
    """Return whether an object is what aot_eager makes of a graph on a torch where that interprets the graph."""
    api = private_api.AOT_EAGER_CODE
    try:
        made_there = (getattr(compiled, "__module__", None) == api.module
                      and str(getattr(compiled, "__qualname__", "")).startswith(api.attribute + "."))
    except private_api.MissingPrivateApi:
        return False
    return made_there and not api.as_expected()


def keeps_post_grad_graphs() -> bool:
    """Return whether an entry of torch's compile caches holds the graph after Inductor's passes."""
    return private_api.POST_GRAD_KEPT.as_expected()


def on_kernel_module(after: Callable[[Any, str], None]) -> Undo:
    """``after(module, path)`` for each module that Inductor generated (from its caches, too)."""

    def make(original: Any) -> Any:
        def load_by_key_path(cls: Any, key: str, path: str, *args: Any, **kwargs: Any) -> Any:
            loaded = original(cls, key, path, *args, **kwargs)
            if hasattr(loaded, "call"):  # a wrapper with its kernels, not a single Triton kernel
                after(loaded, path)
            return loaded

        return load_by_key_path

    return replaced(private_api.KERNEL_MODULE, make)


#: Between the tag of the tool and that of the lines of a graph.
_LINES = "@"


def separate_caches(tag: str) -> Undo:
    """Entries that torch caches from now on are kept apart from those made without the tool."""
    private_api.CACHE_KEY.get()
    owner, name = private_api.CACHE_KEY.owner(), private_api.CACHE_KEY.attribute

    def make(_: SharedPatch[None]) -> Undo:
        before = getattr(owner, name)
        setattr(owner, name, before + tag)

        def undo() -> None:
            if getattr(owner, name).partition(_LINES)[0] == before + tag:
                setattr(owner, name, before)

        return undo

    return shared_patch((owner, name)).acquire(None, make)


def separate_caches_of_lines(gm: Any) -> None:
    """Keep entries that torch caches from now on apart from those of graphs that came from other lines.

    The text of a graph names its lines, and torch takes two graphs for the same that do the same: without this, the
    text could name the file of another program. (Until the next graph: its backward graph is compiled later.)
    """
    try:
        owner, name = private_api.CACHE_KEY.owner(), private_api.CACHE_KEY.attribute
    except private_api.MissingPrivateApi:
        return
    if not shared_patch((owner, name)).wanted:
        return  # entries are not kept apart: nobody would take the lines away again
    digest = hashlib.sha256()
    for node in gm.graph.nodes:
        digest.update(str(getattr(node, "stack_trace", "")).encode())
    setattr(owner, name, f"{getattr(owner, name).partition(_LINES)[0]}{_LINES}{digest.hexdigest()[:16]}")


def bypass_caches() -> Undo:
    """Nothing is read from or written to torch's caches.

    Torch warns that it then keeps no profile of shapes, either. A warning can be an error to the program, which did
    not ask for this.
    """
    undo = [_set(private_api.NO_CACHES, lambda before: True)]
    with contextlib.suppress(private_api.MissingPrivateApi):
        undo.append(replaced(private_api.NO_CACHES_WARNING, lambda original: lambda *args, **kwargs: None))

    def leave() -> None:
        for each in undo:
            each()

    return leave


def _set(api: private_api.PrivateApi, value_of: Callable[[Any], Any]) -> Undo:
    """Set an option of torch's until what is returned is called.

    At the end the user's value is back, unless he has set another since.
    """
    api.get()
    owner, name = api.owner(), api.attribute

    def make(_: SharedPatch[None]) -> Undo:
        before = getattr(owner, name)
        ours = value_of(before)
        setattr(owner, name, ours)

        def undo() -> None:
            if getattr(owner, name) == ours:
                setattr(owner, name, before)

        return undo

    return shared_patch((owner, name)).acquire(None, make)


def options_of_inductor() -> list[str]:
    """Return the options of ``torch._inductor.config`` that are not at their default: ``["max_autotune = True"]``."""
    try:
        text = private_api.CHANGED_OPTIONS.get()()
    except private_api.MissingPrivateApi:
        return []
    return [line.removeprefix(private_api.CHANGED_OPTIONS.module + ".") for line in text.splitlines()]


class FullPaths:
    """Path as torch prints it -> path, where torch cut it in the middle of a name; others stay as they are.

    torch/utils/_traceback.py, ``shorten_filename``, cuts what a path has in common with torch's own and one
    character more; where only the root is common, that takes the first letter of a name.

    Args:
        files: the paths that may be meant, asked for when one is looked up that was not among those before; the same
            object while they are the same.
    """

    def __init__(self, files: Callable[[], Iterable[Any]]) -> None:
        self._files = files
        self._indexed: Iterable[Any] = ()
        self._known: dict[str, str] = {}
        self._by_name: dict[str, list[str]] = {}

    def __call__(self, shown: str) -> str:
        """Return the whole path for one that torch printed; as it is where torch did not cut it or no file fits."""
        if shown not in self._known:
            self._known[shown] = shown if os.path.isabs(shown) else self._whole(shown)
        return self._known[shown]

    def _whole(self, shown: str) -> str:
        try:
            shorten = private_api.SHORT_PATHS.get()
        except private_api.MissingPrivateApi:
            return shown
        torchs = os.path.dirname(str(sys.modules["torch"].__file__))
        if any(os.path.exists(os.path.join(folder, shown)) for folder in (torchs, os.path.dirname(torchs))):
            return shown  # a file of torch or of a package beside it, which is cut at a whole name
        name = os.path.basename(shown)
        if name not in self._by_name and (files := self._files()) is not self._indexed:
            self._indexed = files
            self._by_name.clear()
            for file in files:
                if isinstance(file, str):  # (of all modules: os.path.basename takes ten times as long)
                    name_of_file = file[max(file.rfind("/"), file.rfind(os.sep)) + 1 :]
                    self._by_name.setdefault(name_of_file, []).append(file)
        for file in self._by_name.get(name, ()):
            if file.endswith(shown) and not file.endswith((os.sep + shown, "/" + shown)) \
                    and os.path.isabs(file) and shorten(file) == shown:
                return file
        return shown


def cut_paths(files: Iterable[str]) -> dict[str, str]:
    """Return ``{path as torch prints it: path}`` of the user's files that torch cuts in the middle of a name."""
    try:
        shorten = private_api.SHORT_PATHS.get()
    except private_api.MissingPrivateApi:
        return {}
    torchs = os.path.dirname(str(sys.modules["torch"].__file__))
    packages = os.path.dirname(torchs) + os.sep, os.path.dirname(os.__file__) + os.sep
    cut: dict[str, str] = {}
    for file in files:
        if not file.startswith(packages) and os.path.isabs(file):
            shown = shorten(file)
            if shown != file and not file.endswith((os.sep + shown, "/" + shown)):
                cut.setdefault(shown, file)
    return cut


def cache_entries(code: CodeType) -> list[Any]:
    """Return the cache entries of a code object, in the order in which their guards are tried."""
    return list(private_api.CACHE_ENTRIES.get()(code))


def was_asked(code: CodeType) -> bool:
    """Return whether torch was asked to compile a code object.

    It skips frames without tensors and says nothing.
    """
    try:
        return code in private_api.SEEN_CODES.get()
    except private_api.MissingPrivateApi:
        return False


def entry_facts(entry: Any) -> tuple[CodeType, tuple[int, int] | None, Callable[[], str]]:
    """Return ``(transformed code, (frame, recompile), what prints the guard tree)`` of a cache entry."""
    own = getattr(entry, "compile_id", None)
    ids = (int(own.frame_id), int(own.frame_compile_id)) if own is not None else None
    return entry.code, ids, lambda: str(getattr(entry, "guard_manager", None))


def is_given_up(entry: Any) -> bool:
    """Return whether torch gave a cache entry up, because an object is gone that its guards compare with.

    It is behind all others then, wherever it was.
    """
    return hasattr(getattr(entry, "guard_manager", None), "invalidation_reason")


def innermost_function(compiled: Any) -> Any:
    """Return the user's function behind what ``torch.compile`` returned."""
    for _ in range(20):
        inner = given_to_compile(compiled)
        if inner is None:
            break
        compiled = inner
    return compiled


def given_to_compile(compiled: Any) -> Any:
    """Return the object for which ``torch.compile`` returned ``compiled``; ``None`` if it did not return that."""
    own = getattr(compiled, "__dict__", None)
    if not isinstance(own, Mapping):
        return None
    given = own.get(private_api.ORIGINAL_CALLABLE.key)
    return own.get("_modules", {}).get("_orig_mod") if given is None else given


def is_resume(code: CodeType) -> bool:
    """Return whether Dynamo made a code object to go on after a graph break."""
    return code.co_name.startswith((private_api.RESUME_CODE.key, "<resume"))


def graph_module_behind(function: Any) -> Any:
    """Return the graph module behind a compiled graph, through wrappers and closures; ``None`` if there is none."""
    pending, seen = [function], 0
    while pending and seen < 50:
        current = pending.pop(0)
        seen += 1
        if hasattr(current, private_api.READABLE_GRAPH.attribute):
            return current
        for attribute in ("__self__", private_api.ORIGINAL_CALLABLE.key, "__wrapped__"):
            inner = getattr(current, attribute, None)
            if inner is not None:
                pending.append(inner)
        if isinstance(current, FunctionType) and current.__closure__:
            for cell in current.__closure__:
                try:
                    pending.append(cell.cell_contents)
                except ValueError:
                    pass
    return None


def readable_graph(gm: Any) -> str:
    """Return the graph as Python: shapes, strides, dtypes and devices as annotations, user lines as comments."""
    printed = getattr(gm, private_api.READABLE_GRAPH.attribute)
    return str(printed(print_output=False, include_stride=True, include_device=True))
