"""Records of what watching ``torch.compile`` yields: plain and immutable.

They refer to no objects of torch's, so that every view can be made again later, elsewhere and without torch.
docs/records.md says more of each field. An empty text, or ``None``, is what is not known::

    Capture                                   the whole run
      compilations: tuple[Compilation]        in the order in which torch began them
      functions: tuple[CompiledFunction]      one per user function that torch.compile was asked about
        frames: tuple[Frame]                  the function itself, then its resume functions
          entries: tuple[CacheEntry]          its versions, with guards, transformed code, and names of graphs
      graphs: tuple[CompiledGraph]            by name: stages and kernels
      notes: tuple[str]                       what could not be captured, and why (one line each)
      sources: tuple[SourceFile]              the user's files that the others name
      alike_ranks: tuple[AlikeRank]           other ranks with the same log, which have no records of their own
      unwritten: Unwritten | None             what functions are made of, while their texts are not written

A cache entry, a graph and a compilation with the same ``frame`` and ``recompile`` in their :class:`CompileId` belong to
each other.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import ClassVar

from ..bytecode.packed import PackedCode
from ..values import frozen


@frozen
class CompileId:
    """Torch's ``[frame/recompile]`` with the attempt (0 unless tracing was restarted).

    ``torch._dynamo.reset()`` makes torch count from 0 again; ``resets`` is how often it did so during the run.
    """

    frame: int
    recompile: int
    attempt: int = 0
    resets: int = 0

    def __str__(self) -> str:
        return f"[{self.frame}/{self.recompile}]" + (f" after reset {self.resets}" if self.resets else "")

    @cached_property
    def key(self) -> tuple[int, int, int]:
        """The key of a compilation, whatever its attempts."""
        return self.resets, self.frame, self.recompile

    @cached_property
    def frame_key(self) -> tuple[int, int]:
        """The key of a frame, for all its compilations."""
        return self.resets, self.frame


@frozen
class SourceLocation:
    """A place in the user's files. ``text`` is the source line, where it is known."""

    filename: str
    line: int
    function: str = ""
    text: str = ""

    def is_at(self, other: SourceLocation | None) -> bool:
        """Return whether another place is on the same line."""
        return other is not None and (self.filename, self.line) == (other.filename, other.line)


@frozen
class UserFunction:
    """The function that the user means by a frame (:mod:`depyf.capture.user_function`)."""

    name: str  # `"LlamaModel.forward"`, `"lambda at line 12"`; of a resume function, of what it continues
    location: SourceLocation | None = None  # where it begins
    wrappers: tuple[SourceLocation, ...] = ()  # as in `Frame`


@frozen
class Guard:
    """One condition that must hold for a cache entry to be used."""

    expression: str  # Python over `L` (locals) and `G` (globals): `check_tensor(L['a'], dtype=..., ...)`
    source: str  # the guarded object as an expression, `"L['a']"`; `""` for global state
    kind: str  # torch's guard type, `"TENSOR_MATCH"`
    raw: str  # torch's own text, verbatim
    cause: SourceLocation | None = None  # the user's line that made Dynamo guard, if known


@frozen
class CodeText:
    """Decompiled source of one code object."""

    text: str
    fidelity: str  # `"exact"`, `"equivalent"` or `"fallback"`
    note: str = ""  # what to know about it (simplifications made, why it fell back); may be empty


@frozen
class TransformedCode:
    """The code that Dynamo made of a frame."""

    compile_id: CompileId
    function_name: str  # as in `Frame.name`
    source: CodeText  # what people read (simplified)
    exact: CodeText | None  # the same with nothing simplified, when it differs; else `None`
    arguments: tuple[str, ...]  # parameter names
    file: str = ""

    @property
    def known(self) -> bool:
        """Return whether there is source at all (a log of ``TORCH_TRACE`` has none)."""
        return "def " in self.source.text


@frozen
class CacheEntry:
    """A version of a frame; of a compilation that failed late, what torch had made of it."""

    compile_id: CompileId
    guards: tuple[Guard, ...]
    transformed: TransformedCode
    graph_names: tuple[str, ...]
    resume_names: tuple[str, ...] = ()
    guards_file: str = ""  # its conditions, a file in the dump
    # its place in the order in which torch tried the versions when the run ended: the one that was used last is first
    tried: int | None = None


@frozen
class Branch:
    """The branch that a resume function continues."""

    condition: str  # the user's expression that broke the graph
    held: bool  # whether it was true


@frozen
class Frame:
    """A function whose frames Dynamo compiles: the user's, or a resume function."""

    name: str  # legal Python name, in texts (`toy_example`, `LlamaModel_forward`, `__resume_at_102_2`)
    code_name: str  # torch's `co_name` (`wrapper`, `torch_dynamo_resume_in_toy_example_at_4`)
    location: SourceLocation | None  # where the user's text is
    original: CodeText  # the user's text if there is one, else decompiled
    original_is_user_text: bool
    arguments: tuple[str, ...]  # parameter names (free variables not included)
    freevars: tuple[str, ...]  # names of captured variables
    entries: tuple[CacheEntry, ...]  # what was compiled; empty if it was only run or skipped
    signature: str = ""  # the parameters as in a `def`
    title: str = ""  # in the user's words (`LlamaModel.forward`); of a resume function, that of what it continues
    stack: tuple[str, ...] = ()  # of a resume function, the user's expressions of `___stack0`, `___stack1`, ...
    # what it is called through, outermost first. The first is what torch compiled: code name, arguments, free variables
    # and signature are its.
    wrappers: tuple[SourceLocation, ...] = ()
    branch: Branch | None = None  # that a resume function continues; `None` where that is not known
    asked: bool = False  # torch was asked to compile it: it was called
    without_tensors: bool = False  # torch left this resume function to plain Python: its frame had no tensor

    def may_be_of(self, code_name: str, location: SourceLocation | None) -> bool:
        """Return whether a code object of this name and place may be the frame's; an unknown place may be any."""
        return code_name == self.code_name and (location is None or self.location is None or (
            location.filename, location.line) == (self.location.filename, self.location.line))


@frozen
class CompiledFunction:
    """A function that torch.compile was asked about."""

    name: str  # the first frame's
    frames: tuple[Frame, ...]
    file: str = ""  # its full code, in the dump


@frozen
class Caller:
    """A user's line that called Python code of torch's (``torch.func``, an optimiser), which made ``nodes``."""

    location: SourceLocation
    nodes: tuple[str, ...] = ()


@frozen
class ModuleCall:
    """One call of an ``nn.Module`` while a graph was captured."""

    path: str  # from the compiled module, `"layers.0.q_proj"`; in a function, from the variable of a module
    cls: str  # `"Linear"`
    outer: int = -1  # index in `GraphStage.modules` of the call that it was made in; -1 for an outermost one
    nodes: tuple[str, ...] = ()  # names of the nodes made in it and in no call within it, in order


@frozen
class GraphInput:
    """A parameter of a captured graph."""

    name: str  # torch's, `"L_self_modules_norm_parameters_weight_"`
    source: str = ""  # how torch reads it from the frame, `"L['self']._modules['norm']._parameters['weight']"`


@frozen
class GraphStage:
    """A graph at one stage."""

    stage: str  # `Captured_Graph`, `Joint_graph`, `AFTER_POST_GRAD`, ... (:mod:`.naming`)
    index: int  # 0, 1, ... within the stage of one graph
    text: str  # the graph as Python source with shape, dtype, device and user line as comments
    internal: bool = False  # written only on request
    compile_id: CompileId | None = None
    file: str = ""  # its file in the dump
    # of the captured graph, the calls of modules that its nodes were made in, in the order in which they began
    # (:mod:`depyf.provenance` infers those of other stages)
    modules: tuple[ModuleCall, ...] = ()
    outline: str = ""  # its outline by module, a file in the dump
    inputs: tuple[GraphInput, ...] = ()  # of the captured graph, in order, where torch says what they are
    callers: tuple[Caller, ...] = ()  # of the captured graph: of nodes for which torch prints a place of its own
    shown_as: str = ""  # of a stage that a backend showed, the name that the backend gave it

    @property
    def is_python(self) -> bool:
        """Return whether the text is Python; a backend may show any text."""
        return not self.file.endswith(".txt")


@frozen
class KernelCall:
    """One call of a kernel in a generated module."""

    name: str  # `"cpp_fused_add_relu_0"`, `"triton_poi_fused_add_0"`, `"extern_kernels.mm"`
    kind: str  # `"C++"`, `"Triton"`, the same with `" template"`, `"extern"` for a library's, or torch's word
    line: int = 0  # of its definition in `Kernel.text`, from 1; 0 for a library's
    call_line: int = 0
    nodes: tuple[str, ...] = ()  # nodes of the graph `Kernel.stage` that it computes, in the graph's order
    inferred: bool = True  # (:mod:`depyf.provenance.kernel_mapping`); else torch names the nodes
    sources: tuple[str, ...] = ()  # nodes of the captured or the backward graph that torch names above the call


@frozen
class Kernel:
    """A module that Inductor generated."""

    index: int
    text: str
    path: str = ""  # where torch keeps its own copy
    compile_id: CompileId | None = None
    file: str = ""  # its file in the dump
    stage: str = ""  # the graph that it was made of, `"AFTER_POST_GRAD.0"`; `""` where none fits
    calls: tuple[KernelCall, ...] = ()  # of its kernels, in order
    outline: str = ""  # its calls with the user's lines, a file in the dump


@frozen
class Phase:
    """Time that a compilation spent in a part of torch, in seconds. Parts nest: inner ones count in outer ones."""

    name: str
    seconds: float


@frozen
class ScheduledOperation:
    """A kernel or a collective of the code that Inductor generated, in the order in which they run."""

    name: str  # `"extern_kernels.mm"`, `"op1_op2"`, `"torch.ops._c10d_functional.all_reduce_.default"`
    is_collective: bool
    estimate: float  # of Inductor's, in seconds
    outputs: tuple[str, ...] = ()  # `"float16[1024, 1024]"`, with its strides if it is not contiguous


@frozen
class TritonKernel:
    """What Inductor did to compile a Triton kernel."""

    name: str  # `"triton_poi_fused_mul_1"`
    tuning: str  # of the cache of tuned configurations, `"miss"`, `"hit"` or `"only 1 config"`
    configurations: int = 1  # that were to be measured
    chosen: tuple[str, ...] = ()  # the configuration, where it is known: `"XBLOCK 128"`, `"num_warps 4"`
    seconds: float = 0.0  # of compiling it


@frozen
class ExpressionStep:
    """How an expression on sizes was computed."""

    result: str  # `"-u0"`
    location: SourceLocation | None = None  # the user's line


@frozen
class ExportIssue:
    """Something that ``torch.export`` could not know, and decided."""

    # `"failed"` (an exception), `"fixed"` (a size), `"guard"` (a condition on sizes), `"data"` (a condition on data),
    # `"no fake kernel"` or `"wrong fake kernel"` (of a custom operator)
    kind: str
    subject: str  # the condition, the size, the operator, or the type of the exception
    outcome: str = ""  # what the condition was taken for; the size's value; the message; what is wrong of a kernel
    location: SourceLocation | None = None  # the user's line
    values: tuple[tuple[str, str], ...] = ()  # local variables there, and what symbols are
    steps: tuple[ExpressionStep, ...] = ()  # of a condition: how it was computed, the last step first


@frozen
class CompiledGraph:
    """A graph that transformed code calls, or that was compiled without a Dynamo frame."""

    name: str  # as shown, unique suffix dropped where nothing clashes: `__compiled_fn_1`
    torch_name: str  # as in torch, `__compiled_fn_1_9148bb58_...`
    compile_id: CompileId
    backend: str
    stages: tuple[GraphStage, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    # of a graph without a Dynamo frame (its compile id is of none): the function called, `compile_fx`, and where
    call: SourceLocation | None = None
    by_compiler: bool = True  # that function is one of torch's compilers; else it is the user's, and showed a graph
    piece_of: str = ""  # of a piece that was compiled alone, `__compiled_fn_1.submod_0`: the graph that was split
    collectives: tuple[str, ...] = ()  # of Inductor's code, in order, like what follows
    schedule: tuple[ScheduledOperation, ...] = ()
    triton: tuple[TritonKernel, ...] = ()
    issues: tuple[ExportIssue, ...] = ()  # what `torch.export` decided
    phases: tuple[Phase, ...] = ()  # of a graph without a frame: time by part, where torch reported it

    @property
    def captured(self) -> GraphStage | None:
        """The graph as Dynamo captured it; ``None`` where that is not known."""
        return next((stage for stage in self.stages if stage.stage == "Captured_Graph"), None)

    @property
    def inputs(self) -> tuple[GraphInput, ...]:
        """Of the captured graph, as far as torch says what they are."""
        return next((stage.inputs for stage in self.stages if stage.inputs), ())


# --- compilations ---------------------------------------------------------------------------------------
@frozen
class UnreadEvent:
    """An event of torch's structured trace that depyf does not read, as torch wrote it."""

    name: str  # its kind; of an `artifact` the name of that
    text: str = ""  # its payload; its metadata, as JSON, where it has none
    compile_id: CompileId | None = None  # of the compilation in which it came
    graph: str = ""  # the name of the graph, or of the piece of one, that was being compiled; empty where none was
    number: int = 0  # its place among such events of the run, from 1


@frozen
class NamedValue:
    """What torch knew of a local variable where a graph broke."""

    name: str
    type: str = ""  # `"Tensor"`, `"Parameter"`, `"int"`, `"list"`
    shape: tuple[str, ...] | None = None  # of a tensor, with torch's symbols for open sizes: `("4", "s27")`
    dtype: str = ""  # of a tensor: `"float32"`, `"cpu"`
    device: str = ""
    requires_grad: bool = False  # of a tensor
    source: str = ""  # how torch reads it from the frame, `"L['x']"`; `""` for what the function computed
    same_as: str = ""  # another variable, named before it, with the same object; `""` for none
    shares_memory: bool = False  # of a tensor: it is a view, or another variable is a tensor with the same memory


@frozen
class GraphBreak:
    """A place where a graph ended although the function continued."""

    compile_id: CompileId
    reason: str  # torch's heading, `"Data-dependent branching"`
    explanation: str = ""  # torch's sentences on it; may be empty
    hints: tuple[str, ...] = ()  # torch's advice
    context: str = ""  # torch's "developer debug context"
    registry_id: str = ""  # `"GB0170"` of torch's registry of graph breaks, `""` where torch names none
    url: str = ""  # the registry's page
    stack: tuple[SourceLocation, ...] = ()  # the user's stack, outermost first; its last is where the break is
    skips_function: bool = False  # because of it, torch runs the whole function in plain Python
    raw: str = ""  # torch's own text
    depth: int = 0  # the number of places of `stack` in the compiled frame and what was inlined into it
    gave_up: str = ""  # why the function could not continue after it: `"graph break in loop"`, and sentences
    values: tuple[NamedValue, ...] = ()  # local variables of the function that it is in; none in a log

    @property
    def location(self) -> SourceLocation | None:
        """The place of the break, the last of :attr:`stack`; ``None`` where torch gave no stack."""
        return self.stack[-1] if self.stack else None


@frozen
class GuardFailure:
    """A reason for which an existing cache entry did not fit a call."""

    entry: CompileId | None  # the cache entry
    text: str  # torch's reason, ids of objects left out
    source: str = ""  # the guarded object, `"L['a']"` or a part of it; `""` where the text names none
    expected: str = ""  # as text, `"10"` and `"12"`; `""` where unknown
    seen: str = ""
    cause: SourceLocation | None = None  # the user's line that made Dynamo guard, if known
    subject: str = ""  # what was compared, as Python (`"a.size()[0]"`, `"len(cache)"`) or in words
    hint: str = ""  # torch's advice
    owner: str = ""  # what the value belongs to: `"parameter"` (a size of one), `"module"` (a number in one)


@frozen
class SymbolDecision:
    """A decision about a dynamic shape."""

    # `"created"` (from now on any value in the range), `"unbacked"` (a value that depends on data), `"fixed"`
    # (the graph holds for one value only) or `"guarded"` (a condition on symbols)
    kind: str
    symbol: str  # `"s27"`; for `"guarded"` the condition `"s27 <= 4096"`
    source: str = ""  # the input it comes from, `"L['a'].size()[0]"`; may be empty
    value: str = ""  # the value seen when compiling; `""` where there is none
    range: str = ""  # torch's value range, `"[2, int_oo]"`
    reason: str = ""  # torch's word for why it was fixed
    location: SourceLocation | None = None  # the user's line, or that of the backend that asks for a condition
    stack: tuple[SourceLocation, ...] = ()  # the places in the program's backend that led to its line, outermost first


@frozen
class CacheKeyPart:
    """A part of the key of a look-up in a compile cache."""

    name: str  # torch's: `"gm"` (the graph), `"example_inputs"`, `"inductor_config"`, `"torch_version"`, …
    digest: str  # of its value


@frozen
class CacheLookup:
    """A look-up in one of torch's compile caches."""

    cache: str  # `"fx_graph"` (Inductor's) or `"aotautograd"`
    outcome: str  # `"hit"`, `"miss"` or `"bypass"`
    reason: str = ""  # why it was bypassed
    key: tuple[CacheKeyPart, ...] = ()  # its parts, where they are known (Inductor's cache)
    options: tuple[str, ...] = ()  # of `torch._inductor.config`, not at their default: `"max_autotune = True"`


@frozen
class Span:
    """A span of time in which a compilation was in a part of torch."""

    name: str  # torch's: `"compile_fx.<locals>.fw_compiler_base"`
    start: float  # seconds since the epoch
    seconds: float
    depth: int = 0  # 0 for an outermost one; inner ones lie within the last of less depth before them


@frozen
class Failure:
    """The reason for which a compilation gave no code. ``kind`` is the exception's name."""

    kind: str
    reason: str
    location: SourceLocation | None = None


@frozen
class TracedLines:
    """Lines of one file, in order, that Dynamo came to while it traced, whatever became of them."""

    filename: str
    lines: tuple[int, ...]


@frozen
class Compilation:
    """One compilation of one frame, whatever came of it."""

    compile_id: CompileId  # with the number of the last attempt
    function: str = ""  # torch's `co_name`; `""` if it is not known
    location: SourceLocation | None = None  # where the function begins
    stack: tuple[SourceLocation, ...] = ()  # who called it, outermost first
    # `"compiled"`; `"skipped"` (runs in plain Python), `"limit"` (likewise, or an exception: recompiled too often),
    # `"failed"` (an exception, or torch fell back), `"open"` (the block ended first), `"loaded"` (of a package of
    # versions that were compiled before), or `"unknown"` (the run ended early)
    outcome: str = "unknown"
    failure: Failure | None = None  # why, unless it was compiled
    restarts: tuple[str, ...] = ()  # why tracing began again, one reason for each attempt but the last
    breaks: tuple[GraphBreak, ...] = ()  # graph breaks met in the last attempt or in those that were given up for them
    guard_failures: tuple[GuardFailure, ...] = ()  # what made torch compile it again, the newest entry first
    symbols: tuple[SymbolDecision, ...] = ()  # decisions about dynamic shapes, in order
    caches: tuple[CacheLookup, ...] = ()  # lookups in torch's caches
    phases: tuple[Phase, ...] = ()  # time by part, backward included
    start: float = 0.0  # seconds since the epoch; 0.0 where unknown
    seconds: float = 0.0  # the whole compilation, backward included
    counts: dict[str, int] = field(default_factory=dict)  # torch's own: `guards`, `nodes`, `guard_microseconds`, ...
    timeline: tuple[Span, ...] = ()  # what it did when, from 1 ms on, in the order in which it began; backward included
    backward_failure: Failure | None = None  # why the backward graph could not be compiled
    traced: tuple[TracedLines, ...] = ()  # lines that the last attempt came to; empty where that is not known
    user_function: UserFunction | None = None  # that the user means by it; `None` for a log of `TORCH_TRACE`
    # of `torch.compile`, as Python, what is not at its default: `{"dynamic": "True"}`; `None` where that is not known
    arguments: dict[str, str] | None = None

    @property
    def place(self) -> SourceLocation | None:
        """Where the function begins that the user means, which a wrapper may be around."""
        meant = self.user_function
        return (meant.location if meant is not None else None) or self.location

    def places(self) -> Iterator[SourceLocation]:
        """Yield all places that it names but those of its callers."""
        meant = self.user_function
        yield from filter(None, (
            self.location, self.failure and self.failure.location, meant and meant.location,
            *(meant.wrappers if meant is not None else ()), *(place for each in self.breaks for place in each.stack),
            *(each.cause for each in self.guard_failures), *(each.location for each in self.symbols)))


@frozen
class SourceFile:
    """A user's file as it was when the run ended. ``path`` is what locations call it."""

    path: str
    text: str


# --- while the run continues ------------------------------------------------------------------------------
@frozen
class StageOfGraph:
    """A stage of the graph of that name, once it is complete."""

    graph: str
    stage: GraphStage


@frozen
class KernelOfGraph:
    """A generated module of the graph of that name."""

    graph: str
    kernel: Kernel


@frozen
class CodeObject:
    """A code object of the program's: bytecodes name it by its number."""

    number: int
    code: PackedCode


@frozen
class MeantFunction:
    """The function that the user means by a frame."""

    name: str  # in the user's words
    code: int  # number of its code object
    wrappers: tuple[tuple[str, int], ...] = ()  # names and code objects of those it is called through, outermost first


@frozen
class ResumeOfBytecode:
    """A resume function that transformed code calls."""

    name: str  # in the code
    shown: str  # the name in texts
    code: int  # number of its code object
    parameters: tuple[str, ...]
    meant: str  # the function that it continues, in the user's words


@frozen
class TracedCode:
    """A function as Dynamo traced it: with other instructions for some of its own."""

    code: PackedCode  # it, with the places of the original
    resumes: dict[str, str]  # names of its resume functions, with their names by the offsets in `code`


@frozen
class Bytecode:
    """Code that Dynamo made, as it made it: its text is written later."""

    compile_id: CompileId
    function_name: str  # as in :class:`TransformedCode`, like `file`
    text_name: str  # of the function in the text: `__transformed_code_0_for_toy_example`
    file: str
    original: int  # number of the code object that torch compiled
    meant: MeantFunction  # what the user means by that
    transformed: PackedCode  # what torch made of it
    shown: dict[str, str]  # global names that texts show differently
    graph_names: tuple[str, ...]  # as in :class:`CacheEntry`
    resumes: tuple[ResumeOfBytecode, ...] = ()  # the resume functions that it calls
    facts: str = ""  # what is known of the objects that it was compiled for (:mod:`depyf.capture.fact_snapshot`)
    traced: TracedCode | None = None  # what Dynamo traced, where a graph breaks in it


@frozen
class OrderOfEntries:
    """The order in which torch tried the versions of a code object when the run ended."""

    code: int  # its number
    tried: tuple[tuple[CompileId, int], ...] = ()  # the compilations, in that order
    asked: bool = False  # torch was asked to compile it
    without_tensors: bool = False  # torch left this resume function to plain Python: its frame had no tensor


@frozen
class EndOfRecording:
    """The run ended; what is made of its records is still to be made."""

    UNSIMPLIFIED: ClassVar[str] = "unsimplified"

    full_paths: dict[str, str]  # paths as torch shortened them -> paths
    options: tuple[str, ...] = ()  # how it is made: with each text `"unsimplified"`, too; others of `run_files`


@frozen
class GuardsOfEntry:
    """Torch's printed guard tree of a cache entry."""

    compile_id: CompileId
    text: str


@frozen
class Unwritten:
    """Records of which functions are made (:mod:`depyf.finishing`): those of a run whose texts are not written yet."""

    codes: tuple[CodeObject, ...] = ()
    bytecodes: tuple[Bytecode, ...] = ()  # in the order in which Dynamo made them
    guards: tuple[GuardsOfEntry, ...] = ()
    orders: tuple[OrderOfEntries, ...] = ()  # at the end of the run; none of one that was killed
    recorded: EndOfRecording | None = None  # the run came to its end


# --- the whole ------------------------------------------------------------------------------------------
@frozen
class AlikeRank:
    """Another rank, whose log says the same but for times and ids; it has no records of its own."""

    number: int
    seconds: float = 0.0


@frozen
class Capture:
    """All records of a run; the docstring of this module shows them as a tree."""

    functions: tuple[CompiledFunction, ...] = ()
    graphs: tuple[CompiledGraph, ...] = ()
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)  # versions, command and date (`run_directory`)
    compilations: tuple[Compilation, ...] = ()
    sources: tuple[SourceFile, ...] = ()
    unwritten: Unwritten | None = None
    events: tuple[UnreadEvent, ...] = ()
    alike_ranks: tuple[AlikeRank, ...] = ()

    @functools.cached_property
    def by_id(self) -> dict[tuple[int, int, int], Compilation]:
        """The compilations by the keys of their ids."""
        return {each.compile_id.key: each for each in self.compilations}

    @functools.cached_property
    def by_name(self) -> dict[str, CompiledGraph]:
        """The graphs by their names."""
        return {graph.name: graph for graph in self.graphs}

    @functools.cached_property
    def frames(self) -> tuple[Frame, ...]:
        """The functions with their resume functions, in order."""
        return tuple(frame for function in self.functions for frame in function.frames)

    @functools.cached_property
    def entries(self) -> tuple[CacheEntry, ...]:
        """All versions, in the order of their frames."""
        return tuple(entry for frame in self.frames for entry in frame.entries)

    @property
    def lost(self) -> frozenset[tuple[int, int, int]]:
        """The keys of compilations that gave no version, whatever torch had made when they ended."""
        return frozenset(each.compile_id.key for each in self.compilations if each.outcome != "compiled")
