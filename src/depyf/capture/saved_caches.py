"""What torch's caches and packages of compiled functions have -> :class:`~depyf.records.model.Capture`.

    torch.compiler.save_cache_artifacts()          entries of all caches, one after another
    f.aot_compile(...).save_compiled_function(p)   a function that was compiled ahead of time
    $TORCHINDUCTOR_CACHE_DIR/fxgraph/..., aotautograd/..., dynamo/.../entry        one entry

Nothing of the file is imported or run, and no torch is needed (:mod:`depyf.capture.pickled`). Formats, in torch/:
compiler/_cache.py, utils/_appending_byte_serializer.py, _dynamo/package.py, _dynamo/aot_compile.py,
_functorch/_aot_autograd/aot_autograd_result.py, _inductor/output_code.py.
"""

from __future__ import annotations

import base64
import io
import itertools
import platform
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from .. import budgets
from ..bytecode.packed import ObjectConstant, packed_fields
from ..records import model as records
from ..records import naming
from ..records.store import FROM_FILE, GUARDS_OF_FILE
from ..torch_text.global_names import plain_name
from ..torch_text.user_expressions import user_expression
from .pickled import Object, is_a, read_pickle
from .saved_files import contents, installed_torch, stages_of
from .torch_private.graph_modules import GRAPH_NAME

_VERSION = (1).to_bytes(8, "big")  # of the format of artifacts, after a checksum
_CHECKSUM = 4
_FUNCTION = b"PT2AOT"  # what a compiled function begins with since torch 2.15; the number of the format follows
#: Kinds of entries, in words, in the order in which they are read; those whose content is shown.
_KINDS = {
    "inductor": "Inductor's cache", "precompile": "packages of compiled functions",
    "aot_autograd": "AOTAutograd's cache", "pgo": "sizes that changed in earlier runs",
    "autotune": "results of autotuning"}
_READ = frozenset({"inductor", "precompile", "aot_autograd"})


def read(path: str, head: bytes, rest: Callable[[], bytes]) -> records.Capture | None:
    """Read what torch saved of its caches or of compiled functions; ``None`` for any other file.

    Args:
        head: the first 16 bytes or more.
        rest: reads what follows.

    Raises:
        ValueError and what reading a value of another type raises: it is damaged, or of a format that is not known.
    """
    file = _File(path)
    is_artifacts = head[_CHECKSUM : _CHECKSUM + len(_VERSION)] == _VERSION  # entries of caches that were saved together
    start = len(_FUNCTION) + 1 if head.startswith(_FUNCTION) else 0
    if not (is_artifacts or start or head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5")):
        return None
    data = head + rest()
    if is_artifacts:
        if zlib.crc32(data[_CHECKSUM:]).to_bytes(_CHECKSUM, "big") != data[:_CHECKSUM]:
            raise ValueError("its checksum is another")
        # (The others name entries of Inductor's cache, and packages have some of AOTAutograd's.)
        order = {kind: place for place, kind in enumerate(_KINDS)}
        for kind, key, content in sorted(_entries(data), key=lambda each: order.get(each[0], len(order))):
            file.kinds[kind] += 1
            if kind not in _READ or not file.add(read_pickle(content), key):
                file.unread[kind] += 1
        return file.capture()
    return file.capture() if file.add(read_pickle(data[start:]), "") else None


def _entries(data: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Yield the kind, the key and the content of each entry."""
    file = io.BytesIO(data[_CHECKSUM + len(_VERSION) :])

    def content(size: int) -> bytes:
        part = file.read(size)
        if len(part) < size:
            raise ValueError("it ends too early")
        return part

    def number() -> int:
        return int.from_bytes(content(8), "big")

    while file.tell() < len(file.getbuffer()):
        kind = base64.b64decode(content(number())).decode()
        for _ in range(number()):
            yield kind, base64.b64decode(content(number())).decode(), content(number())


class _Function(NamedTuple):
    """A function that was compiled: its code, the number of that, the name of a resume function, its Python."""

    code: Object
    number: int
    resume_name: str
    python: tuple[int, int]

    @property
    def meant(self) -> str:
        """The function in the user's words; of a resume function the one that it continues."""
        return plain_name(self.code.text("co_name")) if self.resume_name else \
            self.code.text("co_qualname") or self.code.text("co_name")


class _File:
    """What was read of a file so far; ``kinds`` and ``unread``: the numbers of entries, and of those not shown."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.kinds: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        self._files = naming.FileNames()
        self._names = naming.FunctionNames()
        self._graphs: dict[str, records.CompiledGraph] = {}
        self._inductor: dict[str, Object] = {}  # by key
        self._shown: set[str] = set()  # keys of Inductor's that a graph has
        self._codes: list[records.CodeObject] = []
        self._bytecodes: list[records.Bytecode] = []
        self._guards: list[records.GuardsOfEntry] = []
        self._compilations: list[records.Compilation] = []
        self._sources: dict[str, str] = {}
        self._systems: list[dict[str, str]] = []
        self._notes: list[str] = []

    def add(self, value: Any, key: str) -> bool:
        """Add an entry; return whether it is one of torch's."""
        if is_a(value, "CompiledFxGraph"):
            self._inductor[_key(value) or key] = value
        elif _is_of_aot(value):
            if not {_key(each) for each in self._compiled(value)} & self._shown:  # (a package may have it)
                metadata = value.get("runtime_metadata")
                ids = re.fullmatch(r"(\d+)/(\d+)", metadata.text("compile_id_str")) if isinstance(
                    metadata, Object) else None
                self._add_graph(f"aot_{len(self._graphs)}", ids and records.CompileId(int(ids[1]), int(ids[2])), value,
                                "AOTAutograd", key)
        elif is_a(value, "PrecompileCacheEntry"):
            graphs = {name: each.get("content") for name, each in value.get("backends").items()}
            self._add_package(value.get("dynamo"), graphs)
        elif is_a(value, "_DynamoCacheEntry"):
            self._add_package(value, {})
        elif isinstance(value, dict) and is_a(value.get("runtime_env"), "GraphRuntimeEnv"):
            self._add_compiled_function(value)
        else:
            return False
        return True

    def capture(self) -> records.Capture:
        """Return the records."""
        for key, entry in self._inductor.items():
            if key not in self._shown:
                self._add_graph(f"inductor_{len(self._graphs)}", None, entry, "Inductor", key)
        notes = self._notes + [f"{words} " + ", ".join(
            f"{_KINDS.get(kind, kind)} ({number})" for kind, number in kinds.items()) for words, kinds in (
                ("it has entries of", self.kinds), ("not shown are entries of", self.unread)) if kinds]
        systems = [dict(each) for each in dict.fromkeys(tuple(each.items()) for each in self._systems)]
        notes += [_would_load(each) for each in systems] or [
            "it names the torch that made it by a digest of torch's sources only, so that is not compared with the "
            "torch here"]
        if self._guards:
            notes.append(GUARDS_OF_FILE)
        if self._bytecodes:
            notes.append("the file does not have torch's numbers of compilations: `[0/1]` is the second version of the "
                         "first function in it")
        return records.Capture(
            graphs=tuple(self._graphs.values()), notes=(f"{FROM_FILE}{self._path}", *dict.fromkeys(notes)),
            environment=systems[0] if systems else {}, compilations=tuple(self._compilations),
            sources=tuple(records.SourceFile(path, text) for path, text in self._sources.items()),
            unwritten=records.Unwritten(tuple(self._codes), tuple(self._bytecodes), tuple(self._guards),
                                recorded=records.EndOfRecording({})) if self._bytecodes else None)

    # --- graphs -----------------------------------------------------------------------------------
    def _add_graph(self, name: str, ids: records.CompileId | None, entry: Object, by: str, key: str = "",
                   torch_name: str = "") -> None:
        """Add the graph of an entry of AOTAutograd's or Inductor's cache (``by``); code calls it by ``torch_name``."""
        stages: list[tuple[str, str]] = []
        compiled = self._compiled(entry)
        self._shown.update(map(_key, compiled))
        of_frame = ids if torch_name else None
        facts = {"compilation": str(ids)} if ids and not of_frame else {}
        if not is_a(entry, "CompiledFxGraph"):
            for stage in ("Joint_graph", "Forward_graph", "Backward_graph"):
                stages.append((stage, entry.text(f"aot_{stage.lower()}_str")))
            config = entry.get("sanitized_aot_config")
            sources = config.get("aot_autograd_arg_pos_to_source") if isinstance(config, Object) else None
            facts["inputs"] = ", ".join(user_expression(_source(each)) for each in sources or ())
        kernels = []
        for number, each in enumerate(compiled):
            post_grad = each.text("inductor_post_grad_graph_str")
            stages.append(("AFTER_POST_GRAD", post_grad))
            if each.text("source_code"):
                kernels.append(records.Kernel(
                    number, each.text("source_code"), compile_id=of_frame, file=self._files.kernel_file(name, number),
                    stage=f"AFTER_POST_GRAD.{number}" if post_grad else ""))
            facts |= _facts(each, "backward" if number else "")
            # What the key is made of, without the graph: `[digest] name: value`; the value of some is no text.
            parts = [line.partition("] ")[2] for line in each.get("_fx_graph_cache_debug_lines") or ()]
            stages.append(("key", "\n".join(part if part.isprintable() else f"{part.partition(': ')[0]}: ..."
                                            for part in parts if not part.startswith("gm: "))))
        stages.append(("contents", contents(facts | {"key": key}, {})))
        names = ("forward", "backward") if len(compiled) > 1 else ("Inductor",)
        self._graphs[torch_name or name] = records.CompiledGraph(
            name, torch_name, of_frame or records.CompileId(-1, len(self._graphs)), "",
            stages_of(name, filter(lambda each: each[1], stages), self._files, of_frame), tuple(kernels),
            call=None if of_frame else records.SourceLocation("", 0, by), phases=tuple(
                records.Phase(phase, nanoseconds / 1e9) for phase, each in zip(names, compiled)
                if (nanoseconds := each.get("_time_taken_ns"))))

    def _compiled(self, entry: Object) -> list[Object]:
        """Return what Inductor made of the graphs of an entry: forward, backward."""
        if is_a(entry, "CompiledFxGraph"):
            return [entry]
        result: list[Object] = []
        for half in (entry.get("compiled_fw"), entry.get("compiled_bw")):
            if isinstance(half, Object):
                key, *_ = half.get("fx_graph_cache_info") or ("",)
                found = half.get("result") or self._inductor.get(key)
                if isinstance(found, Object) and is_a(found, "CompiledFxGraph"):
                    result.append(found)
        return result

    # --- functions --------------------------------------------------------------------------------
    def _add_package(self, entry: Object, graphs: Mapping[str, Object]) -> None:
        """Add the functions and versions that Dynamo compiled: a package of ``torch.compile``."""
        python = self._add_system(entry.get("system_info"))
        codes = entry.get("codes")
        modules = {each.text("python_module"): each.get("python_code").text("co_filename") for each in codes}
        self._add_sources(entry.get("source_info"), lambda source: modules.get(source.text("module"), ""))
        numbers = [self._number(each.get("python_code"), python) for each in codes]
        # (Each compilation calls a resume function by another name; the first is shown.)
        resumes = {name: records.ResumeOfBytecode(name, each.get("function_names")[0], number,
                                          _parameters(each.get("python_code")), "")
                   for each, number in zip(codes, numbers) for name in each.get("function_names")}
        begin = max((each.compile_id.frame for each in self._bytecodes), default=-1) + 1
        for frame, (each, number) in enumerate(zip(codes, numbers), begin):
            original = each.get("python_code")
            for recompile, version in enumerate(each.get("guarded_codes")):
                function = _Function(original, number, next(iter(each.get("function_names")), ""), python)
                self._add_version(records.CompileId(frame, recompile), function, version.get("dynamo_code"), graphs,
                                  resumes, version.get("guards_state"))
            if each.get("bypassed"):
                name = original.text("co_name")
                self._notes.append(
                    f"torch does not load the versions of `{name}`, as it saved them without all of their graphs")

    def _add_compiled_function(self, saved: Mapping[str, Any]) -> None:
        """Add a function that was compiled ahead of time."""
        python = self._add_system(saved["system_info"])
        code = saved["original_code"]
        self._add_sources(saved["source_info"], lambda source: code.text("co_filename"))
        results = [read_pickle(each) for each in saved["compiled_fn"] if isinstance(each, bytes)]  # (after its class)
        parts = [part for each in results for part in (each if isinstance(each, tuple) else (each,))]
        graphs = dict(zip([saved["backend_id"]], filter(_is_of_aot, parts)))
        self._add_version(records.CompileId(0, 0), _Function(code, self._number(code, python), "", python),
                          saved["runtime_env"].get("bytecode"), graphs, {}, saved["guards_state"])

    def _add_version(
        self, ids: records.CompileId, function: _Function, transformed: Object, graphs: Mapping[str, Object],
        resumes: Mapping[str, records.ResumeOfBytecode], guards: bytes | None,
    ) -> None:
        """Add a version of a function.

        Args:
            graphs: entries of AOTAutograd's cache by the names by which code calls graphs.
            resumes: resume functions by the names by which code calls them.
            guards: pickled, as torch saved them.
        """
        names = transformed.get("co_names")
        shown = {name: match[1] for name in names if (match := GRAPH_NAME.match(name))}
        called = list(shown)
        for name in called:
            if name in graphs and name not in self._graphs:
                self._add_graph(shown[name], ids, graphs[name], "", torch_name=name)
        shown |= {name: resumes[name].shown for name in names if name in resumes}
        code_name = function.code.text("co_name")
        name = function.resume_name or naming.function_identifier(function.meant)
        text_name = self._names.transformed(code_name if function.resume_name else function.meant)
        self._bytecodes.append(records.Bytecode(
            ids, name, text_name, self._files.transformed_file(text_name, ids, name), function.number,
            records.MeantFunction(function.meant, function.number),
            packed_fields(_fields(transformed), function.python), shown, tuple(shown[each] for each in called),
            tuple(replace(resumes[name], meant=function.meant) for name in names if name in resumes)))
        if guards:
            self._guards.append(records.GuardsOfEntry(ids, _guard_tree(read_pickle(guards))))
        self._compilations.append(records.Compilation(ids, code_name, records.SourceLocation(
            function.code.text("co_filename"), function.code.get("co_firstlineno"), code_name), outcome="compiled"))

    def _number(self, code: Object, python: tuple[int, int]) -> int:
        """Return the number of a code object, which is recorded now."""
        self._codes.append(records.CodeObject(len(self._codes), packed_fields(_fields(code), python)))
        return len(self._codes) - 1

    def _add_system(self, system: Object) -> tuple[int, int]:
        """Add what a package was made with; return the version of Python."""
        torch = system.get("torch_version")
        python = system.text("python_version")
        self._systems.append({
            "python": python, "torch": "".join(torch.arguments) if isinstance(torch, Object) else torch,
            **{name: system.text(field) for name, field in (("toolkit", "toolkit_version"), ("GPU", "gpu_name"))
               if system.text(field)}})
        major, minor, *_ = python.split(".")
        return int(major), int(minor)

    def _add_sources(self, info: Any, file_of: Any) -> None:
        lines = []
        for source in info.get("inlined_sources") if isinstance(info, Object) else ():
            lines.append(f"lines {source.get('firstlineno')} to {source.get('lastlineno') - 1} of module "
                         f"`{source.text('module')}`")
            if path := file_of(source):
                self._sources.setdefault(path, source.text("content"))
        if lines:
            self._notes.append(f"torch loads it only where these are as they were: {', '.join(lines)}; "
                               "that was not compared")


# --- values ------------------------------------------------------------------------------------------
def _is_of_aot(value: Any) -> bool:
    """Return whether a value is what AOTAutograd's cache has of a graph (with another name up to torch 2.9)."""
    return is_a(value, *(f"{bundled}AOTAutograd{what}" for bundled in ("", "Bundled")
                         for what in ("Result", "CacheEntry")))


def _key(entry: Object) -> str:
    return entry.text("_fx_graph_cache_key")


def _fields(code: Object) -> dict[str, Any]:
    """Return the attributes of a code object as :func:`~depyf.bytecode.packed.packed_fields` takes them."""
    numbers = itertools.count()

    def constant(value: Any) -> Any:
        if too_many := budgets.CONSTANTS.exceeded(next(numbers)):  # (a tuple can be in itself many times)
            raise ValueError(too_many)
        if isinstance(value, Object):
            return {**value.state, "co_consts": tuple(map(constant, value.get("co_consts")))} if is_a(
                value, "SerializedCode") else ObjectConstant("object", value.name)
        if isinstance(value, list):
            return frozenset(map(constant, value))
        return tuple(map(constant, value)) if isinstance(value, tuple) else value

    fields: dict[str, Any] = constant(code)
    return fields


def _parameters(code: Object) -> tuple[str, ...]:
    return tuple(code.get("co_varnames")[: code.get("co_argcount") + code.get("co_kwonlyargcount")])


def _facts(entry: Object, which: str) -> dict[str, str]:
    """Return what is known of what Inductor compiled; ``which`` graph it is, where there are several."""
    devices = entry.get("device_types")
    facts = {
        "compiled for": ", ".join((devices.arguments or ((),))[0]) if isinstance(devices, Object) else "",
        "holds where (t0, t1, ...: the numbers that it is given, in order)": entry.text("guards_expr"),
        "no CUDA graph, since": entry.text("disabled_cudagraphs_reason")}
    return {f"{which} {name}".strip(): value for name, value in facts.items()}


def _would_load(system: Mapping[str, str]) -> str:
    """Return whether torch would load what a system made, as far as that can be compared here."""
    here = {"python": platform.python_version(), "torch": installed_torch()}
    named: dict[str, list[str]] = {"refuses": [], "same": [], "unknown": []}
    for name, value in system.items():
        words, known = f"{name.replace('python', 'Python')} {value}", here.get(name)
        if known and known != value:
            named["refuses"].append(f"{words} (here {known})")
        else:
            named["same" if known else "unknown"].append(words)
    return "; ".join(f"{words}{', '.join(each)}" for words, each in zip((
        "torch refuses it here, as it was made with ", "made with the same as is here: ",
        "made with what was not compared with this machine: "), named.values()) if each)


def _source(value: Any) -> str:
    """Return how torch reads a value from the frame, ``L['self'].weight``; ``?`` in it for what is not known here."""
    if not isinstance(value, Object):
        return "?"
    kind = value.name.rpartition(".")[2]
    base, index = (*value.arguments, *value.state.values(), None, None)[:2]
    if kind in ("LocalSource", "GlobalSource"):
        return f"{kind[0]}[{base!r}]"
    inner = _source(base)
    if kind in ("AttrSource", "UnspecializedParamBufferSource"):
        return f"{inner}.{index}"
    if kind in ("DictGetItemSource", "GetItemSource", "ListGetItemSource", "TupleGetItemSource"):
        return f"{inner}[{index!r}]" if isinstance(index, (str, int)) else f"{inner}[?]"
    if kind == "TensorPropertySource":
        number = index.arguments[0] if isinstance(index, Object) and index.arguments else None
        what = "size()" if number == 0 else "stride()" if number == 1 else "?"
        return f"{inner}.{what}[{(*value.arguments, *value.state.values())[2]}]"
    return inner if kind.endswith("ModuleSource") else "?"


def _guard_tree(state: Object) -> str:
    """Return saved guards as torch prints a tree of guards (:mod:`depyf.torch_text.guards`)."""
    graph = state.get("output_graph")
    sizes = {_source(source): each for source, each in (graph.get("input_source_to_sizes_strides") or {}).items()}
    lines = []
    for guard in graph.get("_guards").get("inner").arguments[0]:
        source = _source(guard.get("originating_source"))
        create = guard.get("create_fn")
        kind = (create.arguments[0] if create.arguments else create).name.rpartition(".")[2]
        leaf = {"TENSOR_MATCH": "DIMENSION_DYNAMIC_MARKING_GUARD", "SHAPE_ENV": "LAMBDA_GUARD"}.get(kind, kind)
        leaves = [(leaf, text) for text in dict.fromkeys(guard.get("code_list") or ())]
        if kind == "TENSOR_MATCH":
            leaves.insert(0, (kind, _tensor_check(source, create.get("value"), sizes.get(source))))
        elif kind == "GLOBAL_STATE":
            leaves = [(kind, f"___check_global_state() against {each}")
                      for each in graph.get("global_state_guard").items]
        depth = "| "
        if leaves and source != "?":
            lines.append(f"| +- GuardManager: source={source}, accessed_by=, type=")
            depth = "| | "
        stack = guard.get("user_stack")
        cause = "".join(f"  # {last.text('_line').strip()}  # {last.text('filename')}:{last.get('lineno')} in "
                        f"{last.text('name')}" for last in (stack.items if isinstance(stack, Object) else [])[-1:])
        lines += [f"{depth}+- {leaf}: {text}{cause}" for leaf, text in leaves]
    return "\n".join(lines)


def _tensor_check(source: str, value: Any, sizes: Any) -> str:
    """Return the condition on a tensor as torch prints it, or with ``...`` where the file lacks what it compares."""
    try:
        rebuilt, device, cls, dispatch = value.arguments[:4]
        dtype, *_, grad = rebuilt.arguments
        where, *number = device.arguments
        size, stride = ([each if each is None else int(each) for each in sizes[what]] for what in ("size", "stride"))
    except (AttributeError, TypeError, ValueError, KeyError):
        return f"check_tensor({source}, ...)"
    keys = {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU", "mps": "MPS", "meta": "Meta"}.get(where, where)
    # Above the bits of backends and Dense, a tensor of inference mode has that of Autocast alone, others have Autograd
    # and ADInplaceOrView too (c10/core/DispatchKeySet.h; the places of these bits differ between versions). Whether
    # the mode is on is not among the keys of a tensor: torch's text lacks ADInplaceOrView where both are so.
    keys += f", ADInplaceOrView, Autograd{keys}" if isinstance(dispatch, int) and (
        dispatch >> 17).bit_count() > 1 else ", ADInplaceOrView"
    return (f"check_tensor({source}, {cls.name.rpartition('.')[2]}, DispatchKeySet({keys}), {dtype.name}, "
            f"device={number[0] if number else None}, requires_grad={grad}, size={size}, stride={stride})")
