"""Runs as records, for the tests of commands: breaks, recompiles, what was skipped, several ranks. (Without torch.)"""

from depyf.records import store
from depyf.records.model import (
    CacheEntry,
    Capture,
    CodeText,
    Compilation,
    CompiledFunction,
    CompiledGraph,
    CompileId,
    Failure,
    Frame,
    GraphBreak,
    Guard,
    GuardFailure,
    Kernel,
    KernelCall,
    Phase,
    SourceFile,
    SourceLocation,
    TransformedCode,
    UserFunction,
)

FILE = "/home/me/model.py"
SOURCE = """\
import torch

class Net:
    def forward(self, x):
        if x.sum() > 0:
            x = x + 1
        print('side')
        return x * 2

def scale(x, n):
    for _ in range(n):
        if x.max() > 3.0:
            x = x / 2
    return x
"""
FORWARD = UserFunction("Net.forward", SourceLocation(FILE, 4, "forward"))
SCALE = UserFunction("scale", SourceLocation(FILE, 10, "scale"))


def broken(ids, line, reason="Data-dependent branching", **more):
    text = SOURCE.splitlines()[line - 1].strip()
    function = "scale" if line > 9 else "forward"
    return GraphBreak(ids, reason, "Detected branching on the value of a tensor.", ("Use `torch.cond` instead.",), "",
                      "GB0170", "https://example.org/GB0170", (SourceLocation(FILE, line, function, text),), **more)


def compiled(frame, recompile=0, meant=FORWARD, outcome="compiled", seconds=0.5, function="", **more):
    return Compilation(CompileId(frame, recompile), function or meant.location.function, meant.location, (), outcome,
                       seconds=seconds, phases=(Phase("dynamo", seconds),), user_function=meant, **more)


def size_failure(entry, was, now):
    return GuardFailure(entry, f"tensor 'x' size mismatch at index 0. expected {was}, actual {now}", "L['x']", str(was),
                        str(now), subject="x.size()[0]")


def entry_of(ids, graph, name):
    return CacheEntry(ids, (Guard("len(L['x']) == 2", "L['x']", "EQUALS_MATCH", ""),) * 3,
                      TransformedCode(ids, name, CodeText("def f(): ...", "exact"), None, ()), (graph,))


def graph_of(ids, name):
    return CompiledGraph(name, f"{name}_01", ids, "inductor", kernels=(
        Kernel(0, "", calls=(KernelCall("cpp_fused_add_0", "C++"), KernelCall("extern_kernels.mm", "extern"))),))


def run(breaks=2, sizes=3, skipped=True, notes=(), **environment):
    """``Net.forward`` with graph breaks and compiled for several sizes, and ``scale``, which a loop keeps out."""
    first, behind = CompileId(0, 0), CompileId(1, 0)
    compilations = [compiled(0, breaks=tuple(broken(first, 5) for _ in range(breaks)), seconds=1.25,
                             counts={"operations": 4}),
                    compiled(1, function="torch_dynamo_resume_in_forward_at_5")]
    compilations += [compiled(0, number, guard_failures=(size_failure(CompileId(0, number - 1), number + 3, number + 4),))
                     for number in range(1, sizes)]
    # (behind the last graph break nothing is left to compile: nothing is lost)
    compilations.append(compiled(2, outcome="skipped", function="torch_dynamo_resume_in_forward_at_7", seconds=0.0))
    if skipped:
        ids = CompileId(3, 0)
        compilations.append(compiled(
            3, meant=SCALE, outcome="skipped", failure=Failure("Unsupported", "Data-dependent branching"),
            breaks=(broken(ids, 12, skips_function=True, depth=1, gave_up="graph break in loop"),)))
    versions = [CompileId(0, number) for number in range(max(sizes, 1))]
    frame = Frame("forward", "forward", FORWARD.location, CodeText("", "exact"), True, (), (), tuple(
        entry_of(ids, f"__compiled_fn_{ids.recompile}", "forward") for ids in versions), title="Net.forward")
    resumed = Frame("__resume_at_10_1", "torch_dynamo_resume_in_forward_at_5", FORWARD.location, CodeText("", "exact"),
                    False, (), (), (entry_of(behind, "__compiled_fn_9", "__resume_at_10_1"),), title="Net.forward")
    last = Frame("__resume_at_20_2", "torch_dynamo_resume_in_forward_at_7", FORWARD.location, CodeText("", "exact"), False,
                 (), (), (), title="Net.forward", asked=True)
    graphs = tuple(graph_of(ids, f"__compiled_fn_{ids.recompile}") for ids in versions)
    return Capture((CompiledFunction("forward", (frame, resumed, last), "full_code_for_forward_0.py"),),
                   (*graphs, graph_of(behind, "__compiled_fn_9")), tuple(notes),
                   {"torch": "2.13.0", "python": "3.11.7", **environment}, tuple(compilations),
                   (SourceFile(FILE, SOURCE),))


def dump(folder, capture):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / store.FILE).write_text("".join(store.lines(capture)))
    return str(folder)


def ranks(folder, *captures):
    for number, capture in enumerate(captures):
        dump(folder / f"rank_{number}", capture)
    return str(folder)
