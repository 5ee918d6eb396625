"""index.md: what it tells, that it stays short, and that hostile names do no harm. (From records, without torch.)"""

import dataclasses
import re
import urllib.parse

import pytest

from depyf.fixing.outcome import Outcome
from depyf.program.summary import summary
from depyf.records.model import (
    CacheEntry,
    CacheKeyPart,
    CacheLookup,
    Capture,
    CodeText,
    Compilation,
    CompiledFunction,
    CompiledGraph,
    CompileId,
    Failure,
    Frame,
    GraphBreak,
    GraphInput,
    GraphStage,
    GuardFailure,
    Phase,
    SourceLocation,
    SymbolDecision,
    TransformedCode,
    UserFunction,
)
from depyf.torch_text.guard_failures import guard_failures
from depyf.views.causes import call_of, in_plain_python
from depyf.views.changes import changes, value
from depyf.views.diff.difference import difference
from depyf.views.formatting import short_names
from depyf.views.index.index import index
from depyf.views.markdown import code, prose
from depyf.views.run_index import RunIndex
from depyf.views.verdict import findings

FILE = "/home/me/project/model.py"


def links(text):
    """Targets of all links, code spans left alone."""
    outside = re.sub(r"(?<!`)(`+)(?!`)(?:(?!\1(?!`)).)*?\1(?!`)", "code", text)
    return [urllib.parse.unquote(target) for target in re.findall(r"(?<!\\)\]\(([^)]*)\)", outside)]


def anchors(text):
    return {re.sub(r"[^\w -]", "", line.lstrip("# ")).lower().replace(" ", "-")
            for line in text.splitlines() if line.startswith("#")}


def check(text, files=frozenset()):
    """Every link leads somewhere, every table has equal rows."""
    for target in links(text):
        if target.startswith("#"):
            assert target[1:] in anchors(text)
        elif not target.startswith("https://"):
            assert target in files, target
    columns = 0
    for line in text.splitlines():
        count = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not (count and columns) or count == columns, line
        columns = count
    assert text.endswith("\n") and "\n\n\n" not in text


def frame_of(ids, function="f", file="", name="", resumes=(), graph=""):
    """A cache entry in its frame."""
    location = SourceLocation(FILE, 3, function)
    transformed = TransformedCode(ids, name or function, CodeText("def f(): ...", "exact"), None, (), file)
    entry = CacheEntry(ids, (), transformed, (graph,) if graph else (), resumes)
    return Frame(name or function, function, location, CodeText("", "exact"), True, (), (), (entry,))


def compilation(frame=0, recompile=0, function="f", line=3, outcome="compiled", seconds=0.5, **more):
    return Compilation(CompileId(frame, recompile), function, SourceLocation(FILE, line, function), (), outcome,
                       seconds=seconds, phases=(Phase("dynamo", seconds),), **more)


def capture_of(*compilations, notes=(), functions=(), graphs=()):
    return Capture(functions, graphs, notes, {"torch": "2.13", "python": "3.11"}, compilations)


def simple():
    graph = CompiledGraph("__compiled_fn_1", "__compiled_fn_1", CompileId(0, 0), "eager", (
        GraphStage("Captured_Graph", 0, "x", False, CompileId(0, 0), "__compiled_fn_1.Captured_Graph.0.py"),))
    function = CompiledFunction("f", (frame_of(CompileId(0, 0), file="t.py", graph="__compiled_fn_1"),), "full.py")
    return capture_of(compilation(), functions=(function,), graphs=(graph,), notes=("a note",))


def test_short_when_all_went_well():
    text = index(simple())
    check(text, {"full.py", "t.py", "__compiled_fn_1.Captured_Graph.0.py"})
    assert "No graph breaks, no recompiles" in text and len(text.partition("## Words")[0].splitlines()) <= 22
    assert links(text) == ["full.py", "__compiled_fn_1.Captured_Graph.0.py", "t.py"]


@pytest.mark.parametrize("given, words", [
    ({"page": "index.html"}, "To read it in a browser, open [`index.html`](index.html)."),
    ({"later": True}, "To read it in a browser, run `depyf open` with this directory, which makes the page"), ({}, "")])
def test_how_to_come_to_the_page(given, words):
    text = index(capture_of(compilation()), **given)
    assert words in text and ("browser" in text) == bool(words)


def test_no_link_to_a_file_that_is_not_there():
    whole = simple()
    function = dataclasses.replace(whole.functions[0], file="", frames=(
        frame_of(CompileId(0, 0), graph="__compiled_fn_1"),))
    graph = dataclasses.replace(whole.graphs[0], stages=(
        dataclasses.replace(whole.graphs[0].stages[0], file=""),))
    assert links(index(dataclasses.replace(whole, functions=(function,), graphs=(graph,)))) == []


def test_a_function_of_which_only_compilations_are_recorded_counts():
    assert "1 function compiled, 1 version in all, 0 graphs" in index(capture_of(compilation()))


def test_nothing_was_compiled():
    text = index(Capture())
    check(text)
    assert "Nothing was compiled" in text


def stack(*places):
    return tuple(SourceLocation(FILE, line, function, f"line {line}") for function, line in places)


def test_a_graph_break_says_where_why_and_how_it_goes_on():
    ids = CompileId(0, 0)
    broken = GraphBreak(ids, "Data-dependent branching", "Detected `if`.\nDetails.", ("Use `torch.cond`.",), "", "GB0170",
                        "https://example.org/gb0170", stack(("<module>", 20), ("f", 9)))
    function = CompiledFunction("f", (
        frame_of(ids, file="t.py", resumes=("__resume_at_1_2", "__resume_at_1_3")),
        frame_of(CompileId(1, 0), "torch_dynamo_resume_in_f_at_9", "r.py", "__resume_at_1_2")), "full.py")
    text = index(capture_of(compilation(breaks=(broken,)), compilation(1, 0, "torch_dynamo_resume_in_f_at_9", 9),
                            functions=(function,)))
    check(text, {"t.py", "r.py", "full.py"})
    assert "[1 graph break](#graph-breaks) at 1 line" in text
    assert "### Data-dependent branching ([GB0170](https://example.org/gb0170))" in text
    for part in ("Detected `if`.", "* `model.py:9` in `f`: `line 9`", "Use `torch.cond`.", f"`model.py` is `{FILE}`",
                 "continues in [`__resume_at_1_2`](r.py), `__resume_at_1_3` (not compiled)",
                 "| `[1/0]` | `__resume_at_1_2` (`f` from line 9 on) |"):
        assert part in text, part


def test_a_break_in_a_function_that_was_inlined():
    broken = GraphBreak(CompileId(0, 0), "print", stack=stack(("<module>", 20), ("f", 9), ("g", 2)))
    text = index(capture_of(compilation(breaks=(broken,)), functions=(
        CompiledFunction("f", (frame_of(CompileId(0, 0)),)),)))
    check(text)
    assert "called from `model.py:9` `f`" in text
    assert "in plain Python: the call in `model.py:9`\n" in text  # (nothing tells what became of g)


@pytest.mark.parametrize(("line", "function", "call"), [
    ("return self.b(torch.relu(self.a(x)))", "_wrapped_call_impl", ""),  # (pytorch #133303: a hook on self.a)
    ("h = cast_overflow_tensors(h)", "cast_overflow_tensors", "cast_overflow_tensors(h)"),
    ("x = norm(maybe_align(x, 16))", "maybe_align", "maybe_align(x, 16)"),
    ("x = self.inner(x) + 1", "_wrapped_call_impl", "self.inner(x)")])
def test_the_call_by_which_a_line_comes_to_a_break(line, function, call):
    assert call_of(line, function) == call


def test_the_same_break_again_is_counted():
    breaks = [GraphBreak(CompileId(0, n), "print", stack=stack(("f", 9))) for n in range(100)]
    text = index(capture_of(*(compilation(0, n, breaks=(broken,)) for n, broken in enumerate(breaks))))
    check(text)
    breaks_told = text.partition("## Graph breaks")[2]
    assert "### print, 100 times" in breaks_told and breaks_told.count("`model.py:9`") == 1


def failure(n, name="x"):
    return GuardFailure(CompileId(0, n), f"tensor '{name}' size mismatch at index 0. expected {n}, actual {n + 1}", name,
                        str(n), str(n + 1), SourceLocation(FILE, 7, "f", "return x"), f"{name}.size()[0]")


def test_one_recompile():
    text = index(capture_of(compilation(), compilation(0, 1, guard_failures=(failure(10),))))
    check(text)
    assert "* `[0/1]` `x.shape[0]`: 10 → 11\n  * torch guards it because of `model.py:7`: `return x`" in text
    assert "torch says: `tensor 'x' size mismatch at index 0. expected 10, actual 11` (of `[0/10]`)" in text


def test_versions_that_expected_other_values_are_told_apart():
    other = GuardFailure(CompileId(0, 7), "self.seen == 0", "self.seen", "0", "112", subject="self.seen")
    again = compilation(0, 12, guard_failures=(
        failure(10), dataclasses.replace(failure(8), seen="11"), dataclasses.replace(failure(10), entry=CompileId(0, 9)),
        other))
    text = index(capture_of(compilation(), again))
    assert "* `[0/12]` `x.shape[0]`: 10 → 11 (of `[0/10]`, `[0/9]`; 8 in `[0/8]`); `self.seen`: 0 → 112 (of `[0/7]`)" in text


def test_two_hundred_recompiles_are_told_by_the_first_and_the_last():
    again = [compilation(0, n, guard_failures=tuple(failure(each, "xy"[n % 2]) for each in reversed(range(n))))
             for n in range(1, 201)]
    function = CompiledFunction("f", tuple(frame_of(CompileId(0, n)) for n in range(201)), "full.py")
    text = index(capture_of(compilation(), *again, functions=(function,)))
    check(text, {"full.py"})
    assert "* `[0/11]` `y.shape[0]`: 10 → 11" in text and "* `[0/200]` `x.shape[0]`: 199 → 200" in text
    assert "* ... 188 more" in text and len(text.partition("## Words")[0].splitlines()) < 110
    assert "expected 199, actual 200` (of `[0/199]`, with another value of `[0/198]`, `[0/197]`, " in text


def test_fifty_frames():
    names = [f"f{n}" for n in range(50)]
    text = index(capture_of(*(
        compilation(n, 0, name, breaks=(GraphBreak(CompileId(n, 0), "print", stack=stack((name, n))),))
        for n, name in enumerate(names)), functions=tuple(
            CompiledFunction(name, (frame_of(CompileId(n, 0), name),), f"{name}.py") for n, name in enumerate(names))))
    check(text, {f"{name}.py" for name in names})
    assert len(text.splitlines()) < 200 and "and 38 more places" in text and "... and 10 compilations more" in text


@pytest.mark.parametrize("outcome, more, part", [
    ("limit", {"failure": Failure("Unsupported", "Dynamo recompile limit exceeded\n  Explanation: Too many.")},
     "**`f` reached the recompile limit. Calls run in plain Python.**"),
    ("limit", {"failure": Failure("FailOnRecompileLimitHit", "Hard failure due to fullgraph=True")},
     "**`f` reached the recompile limit. Calls raise `FailOnRecompileLimitHit`, as `fullgraph=True` is set.**"),
    ("skipped", {}, "**`f` runs in plain Python: torch found no tensor operation on the path of its first call.**"),
    ("skipped", {"breaks": (GraphBreak(CompileId(0, 0), "print", stack=stack(("f", 4)), skips_function=True),)},
     "**`f` runs in plain Python: line 4 (`line 4`) breaks the graph where torch cannot continue after it: print.**"),
    ("failed", {"failure": Failure("TorchRuntimeError", "shapes differ", SourceLocation(FILE, 8))},
     "**`f` was not compiled: `TorchRuntimeError` at line 8: shapes differ.**"),
    ("unknown", {}, "the end of the compilation of `f` was not seen"),
])
def test_what_was_not_compiled(outcome, more, part):
    text = index(capture_of(compilation(outcome=outcome, **more)))
    check(text)
    assert part in text and "](#not-compiled)" in text


def test_a_function_at_the_limit_begins_with_what_most_of_its_versions_are_for():
    """Not with a change that one of them is for, or that the call at the limit has."""
    def again(frame, number, subject, **more):
        return compilation(frame, number, f"f{frame}", guard_failures=(
            GuardFailure(CompileId(frame, 0), "", subject, "'a'", f"'{number}'", subject=subject),), **more)

    names = ["mode", "mode", "len(log)"]
    text = index(capture_of(*(compilation(frame, 0, f"f{frame}") for frame in range(4)),
                            *(again(0, number, name) for number, name in enumerate(names, 1)),
                            again(0, 4, "len(log)", outcome="limit"), *(again(frame, 1, f"n{frame}") for frame in (1, 2, 3))))
    (first, *_) = [line for line in text.partition("## Where to begin")[2].splitlines() if line.startswith("* ")]
    assert first.startswith("* `mode`: each version ") and "(`f0` reached the recompile limit; 2 recompiles of f0, " in first
    assert text.count("`f0` reached the recompile limit; ") == 1


def test_two_errors_of_one_heading_are_two_reasons():
    def failed(number, explanation, line):
        reason = f"Attempted to call function marked as skipped\n  Explanation: {explanation}"
        return compilation(0, number, outcome="failed",
                           failure=Failure("Unsupported", reason, SourceLocation(FILE, line)))

    text = index(capture_of(failed(0, "Called `time.sleep` 3 times.", 4), failed(1, "Called `getpid`.", 4),
                            failed(2, "Called `time.sleep` 5 times.", 4), failed(3, "Called `getpid`.", 9)))
    for part in ("`[0/0]`, 2 times: **", "torch explains: Called `time.sleep` 3 times.", "`[0/1]`: **", "`[0/3]`: **"):
        assert part in text, part


def test_failures_of_one_function_for_several_reasons():
    failed = [compilation(0, n, outcome="failed", failure=Failure("BackendCompilerFailed", f"backend='{name}' raised:\n{why}"))
              for n, (name, why) in enumerate([("a", "ValueError: no"), ("b", "ValueError: no"), ("c", "TypeError: no")])]
    text = index(capture_of(*failed))
    assert "`[0/0]`, 2 times: **`f` was not compiled" in text and "`[0/2]`: **`f` was not compiled" in text


def test_two_functions_at_one_place_are_two_in_the_summary():
    """Two lambdas on a line; processes have the same ones."""
    functions = tuple(CompiledFunction("f", (frame_of(CompileId(frame, 0)),)) for frame in range(2))
    run = capture_of(compilation(0), compilation(1), functions=functions)
    for processes in ({"/a": run}, {"/a": run, "/b": run}):
        assert any("graphs of 2 functions" in line for line in summary(processes)), summary(processes)


def test_a_failure_after_versions():
    text = index(capture_of(compilation(), compilation(0, 1, outcome="failed", failure=Failure("RecompileError", "no"))))
    assert "**`f` was not compiled again: `RecompileError`: no.**" in text


@pytest.mark.parametrize("place, is_called", [(("f", 9), True), (("<module>", 30), False), (None, False)])
def test_what_a_function_calls_in_a_log(place, is_called):
    """It has no source by which to know where the function ends, and no stack of some functions."""
    graph = dataclasses.replace(simple().graphs[0], compile_id=CompileId(1, 0))
    function = CompiledFunction("g", (frame_of(CompileId(1, 0), "g", graph="__compiled_fn_1"),))
    called = dataclasses.replace(compilation(1, 0, "g", 20), stack=stack(place) if place else ())
    text = index(capture_of(compilation(outcome="failed"), called, functions=(function,), graphs=(graph,)))
    assert ("What it calls is compiled by itself: `g`." in text) is is_called


def test_the_hint_before_an_error_is_no_reason_to_show_all_of_it():
    reason = ("Consider annotating your code using torch._check*(). Could not guard on u0 > 3\n\nconsider using others\n"
              "Caused by: if u > 3")
    text = index(capture_of(compilation(outcome="failed", failure=Failure("UserError", reason))))
    assert "**`f` was not compiled: `UserError`: Could not guard on u0 > 3.**" in text


def test_a_version_that_another_thread_made():
    """Torch looks for the guard that failed when the version has long been there."""
    held, *_ = guard_failures("0/1: Unexpected recompilation: runtime guards failed even though they passed during "
                              "recompilation-reason analysis. Please open an issue")
    text = index(capture_of(compilation(), compilation(0, 2, guard_failures=(held, failure(0)))))
    assert ("* `[0/2]` `x.shape[0]`: 0 → 1 (of `[0/0]`); no guard of the version failed when torch looked for the reason: "
            "another thread may have compiled it meanwhile (of `[0/1]`)\n") in text


def test_an_attribute_that_is_elsewhere_in_a_module_is_not_missing():
    """Of a call for which nothing was compiled no version says what it is."""
    found = guard_failures("0/0: KeyError on L['self']._modules['act']")
    text = index(capture_of(compilation(), compilation(0, 1, outcome="limit", guard_failures=found)))
    assert "`self.act` is not where the version reads it" in text and "missing" not in text


def test_an_unbacked_size_of_an_argument():
    """`mark_unbacked` leaves it open; no data decide it."""
    symbols = (SymbolDecision("unbacked", "u0", range="[0, int_oo]"), SymbolDecision("unbacked", "u1"))
    run = simple()
    used = dataclasses.replace(run.graphs[0].stages[0], text="f32[u0, u1]", inputs=(GraphInput("u0", "L['x'].size()[0]"),))
    text = index(dataclasses.replace(run, graphs=(dataclasses.replace(run.graphs[0], stages=(used,)),),
                                     compilations=(compilation(symbols=symbols),)))
    assert "`x.shape[0]` (torch's `u0`)" in text and "a value unknown while torch compiles (torch's `u1`)" in text


def test_dynamic_shapes_and_caches():
    symbols = (
        SymbolDecision("created", "s0", "L['x'].size()[0]", "11", "[2, int_oo]", "", SourceLocation(FILE, 4)),
        SymbolDecision("fixed", "s1", "L['y'].size()[0]", "7", "", "a reason", SourceLocation(FILE, 5)),
        SymbolDecision("fixed", "s1", "L['y'].size()[0]", "9", "", "a reason", SourceLocation(FILE, 7)),  # elsewhere
        SymbolDecision("guarded", "s0 <= 4096", location=SourceLocation(FILE, 6)), SymbolDecision("guarded", "Ne(s0, 2)"))
    text = index(capture_of(compilation(
        0, 1, symbols=symbols, guard_failures=(failure(10),),
        caches=(CacheLookup("fx_graph", "miss"), CacheLookup("fx_graph", "hit"),
                CacheLookup("fx_graph", "bypass", "not picklable")))))
    check(text)
    for part in ("`x.shape[0]` (torch's `s0`): any value from 2 on, first seen as `11`, `model.py:4`; open because `10` "
                 "became `11`", "**fixed**: `y.shape[0]` (torch's `s1`: a reason), `model.py:5`: `7` in `[0/1]`",
                 "**fixed**: `y.shape[0]` (torch's `s1`: a reason), `model.py:7`: `9` in `[0/1]`",
                 "condition `x.shape[0] <= 4096`, `model.py:6` (torch: `s0 <= 4096`)", "condition `x.shape[0] != 2`", "`fx_graph` 1 miss, 1 hit, 1 bypass",
                 "Bypassed because: not picklable (1)."):
        assert part in text, part


def test_the_line_of_the_operation_for_which_a_cache_was_bypassed():
    graph = CompiledGraph("__compiled_fn_1", "__compiled_fn_1", CompileId(0, 0), "inductor", (GraphStage(
        "Captured_Graph", 0, f"""class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2]"):
        # File: {FILE}:7 in f, code: y = F.apply(x)
        y: "f32[2]" = torch.ops.higher_order.autograd_function_apply(x)
        return (y,)
""", False, CompileId(0, 0), "g.py"),))
    reason = "Unsupported call_function target f. \n Function module: torch, \nFunction name: autograd_function_apply"
    text = index(capture_of(compilation(caches=(CacheLookup("aotautograd", "bypass", reason),)), graphs=(graph,)))
    assert "Function name: autograd_function_apply (1, at `model.py:7`)." in text


def test_any_value_is_told_in_words():
    assert value("any") == "any" and value("'any'") == "`'any'`"


def test_a_symbol_that_nothing_uses_is_left_out():
    """Torch makes one of each number that it comes by."""
    symbols = (SymbolDecision("created", "s0", "L['x'].size()[0]", "11", "[2, int_oo]"),
               SymbolDecision("created", "s1", "L['y'].size()[0]", "12", "[2, int_oo]"))
    run = simple()
    used = dataclasses.replace(run.graphs[0].stages[0], text="x: 'f32[s1]'")
    graph = dataclasses.replace(run.graphs[0], stages=(used,))
    text = index(dataclasses.replace(run, graphs=(graph,), compilations=(compilation(symbols=symbols),)))
    assert "`y.shape[0]` (torch's `s1`)" in text and "`x.shape[0]`" not in text


def broken_at(text, reason, explanation=""):
    return GraphBreak(CompileId(0, 0), reason, explanation, stack=(SourceLocation(FILE, 4, "f", text),))


def test_of_a_line_one_computation_is_shown():
    words = "Detected `if`.\nThe branch condition involves a tensor computed as follows:\n"
    breaks = [broken_at("if x > 0:", "Data-dependent branching", f"{words}mul_{n} = mul(x, {n})") for n in range(3)]
    elsewhere = GraphBreak(CompileId(0, 0), "Data-dependent branching", f"{words}add = add(x, 1)",
                           stack=(SourceLocation(FILE, 9, "f", "if y > 0:"),))
    text = index(capture_of(compilation(breaks=(*breaks, elsewhere))))
    assert "mul_0" in text and "add = add" in text and "mul_1" not in text
    assert "Of the same line: 2 computations more" in text


@pytest.mark.parametrize("broken, phrase", [
    (broken_at("self.log.append(x.item())", "Unsupported Tensor.item() call"), "`x.item()`"),
    (broken_at('print("so", "much", "to", "say")', "Failed to trace builtin operator", "operator `print` with"),
     "`print(...)`"),
    (broken_at("if x.sum() > 0:", "Data-dependent branching"), "the choice by `x.sum() > 0`"),
    (broken_at("y = x.item() + z.item()", "Unsupported Tensor.item() call"), ""),
    (broken_at("in the middle of (", "Unsupported Tensor.item() call"), ""),
])
def test_what_of_a_line_runs_in_plain_python(broken, phrase):
    assert in_plain_python(broken) == phrase


HOSTILE = ["<lambda>", "a|b", "`tick`", "``", "x](y)", "[a](b)", "a\nb", "*b*", "__init__", "<script>", "# no", "é\udc80",
           "\u202ebackwards", "&amp;", "1. one", "$x$"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(name):
    ids = CompileId(0, 0)
    place = SourceLocation(f"/a/{name}.py", 1, name, name)
    broken = GraphBreak(ids, name, name, (name,), stack=(place,))
    frame = dataclasses.replace(frame_of(ids, name, "t.py"), location=place)
    text = index(capture_of(
        Compilation(ids, name, place, (), "compiled", breaks=(broken,), symbols=(
            SymbolDecision("created", name, name, name, name, name, place),), phases=(Phase(name, 1.0),)),
        Compilation(CompileId(0, 1), name, place, (), "failed", Failure(name, name, place), guard_failures=(
            GuardFailure(ids, name, name, name, name, place),), caches=(CacheLookup(name, "bypass", name),)),
        notes=(name,), functions=(CompiledFunction(name, (frame,), "full.py"),)))
    check(text, {"full.py", "t.py"})
    text.encode()
    assert all(line.isprintable() for line in text.splitlines())
    assert all(heading.startswith(("# What", "## ", "### ")) for heading in text.splitlines() if heading[:1] == "#")


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_reads_names_as_they_are(name):
    """As a reader of Markdown sees it (commonmark.js's rules, by markdown-it)."""
    markdown = pytest.importorskip("markdown_it")
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(name.split()))
    sentences = [] if name == "`tick`" else [prose(name), f"* {prose(name)}", f"x {prose(name)}"]  # that is code there
    for text in (code(name), *sentences):
        (inline,) = [t for t in markdown.MarkdownIt("commonmark").parse(text) if t.type == "inline"]
        assert {child.type for child in inline.children} <= {"text", "code_inline", "softbreak", "text_special"}, text
        seen = "".join(child.content for child in inline.children)
        assert seen.removeprefix("x ") == shown


def test_short_names_tell_files_apart():
    assert short_names(["/a/b/x.py", "/a/c/x.py", "/d/y.py", "x.py"]) == {
        "/a/b/x.py": "b/x.py", "/a/c/x.py": "c/x.py", "/d/y.py": "y.py", "x.py": "x.py"}


def test_a_path_that_torch_cut_has_the_name_of_its_file():
    assert short_names(["/work/me/model.py", "me/model.py", "/x/torch/nn/linear.py", "nn/linear.py"]) == {
        "/work/me/model.py": "model.py", "me/model.py": "model.py", "/x/torch/nn/linear.py": "linear.py",
        "nn/linear.py": "linear.py"}


# --- the function that the user means -----------------------------------------------------------------
WRAPPER, METHOD = SourceLocation("deco.py", 7, "deco.wrapper"), SourceLocation(FILE, 30, "forward")
MEANT = UserFunction("Net.forward", METHOD, (WRAPPER,))


def wrapped(ids, file):
    return dataclasses.replace(
        frame_of(ids, "wrapper", file, "Net_forward"), title="Net.forward", location=METHOD, wrappers=(WRAPPER,))


def test_a_function_behind_a_wrapper_is_called_by_its_name_and_the_wrapper_said_once():
    function = CompiledFunction("Net_forward", (wrapped(CompileId(0, 0), "t.py"),), "full.py")
    text = index(capture_of(compilation(function="wrapper", user_function=MEANT), functions=(function,)))
    assert "[`Net.forward`](full.py)" in text and f"{FILE.rpartition('/')[2]}:30" in text
    assert text.count("called through 1 wrapper: `deco.py:7` `deco.wrapper`") == 1
    assert text.count("wrapper`") == 1


def test_a_wrapper_that_was_compiled_by_itself_is_told_from_its_function():
    functions = (
        CompiledFunction("Net_forward", (wrapped(CompileId(0, 0), "t.py"),), "full_0.py"),
        CompiledFunction("Net_forward", (dataclasses.replace(
            frame_of(CompileId(1, 0), "forward", "u.py", "Net_forward"), title="Net.forward", location=METHOD),),
            "full_1.py"))
    text = index(capture_of(
        compilation(function="wrapper", user_function=MEANT),
        compilation(1, 0, "forward", 30, user_function=UserFunction("Net.forward", METHOD)), functions=functions))
    assert "[`Net.forward (its wrapper deco.wrapper)`](full_0.py)" in text and "[`Net.forward`](full_1.py)" in text


def test_one_wrapper_of_two_functions():
    """Torch keeps both under one number, as it is one code object."""
    other = UserFunction("Other.forward", SourceLocation(FILE, 50, "forward"), (WRAPPER,))
    first = CompiledFunction("Net_forward", (wrapped(CompileId(0, 0), "t.py"),), "full_0.py")
    text = index(capture_of(
        compilation(function="wrapper", user_function=MEANT),
        compilation(0, 1, "wrapper", outcome="skipped", user_function=other), functions=(first,)))
    assert "`[0/1]` | `Other.forward`" in text


def test_a_wrapper_that_is_given_up_is_that_of_both_functions():
    """Torch skips its code for either; what it calls may be compiled by itself."""
    other = UserFunction("Other.forward", SourceLocation(FILE, 50, "forward"), (WRAPPER,))
    functions = (CompiledFunction("Net_forward", (wrapped(CompileId(0, 0), "t.py"),), "full_0.py"), CompiledFunction(
        "Other_forward", (dataclasses.replace(wrapped(CompileId(0, 1), "u.py"), title="Other.forward", location=other.location),),
        "full_1.py"))
    text = index(capture_of(
        compilation(function="wrapper", user_function=MEANT), compilation(0, 1, "wrapper", user_function=other),
        compilation(0, 2, "wrapper", outcome="skipped", user_function=MEANT), functions=functions))
    assert ("`deco.wrapper` around `Net.forward` runs in plain Python: torch found no tensor operation on the path of the call "
            "that `[0/2]` began with.** Since then all calls of it do, also those that its 2 earlier versions served.") in text
    assert text.count("\n| [`Net.forward`](full_0.py) |") == 1 and "\n| `Net.forward` |" not in text


def test_a_function_that_was_skipped_has_its_class():
    text = index(capture_of(compilation(function="wrapper", outcome="skipped", user_function=MEANT)))
    assert "Net.forward" in text and "`wrapper`" not in text


def test_the_options_of_inductor_stand_with_their_functions():
    functions = (CompiledFunction("f", (frame_of(CompileId(0, 0)),)),)

    def looked_up(*options):
        return CacheLookup("fx_graph", "miss", "", (CacheKeyPart("gm", "1"),), options)

    def told(*caches, arguments=None):
        return index(capture_of(*(compilation(0, n, caches=each, arguments=arguments) for n, each in enumerate(caches)),
                                functions=functions))

    both = ("max_autotune = True", "coordinate_descent_tuning = True")
    text = told((looked_up(*both), CacheLookup("aotautograd", "miss")))
    assert re.search(r"\n\* `\w+`: `coordinate_descent_tuning = True`, `max_autotune = True`\n", text)
    assert re.search(r"\n\* `\w+` in `\[0/0\]`: `max_autotune = True`\n", told((looked_up(both[0]),), (looked_up(),)))
    assert "Options of Inductor" not in told((looked_up(),))
    assert "\nOptions of Inductor that were not at their default, by a mode or by `torch._inductor.config`:" in text
    text = told((looked_up(*both),), arguments={"options": "{'max_autotune': True, 'post_grad_custom_post_pass': f}"})
    assert re.search(r"\n\* `\w+`: `coordinate_descent_tuning = True`\n", text)
    bypassed = CacheLookup("fx_graph", "bypass", "freezing", options=("freezing = True",))
    assert re.search(r"\n\* `\w+`: `freezing = True`\n", told((bypassed,)))


def test_skipped_functions_have_one_number_everywhere():
    """That of fix, of check, of the index and of a difference; one without a tensor operation is none."""
    refused = Failure("Unsupported", "no")
    run = capture_of(
        compilation(0, 0), compilation(1, 0, outcome="skipped"), compilation(2, 0, outcome="skipped", failure=refused),
        compilation(3, 0, outcome="failed", failure=refused), compilation(4, 0, outcome="limit", failure=refused))
    assert "[3 skipped functions (1 stopped at the recompile limit, 1 failed, 1 skipped)](#not-compiled)" in index(run)
    assert Outcome(run).totals.skipped == len(findings(RunIndex(run), "skipped")) == 3
    again = dataclasses.replace(run, compilations=(*run.compilations, *(
        compilation(3, number, outcome="failed", failure=refused) for number in (1, 2))))
    assert "[3 skipped functions (1 stopped at the recompile limit, 1 failed, 1 skipped)](#not-compiled)" in index(again)
    assert Outcome(again).totals.skipped == len(findings(RunIndex(again), "skipped")) == 3
    assert difference(run, again).numbers == [] and difference(run, again).changed
    nothing_lost = index(capture_of(compilation(0, 0), compilation(1, 0, outcome="skipped")))
    assert "what has no tensor operation is [not compiled](#not-compiled)." in nothing_lost


def test_the_self_of_a_hook_is_not_that_of_the_frame():
    hooks = "self._modules['block']._forward_hooks"
    subject = f"{hooks}[list(dict.keys({hooks}))[0]].__closure__[0].cell_contents.n"
    failure = GuardFailure(CompileId(0, 0), f"{subject} == 0", subject, "0", "1", subject=subject,
                           hint='guard on "self".n) (HINT: torch.compile considers integer attributes static.')
    (change,) = changes(compilation(0, 1, guard_failures=(failure,)), {}, {})
    assert change.row() == "`self.n` (`self` is that of a function in `self.block._forward_hooks`): 0 → 1"
