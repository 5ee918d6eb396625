"""File names: legal on every system, distinct, and the same in every run; names of stages."""

from __future__ import annotations

import itertools
import keyword
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace

from .model import CacheEntry, Capture, CompileId, Frame, GraphStage

LONGEST = 120
_TRANSFORMED = re.compile(r"def (?P<name>__transformed_code_(?P<number>\d+)_\w+)\(")


def legal_identifier(name: str, longest: int = LONGEST) -> str:
    """Make a Python identifier of any name (``<lambda>`` becomes ``lambda_``) of at most ``longest`` bytes."""
    # Identifiers are compared in normal form NFKC, and so are names in bytecode.
    normal = unicodedata.normalize("NFKC", name)
    if normal.isidentifier() and not keyword.iskeyword(normal):
        return _shortened(normal, name, longest)
    cleaned = "".join(c if ("_" + c).isidentifier() else " " for c in normal)
    cleaned = "_".join(cleaned.split()).strip("_") or "anonymous"
    if keyword.iskeyword(cleaned):
        cleaned += "_"
    if not cleaned[0].isidentifier():
        cleaned = "_" + cleaned
    if name.startswith("__") and not cleaned.startswith("__"):
        cleaned = "__" + cleaned
    return _shortened(cleaned, name, longest)


def _shortened(cleaned: str, name: str, longest: int) -> str:
    if len(cleaned.encode()) <= longest:
        return cleaned
    import hashlib  # (most names are short)

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    head = cleaned.encode()[: longest - 9].decode("utf-8", "ignore")
    return f"{head}_{digest}"


def function_identifier(name: str) -> str:
    """Make a Python identifier of the name of a function: ``LlamaModel.forward`` -> ``LlamaModel_forward``."""
    return legal_identifier(name.replace(".", "_"))


def graph_identifier(name: str) -> str:
    """Return the name of a graph as files have it; that of a piece is ``__compiled_fn_1.submod_0``."""
    return ".".join(map(legal_identifier, name.split(".")))


class FunctionNames:
    """Numbered names of files and texts of functions, by the functions' own names (ignoring case).

    The first function of a name has it alone: ``__transformed_code_0_for_forward``, ``full_code_for_forward_0``. One of
    that name in another class (or inside another function) has the class too, such that patterns like
    ``__transformed_code_*for_forward.py`` and ``full_code_for_forward_*.py`` still match:
    ``__transformed_code_0_of_Norm_for_forward``, ``full_code_for_forward_of_Norm_0``.
    """

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def transformed(self, function: str) -> str:
        """Return the name of the next transformed code of a function (``Norm.forward``)."""
        name, owner = self._parts(function)
        stem = "_of_" + legal_identifier(f"{owner}_for_{name}") if owner else f"_for_{name}"
        return f"__transformed_code_{self._number(stem)}{stem}"

    def full_code(self, function: str) -> str:
        """Return the name of the next full code of a function."""
        name, owner = self._parts(function)
        stem = f"full_code_for_{legal_identifier(f'{name}_of_{owner}' if owner else name)}"
        return f"{stem}_{self._number(stem)}"

    def _parts(self, function: str) -> tuple[str, str]:
        """Return the function's own name, and its owner unless that is the owner of the first of that name."""
        owner, _, name = function.rpartition(".")
        name = legal_identifier(name)
        return name, "" if self._owners.setdefault(name.lower(), owner) == owner else owner.replace(".", "_")

    def _number(self, stem: str) -> int:
        number = self._counts.get(stem.lower(), 0)
        self._counts[stem.lower()] = number + 1
        return number


class FileNames:
    """Hands out file names, each once (ignoring case, as some file systems do)."""

    def __init__(self) -> None:
        self._names: dict[tuple[object, str], str] = {}  # by key and usual name
        self._taken: set[str] = set()
        self._stages: dict[tuple[str, str], str] = {}

    def give(self, key: object, usual: str, known: str = "") -> str:
        """Return the name for ``key``, with a number if another key has taken that.

        Args:
            key: identifies what is in the file.
            usual: the name, always the same for this key.
            known: the name that it has already, if it has one.
        """
        name = self._names.get((key, usual))
        if name is None:
            name = known or usual
            stem, dot, suffix = name.partition(".")
            number = 1
            while name.lower() in self._taken:
                number += 1
                name = f"{stem}_{number}{dot}{suffix}"
            self._taken.add(name.lower())
            self._names[key, usual] = name
        return name

    def stage_file(self, graph: str, stage: str, index: int, known: str = "", is_python: bool = True) -> str:
        """Return the file name of a text of a stage: ``__compiled_fn_1.Captured_Graph.0.py``, or ``known``."""
        # (A backend may have stages "before" and "BEFORE", or "a b" and "a_b".)
        plain = legal_identifier(stage)
        names = itertools.chain([plain], (f"{plain}_{number}" for number in itertools.count(2)))
        name = next(each for each in names if self._stages.setdefault((graph, each.lower()), stage) == stage)
        usual = f"{graph_identifier(graph)}.{name}.{index}.{'py' if is_python else 'txt'}"
        return self.give(("graph", graph, stage, index), usual, known)

    def kernel_file(self, graph: str, index: int, known: str = "") -> str:
        """Return the file name of a module that Inductor generated: ``__compiled_fn_1.kernel_0.py``, or ``known``."""
        return self.give(("kernel", graph, index), f"{graph_identifier(graph)}.kernel_{index}.py", known)

    def transformed_file(self, text_name: str, compile_id: CompileId, function_name: str, known: str = "") -> str:
        """Return the file name of transformed code, by the name in its text: ``__transformed_code_0_for_f.py``."""
        if not text_name.startswith("__transformed_code_"):
            text_name = f"__transformed_code_0_for_{legal_identifier(function_name)}"
        usual = f"{legal_identifier(text_name, LONGEST + 40)}.py"
        return self.give(("transformed", compile_id, function_name), usual, known)


def transformed_function(text: str) -> tuple[str, int]:
    """Return the name and number of the function in the text of transformed code; ``("", 0)`` where there is none."""
    match = _TRANSFORMED.search(text)
    return (match["name"], int(match["number"])) if match else ("", 0)


# --- names of files in records -----------------------------------------------------------------------
def with_entries(capture: Capture, of: Callable[[Frame, CacheEntry], CacheEntry]) -> Capture:
    """Return the capture with other cache entries."""
    return replace(capture, functions=tuple(
        replace(function, frames=tuple(
            replace(frame, entries=tuple(of(frame, entry) for entry in frame.entries)) for frame in function.frames))
        for function in capture.functions))


def only_written(capture: Capture, is_written: Callable[[str], bool]) -> Capture:
    """Return the capture without the names of files that are not written."""

    def name(file: str) -> str:
        return file if file and is_written(file) else ""

    graphs = tuple(
        replace(graph, stages=tuple(replace(stage, file=name(stage.file)) for stage in graph.stages),
                kernels=tuple(replace(kernel, file=name(kernel.file)) for kernel in graph.kernels))
        for graph in capture.graphs)
    return with_entries(replace(capture, graphs=graphs), lambda frame, entry: replace(
        entry, transformed=replace(entry.transformed, file=name(entry.transformed.file))))


# --- stages of graphs --------------------------------------------------------------------------------
#: Events of the structured trace, and artifacts, with a graph that everybody wants, and its stage.
GRAPHS = {
    "dynamo_output_graph": "Captured_Graph",
    "aot_joint_graph": "Joint_graph",
    "aot_forward_graph": "Forward_graph",
    "aot_inference_graph": "Forward_graph",
    "aot_backward_graph": "Backward_graph",
    "inductor_post_grad_graph": "AFTER_POST_GRAD",
    "after_post_grad_graph": "AFTER_POST_GRAD",
}
#: Texts of AOTAutograd and Inductor around the graphs: what is done to inputs and outputs, which are changed or share
#: memory, the graph as a script, keys of caches, settings, what a package of versions has.
AROUND = frozenset({
    "runtime_wrapper_orchestration", "compiled_function_forward", "compiled_function_backward", "compiled_fn_wrapper",
    "backward_prologue", "backward_epilogue", "output_alias_wrapper", "subclass_wrapper", "backward_subclass_unwrap",
    "backward_subclass_wrapper", "mutation_epilogue", "dedup_wrapper", "synthetic_base_wrapper",
    "functionalized_rng_wrapper", "effect_tokens_wrapper", "debug_assert_wrapper",
    "aot_autograd_runtime_wrappers",  # (the last has all of them since 2.15)
    "aot_forward_graph_fw_metadata", "aot_forward_graph_fw_subclass_metadata", "fx_graph_runnable",
    "fx_graph_cache_hash", "aotautograd_cache_hash",
    "_functorch.config", "dynamo_error", "dynamo_cache_entries", "inductor_post_to_pre_grad_nodes",
    "inductor_triton_kernel_to_post_grad_nodes", "inductor_provenance_tracking_node_mappings",
    "inductor_provenance_tracking_kernel_stack_traces", "inductor_autotune_at_compile_time_code"})
BEFORE_PRE_GRAD = "BEFORE PRE GRAD"  #: What Inductor is given: mostly the captured graph once more.
POST_SPLIT = "post split_module"  #: A graph of calls of the pieces that a graph was split into.
EXPORTED = "exported_program"  #: What ``torch.export`` returns, and its kind of event.
#: Kinds of events with a text of an export, and what that is called.
OF_EXPORTS = {EXPORTED: "exported program", "make_fx_fail_partial": "graph up to the failure"}
AOT_CODE = "inductor_aot_wrapper_code"  #: What AOTInductor shows: the code that calls its kernels.
#: Names of stages of torch's own that it shows by ``lazy_format_graph_code`` and that everybody wants: what Inductor is
#: given, and what a graph is split into. The others are in the trace, or internal.
SHOWN_BY_TORCH = frozenset({BEFORE_PRE_GRAD, "pre split_module", POST_SPLIT})
#: How names of stages begin that the trace has, too.
_TRACED = ("AFTER POST GRAD", "Joint graph", "Forward graph", "Backward graph", "__compiled_fn")
_LONGEST = 160  #: Characters of a name that a backend gives a stage.
#: Adjectives for the graphs of a compilation, in the order in which they are made.
ADJECTIVES = {"Captured_Graph": "captured", "Joint_graph": "joint", "Forward_graph": "forward",
              "Backward_graph": "backward", "AFTER_POST_GRAD": "post-grad"}


def title(stage: GraphStage) -> str:
    """Return the name of a stage, in words: ``"captured graph"``, ``"after Inductor's passes, backward"``."""
    if stage.shown_as:
        return shown_name(stage.shown_as)  # (records may come from anywhere)
    if stage.stage == "AFTER_POST_GRAD":
        return ", ".join(filter(None, ("after Inductor's passes", direction(stage))))
    return graph_name(stage.stage) or stage.stage.replace("_", " ")


def graph_name(stage: str) -> str:
    """Return ``"captured graph"`` for ``"Captured_Graph"``; ``""`` for a stage that :data:`ADJECTIVES` lacks."""
    return f"{ADJECTIVES[stage]} graph" if stage in ADJECTIVES else ""


def direction(stage: GraphStage) -> str:
    """Return the direction of a graph after Inductor's passes, ``"forward"`` or ``"backward"``.

    ``""`` for a graph of any other stage, and where there is no backward graph. A graph that takes gradients is the
    backward one; for one that takes ``primals_1`` there is a backward one.
    """
    if stage.stage != "AFTER_POST_GRAD":
        return ""
    signature = stage.text[: stage.text.find("):\n", stage.text.find("def "))]
    return "backward" if "tangents_" in signature else "forward" if "primals_" in signature else ""


def is_traced(name: str) -> bool:
    """Return whether a graph that torch shows by a name is among those in its trace."""
    return name.startswith(_TRACED) and "before" not in name


def shown_name(name: str) -> str:
    """Return the name that a backend gives a stage as one line of bounded length."""
    line = " ".join("".join(each if each.isprintable() else " " for each in name).split()) or "unnamed"
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 4]} ..."


def shown_stage(name: str) -> str:
    """Return the stage, an identifier, for a name that a backend gives: ``before_split`` for ``before split``."""
    stage = legal_identifier(name)
    return f"backend_{stage}" if stage in ADJECTIVES or stage in AROUND else stage
