"""One run in which every field of every record is filled."""

from depyf.records.model import (
    AlikeRank,
    Branch,
    CacheEntry,
    CacheKeyPart,
    CacheLookup,
    Caller,
    Capture,
    CodeText,
    Compilation,
    CompiledFunction,
    CompiledGraph,
    CompileId,
    ExportIssue,
    ExpressionStep,
    Failure,
    Frame,
    GraphBreak,
    GraphInput,
    GraphStage,
    Guard,
    GuardFailure,
    Kernel,
    KernelCall,
    ModuleCall,
    NamedValue,
    Phase,
    ScheduledOperation,
    SourceFile,
    SourceLocation,
    Span,
    SymbolDecision,
    TracedLines,
    TransformedCode,
    TritonKernel,
    UnreadEvent,
    UserFunction,
)

PLACE = SourceLocation("/a/b.py", 3, "f", 'x = "é\udc80\u2028"')
IDS = CompileId(0, 1, 2, 3)
CODE = TransformedCode(IDS, "f", CodeText("def f(x):\n    return x\n", "equivalent", "a note"),
                       CodeText("def f(x): return x", "exact"), ("x",), "f.py")
GUARD = Guard("L['x'] == 1", "L['x']", "EQUALS_MATCH", "L['x'] == 1", PLACE)
FRAME = Frame("f", "f", PLACE, CodeText("def f(x): ...", "exact"), True, ("x",), ("y",),
              (CacheEntry(IDS, (GUARD,), CODE, ("__compiled_fn_1",), ("__resume_at_2_3",), "guards.py", 1),), "x",
              "C.f",
              ("self.log",), (PLACE,), Branch("x > 0", True), True, True)
GRAPH = CompiledGraph(
    "__compiled_fn_1", "__compiled_fn_1_abc", IDS, "eager",
    (GraphStage("Captured_Graph", 0, "class G: pass\n", False, IDS, "g.py", (ModuleCall("a", "A", 0, ("add",)),),
                "g.outline.txt", (GraphInput("L_a_", "L['a']"),), (Caller(PLACE, ("add",)),), "before split"),),
    (Kernel(0, "# kernel", "/tmp/k.py", IDS, "k.py", "AFTER_POST_GRAD.0",
            (KernelCall("triton_poi_fused_add_0", "Triton", 1, 3, ("mm",), False, ("linear",)),), "k.outline.txt"),), PLACE, False,
    "__compiled_fn_0", ("all_reduce_",), (ScheduledOperation("op1", True, 1e-6, ("float16[4]",)),),
    (TritonKernel("triton_poi_0", "miss", 2, ("XBLOCK 1",), 0.5),),
    (ExportIssue("data", "u0 > 3", "False", PLACE, (("u0", "x.item()"),),
                 (ExpressionStep("-u0", PLACE),)),), (Phase("inductor", 0.5),))
COMPILATION = Compilation(
    IDS, "f", PLACE, (PLACE, PLACE), "failed", Failure("Unsupported", "no", None), ("again",),
    (GraphBreak(IDS, "why", "because", ("do", "don't"), "c", "GB0001", "https://x", (PLACE,), True, "raw", 1,
                "graph break in loop",
                (NamedValue("x", "Tensor", ("4", "s27"), "float32", "cpu", True, "L['x']", "y", True),)),),
    (GuardFailure(CompileId(0, 0), "x == 1", "x", "1", "2", PLACE, "len(x)", "make it longer", "parameter"),),
    (SymbolDecision("created", "s0", "L['x'].size()[0]", "4", "[2, int_oo]", "", PLACE, (PLACE,)),),
    (CacheLookup("fx_graph", "bypass", "cannot be pickled", (CacheKeyPart("gm", "1a2b"),), ("max_autotune = True",)),),
    (Phase("dynamo", 0.5),), 12.25, 3.0, {"guards": 4},
    (Span("dynamo", 12.25, 0.5, 1),), Failure("TypeError", "no", PLACE),
    (TracedLines("/a/b.py", (3, 4)),), UserFunction("C.f", PLACE, (PLACE,)),
    {"dynamic": "True"})
WHOLE = Capture((CompiledFunction("f", (FRAME,), "full.py"),), (GRAPH,), ("a note", "another"), {"torch": "2.13"},
                (COMPILATION,), (SourceFile("/a/b.py", "x = \"\udc80\"\n"),), None,
                (UnreadEvent("compiler_collective", "[1]", IDS, "__compiled_fn_1", 1),), (AlikeRank(3, 0.5),))
