"""What watching ``torch.compile`` yields: plain, immutable records.

No tensors, no modules, no code objects of torch's are held here: strings, numbers, tuples and other
records only, so that every view can be made again later, elsewhere and without torch.

A :class:`Capture` is the whole run.  Its tree::

    Capture
      functions: tuple[CompiledFunction]        one per user function that torch.compile was asked about
        frames: tuple[Frame]                    the function itself, then its resume functions
          entries: tuple[CacheEntry]            in the order in which their guards are tried
            guards: tuple[Guard]
            transformed: TransformedCode
            graph_names: ("__compiled_fn_1",)   names of the graphs it calls
      graphs: tuple[CompiledGraph]              by name: stages and kernels
      notes: tuple[str]                         what could not be captured, and why (one line each)
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class CompileId:
    """Torch's ``[frame/recompile]`` with the attempt (0 unless tracing was restarted)."""

    frame: int
    recompile: int
    attempt: int = 0

    def __str__(self) -> str:
        return f"[{self.frame}/{self.recompile}]"


@dataclass(frozen=True)
class SourceLocation:
    """A place in the user's files. ``text`` is the source line, where it is known."""

    filename: str
    line: int
    function: str = ""
    text: str = ""


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
        function_name: legal Python name of the frame's function (``toy_example``, ``__resume_at_102_2``).
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


@dataclass(frozen=True)
class CacheEntry:
    compile_id: CompileId
    guards: tuple[Guard, ...]
    transformed: TransformedCode
    graph_names: tuple[str, ...]


@dataclass(frozen=True)
class Frame:
    """A function whose frames Dynamo compiles: the user's, or a resume function.

    Attributes:
        name: name by which code calls it (``toy_example``, ``__resume_at_102_2``), legal Python.
        code_name: torch's ``co_name`` (``torch_dynamo_resume_in_toy_example_at_4``).
        location: where the user's text stands.
        original: its own source text where the user wrote it, decompiled otherwise.
        original_is_user_text: which of the two.
        arguments: parameter names (free variables not included).
        freevars: names of captured variables.
        entries: what was compiled; empty if it was only run or skipped.
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


@dataclass(frozen=True)
class CompiledFunction:
    name: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class GraphStage:
    """A graph at one stage.

    Attributes:
        stage: ``Captured_Graph``, ``Joint_graph``, ``Forward_graph``, ``Backward_graph``,
            ``AFTER_POST_GRAD``; or an internal stage's name.
        index: 0, 1, ... within the stage of one graph.
        text: the graph as Python source with shape, dtype, device and user line as comments.
        internal: written only on request.
    """

    stage: str
    index: int
    text: str
    internal: bool = False
    compile_id: CompileId | None = None


@dataclass(frozen=True)
class Kernel:
    """A module that Inductor generated. ``path`` is where torch keeps its own copy."""

    index: int
    text: str
    path: str = ""
    compile_id: CompileId | None = None


@dataclass(frozen=True)
class CompiledGraph:
    """A graph that transformed code calls.

    Attributes:
        name: as shown, unique suffix dropped where nothing clashes: ``__compiled_fn_1``.
        torch_name: as in torch, ``__compiled_fn_1_9148bb58_...``.
        backend: name of the backend.
    """

    name: str
    torch_name: str
    compile_id: CompileId
    backend: str
    stages: tuple[GraphStage, ...] = ()
    kernels: tuple[Kernel, ...] = ()


@dataclass(frozen=True)
class Capture:
    functions: tuple[CompiledFunction, ...] = ()
    graphs: tuple[CompiledGraph, ...] = ()
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
