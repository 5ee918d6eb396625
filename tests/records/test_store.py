"""records.jsonl: what is written comes back; what is damaged is refused by name, what is cut off is used."""

import dataclasses
import json

import pytest

from depyf.records import plain_lines, store
from depyf.records.model import (
    Branch,
    CacheEntry,
    CacheLookup,
    Caller,
    Capture,
    CodeText,
    Compilation,
    CompiledCode,
    CompiledFunction,
    CompiledGraph,
    CompileId,
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
    Phase,
    SourceFile,
    SourceLocation,
    Span,
    SymbolDecision,
    TracedLines,
    TransformedCode,
    UserFunction,
)
from depyf.torch_text.recorded import read_records

PLACE = SourceLocation("/a/b.py", 3, "f", 'x = "é\udc80\u2028"')
IDS = CompileId(0, 1, 2, 3)
CODE = TransformedCode(IDS, "f", CodeText("def f(x):\n    return x\n", "equivalent", "a note"),
                       CodeText("def f(x): return x", "exact"), ("x",), "f.py", "old")
GUARD = Guard("L['x'] == 1", "L['x']", "EQUALS_MATCH", "L['x'] == 1", PLACE)
FRAME = Frame("f", "f", PLACE, CodeText("def f(x): ...", "exact"), True, ("x",), ("y",),
              (CacheEntry(IDS, (GUARD,), CODE, ("__compiled_fn_1",), ("__resume_at_2_3",), "guards.py", 1),), "x",
              "C.f",
              ("self.log",), (PLACE,), Branch("x > 0", True), True)
GRAPH = CompiledGraph(
    "__compiled_fn_1", "__compiled_fn_1_abc", IDS, "eager",
    (GraphStage("Captured_Graph", 0, "class G: pass\n", False, IDS, "g.py", (ModuleCall("a", "A", 0, ("add",)),),
                "g.outline.txt", (GraphInput("L_a_", "L['a']"),), (Caller(PLACE, ("add",)),)),),
    (Kernel(0, "# kernel", "/tmp/k.py", IDS, "k.py", "AFTER_POST_GRAD.0",
            (KernelCall("triton_poi_fused_add_0", "Triton", 1, 3, ("mm",), False, ("linear",)),), "k.outline.txt"),))
COMPILATION = Compilation(
    IDS, "f", PLACE, (PLACE, PLACE), "failed", Failure("Unsupported", "no", None), ("again",),
    (GraphBreak(IDS, "why", "because", ("do", "don't"), "c", "GB0001", "https://x", (PLACE,), True, "raw", 1,
                "graph break in loop"),),
    (GuardFailure(CompileId(0, 0), "x == 1", "x", "1", "2", PLACE, "len(x)", "make it longer"),),
    (SymbolDecision("created", "s0", "L['x'].size()[0]", "4", "[2, int_oo]", "", PLACE),),
    (CacheLookup("fx_graph", "bypass", "cannot be pickled"),), (Phase("dynamo", 0.5),), 12.25, 3.0, {"guards": 4},
    (Span("dynamo", 12.25, 0.5, 1),), Failure("TypeError", "no", PLACE), ("mine::op",),
    (TracedLines("/a/b.py", (3, 4)),), UserFunction("C.f", PLACE, (PLACE,)))
WHOLE = Capture((CompiledFunction("f", (FRAME,), "full.py", "old.py"),), (GRAPH,), ("a note", "another"), {"torch": "2.13"},
                (COMPILATION,), (SourceFile("/a/b.py", "x = \"\udc80\"\n"),))


def write(tmp_path, text):
    path = tmp_path / store.FILE
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_comes_back(tmp_path):
    write(tmp_path, "".join(store.lines(WHOLE)))
    assert store.read(str(tmp_path)) == WHOLE
    assert store.read(str(tmp_path / store.FILE)) == WHOLE


def test_every_field_of_every_record_is_in_the_sample():
    """Otherwise the test above proves less than it says."""
    def has_default(record):
        if dataclasses.is_dataclass(record):
            for field in dataclasses.fields(record):
                value = getattr(record, field.name)
                if field.default is not dataclasses.MISSING and value == field.default:
                    yield f"{type(record).__name__}.{field.name}"
                yield from has_default(value)
        elif isinstance(record, tuple):
            for item in record:
                yield from has_default(item)
    assert set(has_default(WHOLE)) <= {
        "CompileId.attempt", "CompileId.resets", "Guard.cause", "Frame.signature", "GraphStage.internal", "Failure.location",
        "SymbolDecision.reason", "CodeText.note", "GraphStage.modules", "ModuleCall.outer", "TransformedCode.file",
        "Capture.codes"}


def killed(*records):
    return plain_lines.first_line({"torch": "2.13"}) + "".join(map(store.line, records))


def test_a_run_that_was_killed_has_what_was_complete(tmp_path):
    resume = dataclasses.replace(CODE, compile_id=CompileId(1, 0), function_name="__resume_at_2_3")
    text = killed(
        COMPILATION, dataclasses.replace(GRAPH, kernels=()), GRAPH,
        CompiledCode("f", "f", PLACE, CODE, ("__compiled_fn_1",), ("__resume_at_2_3",)),
        CompiledCode("__resume_at_2_3", "torch_dynamo_resume_in_f_at_3", PLACE, resume, (), ()))
    write(tmp_path, text + '{"record":"graph","na')
    capture = read_records(str(tmp_path))
    assert capture.compilations == (COMPILATION,)
    assert capture.graphs == (GRAPH,), "the last line of a graph counts"
    assert [[frame.name for frame in function.frames] for function in capture.functions] == [["f", "__resume_at_2_3"]]
    assert capture.functions[0].frames[0].entries[0].transformed == CODE
    assert "killed" in capture.notes[-1]


@pytest.mark.parametrize("text, named", [
    ("", "empty"),
    ("not json\n", ":1 "),
    ('{"record":"schema","version":99}\n', "schema 99"),
    ('{"record":"schema","version":1}\nbroken\n{"record":"end"}\n', ":2 "),
    ('{"record":"schema","version":1}\n[]\n{"record":"end"}\n', ":2 "),
    ('{"record":"schema","version":1}\n{"record":"graph","name":3}\n', ":2"),
    ('{"record":"schema","version":1}\n{"record":"compilation"}\n', ":2"),
])
def test_damage_is_named(tmp_path, text, named):
    path = write(tmp_path, text)
    with pytest.raises(store.RecordsError) as caught:
        store.read(str(path))
    assert named in str(caught.value) and str(path) in str(caught.value)


def test_no_file(tmp_path):
    with pytest.raises(store.RecordsError, match="prepare_debug"):
        store.read(str(tmp_path / "nothing"))


def test_a_later_version_may_add_fields_and_kinds(tmp_path):
    lines = list(store.lines(WHOLE))
    value = json.loads(lines[1])
    value["colour"] = "red"
    lines[1] = json.dumps(value) + "\n"
    lines.insert(2, '{"record":"weather","sun":true}\n')
    write(tmp_path, "".join(lines))
    assert store.read(str(tmp_path)) == WHOLE
