"""Records of what watching ``torch.compile`` yields: plain and immutable.

No tensors, no modules, no code objects of torch's are held here: strings, numbers, tuples and other
records only, so that every view can be made again later, elsewhere and without torch.

A :class:`Capture` is the whole run.  Its tree::

    Capture
      compilations: tuple[Compilation]          in the order in which torch began them: what came of each, breaks,
                                                recompile reasons, dynamic shapes, caches, time
      functions: tuple[CompiledFunction]        one per user function that torch.compile was asked about
        frames: tuple[Frame]                    the function itself, then its resume functions
          entries: tuple[CacheEntry]            in the order in which their guards are tried
            guards: tuple[Guard]
            transformed: TransformedCode
            graph_names: ("__compiled_fn_1",)   names of the graphs it calls
            resume_names: ("__resume_at_10_2",) names of the resume functions it goes on in
      graphs: tuple[CompiledGraph]              by name: stages and kernels
      notes: tuple[str]                         what could not be captured, and why (one line each)
      sources: tuple[SourceFile]                the user's files that the others name
      unwritten: Unwritten | None               what functions are made of, while their texts are not written

A :class:`CompileId` ties them together: a cache entry, a graph and a compilation with the same ``frame`` and
``recompile`` belong to each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from ..bytecode.packed import PackedCode


@dataclass(frozen=True)
class CompileId:
    """Torch's ``[frame/recompile]`` with the attempt (0 unless tracing was restarted).

    ``torch._dynamo.reset()`` makes torch count from 0 again; ``resets`` tells how often it did so during the run.
    """

    frame: int
    recompile: int
    attempt: int = 0
    resets: int = 0

    def __str__(self) -> str:
        return f"[{self.frame}/{self.recompile}]" + (f" after reset {self.resets}" if self.resets else "")

    @cached_property
    def key(self) -> tuple[int, int, int]:
        """The key that ties records of one compilation together, whatever its attempts."""
        return self.resets, self.frame, self.recompile

    @property
    def frame_key(self) -> tuple[int, int]:
        """The key that ties the compilations of one frame together."""
        return self.resets, self.frame


@dataclass(frozen=True)
class SourceLocation:
    """A place in the user's files. ``text`` is the source line, where it is known."""

    filename: str
    line: int
    function: str = ""
    text: str = ""

    def is_at(self, other: SourceLocation | None) -> bool:
        """Return whether another place is on the same line."""
        return other is not None and (self.filename, self.line) == (other.filename, other.line)


@dataclass(frozen=True)
class UserFunction:
    """The function that the user means by a frame (:mod:`depyf.capture.user_function`).

    Attributes:
        name: ``"LlamaModel.forward"``, ``"main.step"``, ``"lambda at line 12"``; of a resume function the function that
            it continues.
        location: where it begins.
        wrappers: what it is called through, outermost first: the first is what torch compiled.
    """

    name: str
    location: SourceLocation | None = None
    wrappers: tuple[SourceLocation, ...] = ()


@dataclass(frozen=True)
class Guard:
    """One condition that must hold for a cache entry to be used.

    Attributes:
        expression: valid Python over ``L`` (locals), ``G`` (globals) and the ``___``-helpers; tensor
            guards read ``check_tensor(L['a'], dtype=..., ...)``.
        source: the guarded object as an expression, ``"L['a']"``; ``""`` for global state.
        kind: torch's guard type, ``"TENSOR_MATCH"``.
        raw: torch's own text, verbatim.
        cause: the user line that made Dynamo guard, if known.
    """

    expression: str
    source: str
    kind: str
    raw: str
    cause: SourceLocation | None = None


@dataclass(frozen=True)
class CodeText:
    """Decompiled source of one code object.

    Attributes:
        text: the source.
        fidelity: ``"exact"``, ``"equivalent"`` or ``"fallback"``.
        note: what to know about it (simplifications made, why it fell back); may be empty.
    """

    text: str
    fidelity: str
    note: str = ""


@dataclass(frozen=True)
class TransformedCode:
    """The code that Dynamo made of a frame.

    Attributes:
        compile_id: which compilation.
        function_name: legal Python name of the frame's function (``toy_example``, ``LlamaModel_forward``,
            ``__resume_at_102_2``).
        source: what people read (simplified).
        exact: the same with nothing simplified, when it differs; else ``None``.
        arguments: parameter names.
    """

    compile_id: CompileId
    function_name: str
    source: CodeText
    exact: CodeText | None
    arguments: tuple[str, ...]
    file: str = ""

    @property
    def known(self) -> bool:
        """Return whether there is source at all (a log of ``TORCH_TRACE`` has none)."""
        return "def " in self.source.text


@dataclass(frozen=True)
class CacheEntry:
    """A version of a frame; of a compilation that failed late, what torch had made of it.

    Attributes:
        guards_file: its conditions, a file in the dump.
        tried: its place in the order in which torch tried the versions when the run ended; ``None`` where that is not
            known. (Torch begins with the one that was used last, and puts those behind that it gave up.)
    """

    compile_id: CompileId
    guards: tuple[Guard, ...]
    transformed: TransformedCode
    graph_names: tuple[str, ...]
    resume_names: tuple[str, ...] = ()
    guards_file: str = ""
    tried: int | None = None


@dataclass(frozen=True)
class Branch:
    """The branch that a resume function continues.

    Attributes:
        condition: the user's expression that broke the graph.
        held: whether it was true.
    """

    condition: str
    held: bool


@dataclass(frozen=True)
class Frame:
    """A function whose frames Dynamo compiles: the user's, or a resume function.

    Attributes:
        name: legal Python name, in texts (``toy_example``, ``LlamaModel_forward``, ``__resume_at_102_2``).
        code_name: torch's ``co_name`` (``wrapper``, ``torch_dynamo_resume_in_toy_example_at_4``).
        location: where the user's text stands.
        original: its own source text where the user wrote it, decompiled otherwise.
        original_is_user_text: which of the two.
        arguments: parameter names (free variables not included).
        freevars: names of captured variables.
        entries: what was compiled; empty if it was only run or skipped.
        signature: the parameters as they stand in a ``def``.
        title: the name in the user's words (``LlamaModel.forward``); of a resume function that of the function that it
            continues.
        stack: of a resume function, the user's expressions of the values that lay on the stack at the break
            (``___stack0``, ``___stack1``, ...); ``""`` for one that is not known.
        asked: torch was asked to compile it: it was called.
        without_tensors: it is a resume function, and torch left it to plain Python since no tensor was among the
            variables of its frame.
        branch: of a resume function behind a break at a branch, which one it continues; ``None`` where that is not
            known.
        wrappers: what the function is called through, outermost first. The first is what torch compiled: the code name,
            arguments, free variables and signature are its.
    """

    name: str
    code_name: str
    location: SourceLocation | None
    original: CodeText
    original_is_user_text: bool
    arguments: tuple[str, ...]
    freevars: tuple[str, ...]
    entries: tuple[CacheEntry, ...]
    signature: str = ""
    title: str = ""
    stack: tuple[str, ...] = ()
    wrappers: tuple[SourceLocation, ...] = ()
    branch: Branch | None = None
    asked: bool = False
    without_tensors: bool = False

    def may_be_of(self, code_name: str, location: SourceLocation | None) -> bool:
        """Return whether a code object of this name and place may be the frame's; an unknown place may be any."""
        return code_name == self.code_name and (location is None or self.location is None or (
            location.filename, location.line) == (self.location.filename, self.location.line))


@dataclass(frozen=True)
class CompiledFunction:
    """A function that torch.compile was asked about.

    Attributes:
        name: the first frame's.
        file: its full code, in the dump.
    """

    name: str
    frames: tuple[Frame, ...]
    file: str = ""


@dataclass(frozen=True)
class Caller:
    """A line of the user's that called Python code of torch's (``torch.func``, an optimiser), which made ``nodes``."""

    location: SourceLocation
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModuleCall:
    """One call of an ``nn.Module`` while a graph was captured.

    Attributes:
        path: from the compiled module, as ``named_modules()`` names it: ``"layers.0.q_proj"``. For a compiled
            function it begins with the name of the variable that held the module.
        cls: ``"Linear"``.
        outer: index in ``GraphStage.modules`` of the call that it was made in; -1 for an outermost one.
        nodes: names of the nodes made in it and in no call within it, in order.
    """

    path: str
    cls: str
    outer: int = -1
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class GraphInput:
    """A parameter of a captured graph.

    Attributes:
        name: torch's, ``"L_self_modules_norm_parameters_weight_"``.
        source: how torch reads it from the frame, ``"L['self']._modules['norm']._parameters['weight']"``; empty where
            torch does not tell.
    """

    name: str
    source: str = ""


@dataclass(frozen=True)
class GraphStage:
    """A graph at one stage.

    Attributes:
        stage: ``Captured_Graph``, ``Joint_graph``, ``Forward_graph``, ``Backward_graph``,
            ``AFTER_POST_GRAD``; or an internal stage's name.
        index: 0, 1, ... within the stage of one graph.
        text: the graph as Python source with shape, dtype, device and user line as comments.
        internal: written only on request.
        file: its file in the dump.
        modules: the calls of modules that its nodes were made in, where torch recorded them (it does so for the
            captured graph; :mod:`depyf.provenance` infers those of the others). In the order in which they
            began; a node of the frame itself is in none.
        outline: its outline by module, a file in the dump.
        inputs: of the captured graph, in order, where torch says what they are.
        callers: of the captured graph: lines of the user's behind nodes of which torch prints a place in its own code.
        shown_as: of a stage that a backend showed, the name that the backend gave it.
    """

    stage: str
    index: int
    text: str
    internal: bool = False
    compile_id: CompileId | None = None
    file: str = ""
    modules: tuple[ModuleCall, ...] = ()
    outline: str = ""
    inputs: tuple[GraphInput, ...] = ()
    callers: tuple[Caller, ...] = ()
    shown_as: str = ""

    @property
    def is_python(self) -> bool:
        """Return whether the text is Python; a backend may show any text."""
        return not self.file.endswith(".txt")


@dataclass(frozen=True)
class KernelCall:
    """One call of a kernel in a generated module.

    Attributes:
        name: ``"cpp_fused_add_relu_0"``, ``"triton_poi_fused_add_0"``, ``"extern_kernels.mm"``.
        kind: ``"C++"``, ``"Triton"``, the same with ``" template"``, ``"extern"`` for a library's, or what torch calls
            the compiler.
        line: of its definition in ``Kernel.text``, from 1; 0 for a library's.
        call_line: of the call.
        nodes: nodes of the graph ``Kernel.stage`` that it computes, in the graph's order.
        inferred: they were inferred from what flows (:mod:`depyf.provenance.kernel_mapping`); otherwise torch says so.
        sources: nodes of the captured graph, or of the backward one, that torch names above the call.
    """

    name: str
    kind: str
    line: int = 0
    call_line: int = 0
    nodes: tuple[str, ...] = ()
    inferred: bool = True
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """A module that Inductor generated.

    Attributes:
        path: where torch keeps its own copy.
        file: ours in the dump.
        stage: the graph that it was made of, ``"AFTER_POST_GRAD.0"``; ``""`` where none fits.
        calls: of its kernels, in the order in which they stand.
        outline: its calls with the user's lines, a file in the dump.
    """

    index: int
    text: str
    path: str = ""
    compile_id: CompileId | None = None
    file: str = ""
    stage: str = ""
    calls: tuple[KernelCall, ...] = ()
    outline: str = ""


@dataclass(frozen=True)
class CompiledGraph:
    """A graph that transformed code calls, or that was compiled without a Dynamo frame.

    Attributes:
        name: as shown, unique suffix dropped where nothing clashes: ``__compiled_fn_1``.
        torch_name: as in torch, ``__compiled_fn_1_9148bb58_...``.
        backend: name of the backend.
        call: of a graph without a Dynamo frame: the function that was called (``compile_fx``), and the line that
            called it. The compile id is then of no frame of torch's.
        by_compiler: that function is one of torch's compilers; otherwise it is the user's, and showed a graph.
        piece_of: the name of the graph that the backend split; this graph, ``__compiled_fn_1.submod_0``, is one of its
            pieces, compiled alone. Empty for whole graphs.
    """

    name: str
    torch_name: str
    compile_id: CompileId
    backend: str
    stages: tuple[GraphStage, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    call: SourceLocation | None = None
    by_compiler: bool = True
    piece_of: str = ""

    @property
    def inputs(self) -> tuple[GraphInput, ...]:
        """Of the captured graph, as far as torch says what they are."""
        return next((stage.inputs for stage in self.stages if stage.inputs), ())


# --- compilations ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class UnreadEvent:
    """An event of torch's structured trace that depyf does not read, as torch wrote it.

    Attributes:
        name: its kind; of an ``artifact`` the name of that.
        text: its payload; its metadata, as JSON, where it has none.
        compile_id: of the compilation in which it came.
        graph: the name of the graph, or of the piece of one, that was being compiled; empty where none was.
        number: its place among such events of the run, from 1.
    """

    name: str
    text: str = ""
    compile_id: CompileId | None = None
    graph: str = ""
    number: int = 0


@dataclass(frozen=True)
class NamedValue:
    """What torch knew of a local variable where a graph broke.

    Attributes:
        name: of the variable.
        type: of the value, ``"Tensor"``, ``"Parameter"``, ``"int"``, ``"list"``; ``""`` where torch does not tell.
        shape: of a tensor, a size that torch leaves open by its symbol: ``("4", "s27")``; ``None`` for other values.
        dtype, device: of a tensor: ``"float32"``, ``"cpu"``.
        requires_grad: of a tensor.
        source: how torch reads it from the frame, ``"L['x']"``; ``""`` for what the function computed.
        same_as: another variable, named before it, that holds the same object; ``""`` for none.
        shares_memory: of a tensor: it is a view, or another variable is a tensor with the same memory.
    """

    name: str
    type: str = ""
    shape: tuple[str, ...] | None = None
    dtype: str = ""
    device: str = ""
    requires_grad: bool = False
    source: str = ""
    same_as: str = ""
    shares_memory: bool = False


@dataclass(frozen=True)
class GraphBreak:
    """A place where a graph ended although the function went on.

    Attributes:
        reason: torch's heading, ``"Data-dependent branching"``.
        explanation: torch's sentences on it; may be empty.
        hints: torch's advice.
        context: torch's "developer debug context".
        registry_id: ``"GB0170"`` of torch's registry of graph breaks, ``""`` where torch names none.
        url: the registry's page.
        stack: the user's stack, outermost first; its last is where the break is.
        skips_function: torch gave the whole function up because of it (it runs in plain Python).
        raw: torch's own text.
        depth: how many places of ``stack`` lie in the compiled frame and what was inlined into it; 0 where unknown.
        gave_up: why the function could not continue behind the break: torch's heading, ``"graph break in loop"``, and
            its sentences on it.
        values: the local variables of the function that the break is in; empty where torch does not tell (a log).
    """

    compile_id: CompileId
    reason: str
    explanation: str = ""
    hints: tuple[str, ...] = ()
    context: str = ""
    registry_id: str = ""
    url: str = ""
    stack: tuple[SourceLocation, ...] = ()
    skips_function: bool = False
    raw: str = ""
    depth: int = 0
    gave_up: str = ""
    values: tuple[NamedValue, ...] = ()

    @property
    def location(self) -> SourceLocation | None:
        """The place of the break, the last of :attr:`stack`; ``None`` where torch gave no stack."""
        return self.stack[-1] if self.stack else None


@dataclass(frozen=True)
class GuardFailure:
    """A reason for which an existing cache entry did not fit a call.

    Attributes:
        entry: the cache entry.
        text: torch's reason, ids of objects left out.
        source: the guarded object, ``"L['a']"`` or a part of it; ``""`` where the text names none.
        expected, seen: as text, ``"10"`` and ``"12"``; ``""`` where unknown.
        cause: the user line that made Dynamo guard, if known.
        subject: what was compared, as Python (``"a.size()[0]"``, ``"len(cache)"``) or in words.
        hint: torch's advice.
        owner: what torch says that the value belongs to: ``"parameter"`` (a size of one), ``"module"`` (a whole number
            that is an attribute of one); ``""`` where it says nothing.
    """

    entry: CompileId | None
    text: str
    source: str = ""
    expected: str = ""
    seen: str = ""
    cause: SourceLocation | None = None
    subject: str = ""
    hint: str = ""
    owner: str = ""


@dataclass(frozen=True)
class SymbolDecision:
    """A decision about a dynamic shape.

    Attributes:
        kind: ``"created"`` (from now on any value in the range), ``"unbacked"`` (a value that only the data
            tells), ``"fixed"`` (the graph holds for one value only) or ``"guarded"`` (a condition on symbols).
        symbol: ``"s27"``; for ``"guarded"`` the condition ``"s27 <= 4096"``.
        source: the input it comes from, ``"L['a'].size()[0]"``; may be empty.
        value: the value seen when compiling; ``""`` where there is none.
        range: torch's value range, ``"[2, int_oo]"``.
        reason: torch's word for why it was fixed.
        location: the user's line; of a condition that Inductor asks for, that of Inductor's.
    """

    kind: str
    symbol: str
    source: str = ""
    value: str = ""
    range: str = ""
    reason: str = ""
    location: SourceLocation | None = None


@dataclass(frozen=True)
class CacheKeyPart:
    """A part of the key that a compile cache was asked for.

    Attributes:
        name: torch's: ``"gm"`` (the graph), ``"example_inputs"``, ``"inductor_config"``, ``"torch_version"``, …
        digest: of its value.
    """

    name: str
    digest: str


@dataclass(frozen=True)
class CacheLookup:
    """One question to a compile cache of torch's.

    Attributes:
        cache: ``"fx_graph"`` (Inductor's) or ``"aotautograd"``.
        outcome: ``"hit"``, ``"miss"`` or ``"bypass"``.
        reason: why it was bypassed.
        key: its parts, where torch tells them (Inductor's cache).
        options: those of ``torch._inductor.config`` that were not at their default: ``"max_autotune = True"``.
    """

    cache: str
    outcome: str
    reason: str = ""
    key: tuple[CacheKeyPart, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Phase:
    """Time that a compilation spent in a part of torch, in seconds. Parts nest: inner ones count in outer ones."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Span:
    """A span of time in which a compilation was in a part of torch.

    Attributes:
        name: torch's: ``"compile_fx.<locals>.fw_compiler_base"``.
        start: seconds since the epoch.
        seconds: how long.
        depth: 0 for an outermost one; inner ones lie within the last of less depth before them.
    """

    name: str
    start: float
    seconds: float
    depth: int = 0


@dataclass(frozen=True)
class Failure:
    """The reason for which a compilation gave no code. ``kind`` is the exception's name."""

    kind: str
    reason: str
    location: SourceLocation | None = None


@dataclass(frozen=True)
class TracedLines:
    """Lines of one file, in order, that Dynamo came to while it traced, whatever became of them."""

    filename: str
    lines: tuple[int, ...]


@dataclass(frozen=True)
class Compilation:
    """One compilation of one frame, whatever came of it.

    Attributes:
        compile_id: with the number of the last attempt.
        function: torch's ``co_name``; ``""`` if nothing tells it.
        location: where the function stands.
        stack: who called it, outermost first.
        outcome: ``"compiled"``; ``"skipped"`` (it runs in plain Python), ``"limit"`` (the same, because it was
            recompiled too often), ``"failed"`` (an exception reached the user's program or torch fell back),
            ``"open"`` (it went on when the block ended, which was entered inside the backend), or ``"unknown"``
            (unknown: the run ended early).
        failure: why, unless it was compiled.
        restarts: why tracing began again, one reason for each attempt but the last.
        breaks: graph breaks met in the last attempt or in those that were given up for them.
        guard_failures: what made torch compile it again, the newest entry first; empty for a first compilation.
        symbols: decisions about dynamic shapes, in order.
        caches: lookups in torch's caches.
        phases: time by part, backward included.
        start: seconds since the epoch; 0.0 where unknown.
        seconds: the whole compilation, backward included.
        counts: torch's own counts (``guards``, ``operations``, ``nodes``, ``inputs``, ``cache_entries`` before it,
            ``all_cache_entries`` of the code object, ``shape_guards``; ``guard_microseconds`` that one check of all
            guards took torch).
        timeline: what it did when, from 1 ms on, in the order in which it began; backward included.
        backward_failure: why the backward graph could not be compiled.
        custom_ops: operators in the graph that are not torch's own.
        traced: lines that the last attempt came to; empty where torch does not tell.
        user_function: the function that the user means by it; ``None`` in what a log of ``TORCH_TRACE`` tells.
        arguments: of ``torch.compile``, as Python, those of ``mode``, ``options``, ``dynamic`` and ``fullgraph`` that
            are not at their default: ``{"dynamic": "True"}``. Options of Inductor that are those of a mode stand as
            ``mode``, for torch keeps no more of a mode. What is no plain value stands as a name, its own or that of its
            type, and ``...`` for what is cut. ``None`` where that is not known.
    """

    compile_id: CompileId
    function: str = ""
    location: SourceLocation | None = None
    stack: tuple[SourceLocation, ...] = ()
    outcome: str = "unknown"
    failure: Failure | None = None
    restarts: tuple[str, ...] = ()
    breaks: tuple[GraphBreak, ...] = ()
    guard_failures: tuple[GuardFailure, ...] = ()
    symbols: tuple[SymbolDecision, ...] = ()
    caches: tuple[CacheLookup, ...] = ()
    phases: tuple[Phase, ...] = ()
    start: float = 0.0
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    timeline: tuple[Span, ...] = ()
    backward_failure: Failure | None = None
    custom_ops: tuple[str, ...] = ()
    traced: tuple[TracedLines, ...] = ()
    user_function: UserFunction | None = None
    arguments: dict[str, str] | None = None


@dataclass(frozen=True)
class SourceFile:
    """A file of the user's as it was when the run ended. ``path`` is what locations call it."""

    path: str
    text: str


# --- while the run goes on ------------------------------------------------------------------------------
@dataclass(frozen=True)
class StageOfGraph:
    """A stage of the graph of that name, once it is complete."""

    graph: str
    stage: GraphStage


@dataclass(frozen=True)
class KernelOfGraph:
    """A generated module of the graph of that name."""

    graph: str
    kernel: Kernel


@dataclass(frozen=True)
class CodeObject:
    """A code object of the program's: bytecodes name it by its number."""

    number: int
    code: PackedCode


@dataclass(frozen=True)
class MeantFunction:
    """The function that the user means by a frame.

    Attributes:
        name: in the user's words.
        code: number of its code object.
        wrappers: names and code objects of those it is called through, outermost first.
    """

    name: str
    code: int
    wrappers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class ResumeOfBytecode:
    """A resume function that transformed code calls.

    Attributes:
        name: by which the code calls it.
        shown: by which texts do.
        code: number of its code object.
        parameters: their names.
        meant: the function that it continues, in the user's words.
    """

    name: str
    shown: str
    code: int
    parameters: tuple[str, ...]
    meant: str


@dataclass(frozen=True)
class TracedCode:
    """A function as Dynamo traced it: with other instructions for some of its own.

    Attributes:
        code: it, with the places of the original.
        resumes: names of its resume functions, with their names by the offsets in ``code``.
    """

    code: PackedCode
    resumes: dict[str, str]


@dataclass(frozen=True)
class Bytecode:
    """Code that Dynamo made, as it made it: the text is written when somebody wants to read it.

    Attributes:
        function_name: as in :class:`TransformedCode`, as ``file``.
        text_name: of the function in the text: ``__transformed_code_0_for_toy_example``.
        original: number of the code object that torch compiled.
        meant: what the user means by that.
        transformed: what torch made of it.
        shown: global names that texts show differently.
        graph_names: as in :class:`CacheEntry`.
        resumes: the resume functions that it calls.
        facts: what is known of the objects that it was compiled for (:mod:`depyf.capture.fact_snapshot`).
        traced: what Dynamo traced, where a graph breaks in it.
    """

    compile_id: CompileId
    function_name: str
    text_name: str
    file: str
    original: int
    meant: MeantFunction
    transformed: PackedCode
    shown: dict[str, str]
    graph_names: tuple[str, ...]
    resumes: tuple[ResumeOfBytecode, ...] = ()
    facts: str = ""
    traced: TracedCode | None = None


@dataclass(frozen=True)
class OrderOfEntries:
    """The order in which torch tried the versions of a code object when the run ended.

    Attributes:
        code: its number.
        tried: the compilations, in that order.
        asked: torch was asked to compile it.
        without_tensors: it is a resume function, and torch left it to plain Python since no tensor was in its frame.
    """

    code: int
    tried: tuple[tuple[CompileId, int], ...] = ()
    asked: bool = False
    without_tensors: bool = False


@dataclass(frozen=True)
class EndOfRecording:
    """The run came to its end, and what is made of its records is still to be made.

    Attributes:
        full_paths: paths as torch shortened them -> paths.
        options: how it is made: ``"unsimplified"``: each text once more with nothing simplified; others are those of
            :mod:`depyf.run_files`.
    """

    UNSIMPLIFIED: ClassVar[str] = "unsimplified"

    full_paths: dict[str, str]
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class GuardsOfEntry:
    """Torch's printed guard tree of a cache entry."""

    compile_id: CompileId
    text: str


@dataclass(frozen=True)
class Unwritten:
    """Records of which functions are made (:mod:`depyf.finishing`): those of a run whose texts are not written yet.

    Attributes:
        codes: code objects, each once.
        bytecodes: in the order in which Dynamo made them.
        guards: torch's printed guard trees.
        orders: at the end of the run; none of one that was killed.
        recorded: the run came to its end.
    """

    codes: tuple[CodeObject, ...] = ()
    bytecodes: tuple[Bytecode, ...] = ()
    guards: tuple[GuardsOfEntry, ...] = ()
    orders: tuple[OrderOfEntries, ...] = ()
    recorded: EndOfRecording | None = None


# --- the whole ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Capture:
    """All records of a run; the docstring of this module shows them as a tree.

    Attributes:
        environment: the versions, the command and the date (:mod:`depyf.records.environment`).
    """

    functions: tuple[CompiledFunction, ...] = ()
    graphs: tuple[CompiledGraph, ...] = ()
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    compilations: tuple[Compilation, ...] = ()
    sources: tuple[SourceFile, ...] = ()
    unwritten: Unwritten | None = None
    events: tuple[UnreadEvent, ...] = ()

    @property
    def lost(self) -> frozenset[tuple[int, int, int]]:
        """The keys of compilations that gave no version, whatever torch had made when they ended."""
        return frozenset(each.compile_id.key for each in self.compilations if each.outcome != "compiled")
