"""Events of the structured trace, as torch writes them, and what is read from them."""

import ast
import json
import pathlib

import pytest
import torch

from depyf.records.model import CompileId
from depyf.records.naming import AROUND
from depyf.torch_text.events import EventReader, graph_break
from depyf.torch_text.guard_failures import guard_failures
from depyf.torch_text.trace_table import text_of, unread_name
from depyf.views.verdict import seconds_by_phase

IDS = CompileId(0, 0)

#: torch 2.13.
BREAK = '''Graph break in user code at /tmp/prog.py:9
Graph Break Reason: Data-dependent branching
  Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). Dynamo does not.

      The branch condition involves a tensor computed as follows:
        lt = lt(sum_1, 0)

  Hint: Consider making the code branchless: a, b
  Hint: Use `torch.cond` to express dynamic control flow.

  Developer debug context: attempted to jump with TensorVariable()

 For more details about this graph break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html

User code traceback:
  File "/tmp/prog.py", line 20, in <module>
    f(torch.randn(n), torch.randn(n))
  File "/tmp/prog.py", line 9, in f
    if b.sum() < 0:
       ^^^^^^^^^^^^

NoneType: None
'''
#: The function is given up.
SKIP = '''Graph break in user code at /tmp/p.py:33
Graph Break Reason: Failed to handle graph break gracefully. Skipping the function and falling back to eager. Graph break encountered:

Call to `torch._dynamo.graph_break()`
  Explanation: User-inserted graph break. Message: None
  Hint: Remove the `torch._dynamo.graph_break()` call.

*** While handling this graph break, another graph break occurred: ***

graph break in loop
  Explanation: torch.compile detected one

User code traceback:
  File "/tmp/p.py", line 33, in gen
    torch._dynamo.graph_break()

Traceback (most recent call last):
  File "/torch/_dynamo/symbolic_convert.py", line 1076, in wrapper
    return inner_fn(self, inst)
torch._dynamo.exc.Unsupported: no
'''
#: torch 2.6.
OLD = '''Graph break in user code at /tmp/p.py:5
Reason: Data-dependent jump
User code traceback:
  File "/tmp/p.py", line 5, in f
    if b.sum() < 0:

NoneType: None
'''


def test_graph_break():
    broken = graph_break(IDS, BREAK)
    assert broken.reason == "Data-dependent branching"
    assert broken.registry_id == "GB0170" and broken.url.endswith("gb0170.html")
    assert broken.explanation.startswith("Detected data-dependent") and "lt = lt(sum_1, 0)" in broken.explanation
    assert broken.hints == ("Consider making the code branchless: a, b",
                            "Use `torch.cond` to express dynamic control flow.")
    assert broken.context == "attempted to jump with TensorVariable()"
    assert [(place.line, place.function, place.text) for place in broken.stack] == [
        (20, "<module>", "f(torch.randn(n), torch.randn(n))"), (9, "f", "if b.sum() < 0:")]
    assert broken.location.line == 9 and not broken.skips_function


def test_a_break_that_gives_the_function_up():
    broken = graph_break(IDS, SKIP)
    assert broken.skips_function
    assert broken.reason == "Call to `torch._dynamo.graph_break()`"
    assert broken.explanation == "User-inserted graph break. Message: None"
    assert broken.hints == ("Remove the `torch._dynamo.graph_break()` call.",)
    assert [place.filename for place in broken.stack] == ["/tmp/p.py"]


def test_a_break_of_an_older_torch():
    broken = graph_break(IDS, OLD)
    assert (broken.reason, broken.registry_id, broken.location.line) == ("Data-dependent jump", "", 5)


def test_text_of_another_form_is_kept():
    broken = graph_break(IDS, "something else")
    assert broken.raw == broken.reason == "something else" and broken.location is None


def test_recompile_for_a_shape():
    (failure,) = guard_failures("3/12: tensor 'a' size mismatch at index 0. expected 10, actual 12")
    assert (failure.entry, failure.source, failure.expected, failure.seen) == (CompileId(3, 12), "a", "10", "12")


def test_recompile_for_a_type_and_a_value_asks_what_is_seen():
    asked = []

    def seen(expression):
        asked.append(expression)
        return "what is there"

    reasons = [
        "1/1: ___check_type_id(k, 94543805829200), type=<class '__main__.T1'>  # return x*k.a  # mp/p.py:10 in g "
        "(HINT: type T1)\nUser stack trace:\n  File \"/tmp/p.py\", line 10, in g\n    return x*k.a",
        "1/0: L['n'] == 3  # return x * n  # mp/p.py:4 in f"]
    first, second = guard_failures(json.dumps(reasons), {"mp/p.py": "/tmp/p.py"}.__getitem__, seen)
    assert (first.text, first.expected, first.seen) == ("type(k) is __main__.T1", "__main__.T1", "what is there")
    assert (first.cause.filename, first.cause.line, first.cause.text) == ("/tmp/p.py", 10, "return x*k.a")
    assert (second.source, second.expected, second.cause.filename) == ("L['n']", "3", "/tmp/p.py")
    assert asked == ["type(k)", "L['n']"]


def test_a_type_of_the_same_name_is_another_class():
    """``parametrize`` makes a class for each module, all called ``ParametrizedConv1d``."""
    reason = "7/1: ___check_type_id(self.conv, 94543805829200), type=<class 'torch.nn.ParametrizedConv1d'>"
    (failure,) = guard_failures(reason, seen=lambda expression: "torch.nn.ParametrizedConv1d")
    assert (failure.expected, failure.seen) == ("torch.nn.ParametrizedConv1d", "another class of that name")


def test_of_the_type_of_a_dictionary_torch_names_no_class():
    (failure,) = guard_failures("0/3: TYPE_MISMATCH(L['value'])", seen={"type(L['value'])": "int"}.__getitem__)
    assert (failure.subject, failure.source) == ("type(L['value'])", "L['value']")
    assert (failure.expected, failure.seen) == ("the same type of dict", "int")


@pytest.mark.parametrize("text", [
    "'NoneType' object has no attribute 'size'", "'int' object is not subscriptable", "list index out of range", "'key'"])
def test_the_text_of_an_exception_is_no_name_of_what_changed(text):
    (failure,) = guard_failures(f"0/0: {text}")
    assert (failure.subject, failure.source) == (f"a guard could not be evaluated: {text}", "")


@pytest.mark.parametrize(("condition", "subject", "expected"), [
    ("not ___dict_contains((torch.Size([3]), torch.Size([2, 2])), L['self'].seen)",
     "(torch.Size([3]), torch.Size([2, 2])) in L['self'].seen", "False"),
    ("___dict_contains('a, b', L['d'])", "'a, b' in L['d']", "True"),
    ("not set.__contains__(G['_seen'], 'no mask, causal')", "'no mask, causal' in G['_seen']", "False")])
def test_a_key_may_contain_commas(condition, subject, expected):
    (failure,) = guard_failures(f"0/0: {condition}")
    assert (failure.subject, failure.expected) == (subject, expected)


def test_the_line_that_torch_guards_for_is_the_users():
    stack = ('  File "/home/me/m.py", line 4, in f\n    return emb(x)\n'
             '  File "/venv/lib/python3.11/site-packages/torch/nn/modules/sparse.py", line 189, in forward\n'
             "    return F.embedding(")
    (failure,) = guard_failures(f"0/0: x.dim == 1  # return F.embedding(  # nn/modules/sparse.py:189 in forward\n"
                                f"User stack trace:\n{stack}")
    assert (failure.cause.filename, failure.cause.line, failure.cause.text) == ("/home/me/m.py", 4, "return emb(x)")


def feed(*events):
    reader = EventReader()
    for event in events:
        payload = event.pop("payload", None)
        reader.feed({"frame_id": 0, "frame_compile_id": 0, "attempt": 0, **event}, payload)
    return reader.compilations()


def metrics(**values):
    return {"compilation_metrics": {"co_name": "f", "co_filename": "/p.py", "co_firstlineno": 3, **values}}


def test_outcomes():
    compiled, = feed(metrics(has_guarded_code=True, entire_frame_compile_time_s=2.0,
                             inductor_cumulative_compile_time_us=1_500_000, guard_count=7))
    assert compiled.outcome == "compiled" and compiled.failure is None
    assert compiled.seconds == 2.0 and [(p.name, p.seconds) for p in compiled.phases] == [("inductor", 1.5)]
    assert compiled.counts == {"guards": 7} and compiled.location.line == 3
    failed, = feed(metrics(fail_type="TorchRuntimeError", fail_reason="bad"))
    assert (failed.outcome, failed.failure.kind) == ("failed", "TorchRuntimeError")
    skipped, = feed({"artifact": {"name": "dynamo_graph_break_reason"}, "payload": SKIP},
                    metrics(fail_type="Unsupported", fail_reason="x"))
    assert skipped.outcome == "skipped"
    nothing, = feed(metrics())
    assert nothing.outcome == "skipped"
    empty, = feed(metrics(has_guarded_code=True, guard_count=None))  # a frame without operations
    assert empty.outcome == "skipped" and empty.failure is None
    begun, = feed({"dynamo_start": {"stack": []}})
    assert begun.outcome == "unknown"


@pytest.mark.parametrize(("kind", "reason"), [
    ("Unsupported", "Dynamo recompile limit exceeded\n  Explanation: ..."),
    ("FailOnRecompileLimitHit", "Hard failure due to fullgraph=True")])
def test_a_limit_names_the_function_of_its_frame(kind, reason):
    first, limit = feed(
        metrics(has_guarded_code=True),
        {"frame_compile_id": 8, "compilation_metrics": {"fail_type": kind, "fail_reason": reason}})
    assert (limit.outcome, limit.function, limit.location) == ("limit", "f", first.location)


def test_backward_counts_into_the_same_compilation():
    compilation, = feed(metrics(has_guarded_code=True, entire_frame_compile_time_s=2.0, inductor_cumulative_compile_time_us=1e6),
                        {"bwd_compilation_metrics": {"duration_us": 500_000, "inductor_cumulative_compile_time_us": 250_000}})
    assert compilation.seconds == 2.5
    assert [phase.seconds for phase in compilation.phases] == [1.0, 0.25], "as torch reported them"
    assert seconds_by_phase([compilation]) == {compilation.phases[0].name: 1.25}


def test_symbols_of_an_attempt_that_was_given_up_are_void():
    def symbol(attempt):
        return {"attempt": attempt, "create_symbol": {
            "symbol": f"s{attempt}", "val": "12", "vr": "[2, int_oo]", "source": "L['a'].size()[0]",
            "user_stack": [{"line": 8, "name": "f", "filename": 0, "loc": "x = a"}]}}
    compilation, = feed({"str": ["/p.py", 0]}, symbol(0), symbol(1))
    assert [(s.kind, s.symbol, s.location.filename) for s in compilation.symbols] == [("created", "s1", "/p.py")]


def test_a_file_of_depyfs_or_of_a_compiler_is_no_place_of_the_program():
    """Torch takes it for one, as its own stack leads through it while depyf watches."""
    place = {"line": 222, "name": "calling", "filename": 0, "loc": ""}
    made = {"create_unbacked_symbol": {"symbol": "u0", "vr": "", "user_stack": [{**place, "filename": 1}, place]}}
    compilation, = feed({"str": ["/lib/depyf/capture/torch_private/hooks.py", 0]},
                        {"str": ["/lib/python3.11/site-packages/torch/_dynamo/backends/common.py", 1]}, made)
    assert [each.location for each in compilation.symbols] == [None]


def test_a_break_at_which_torch_tries_again_in_vain_is_one():
    """At a tensor of a kind that it does not trace, for example."""
    again = BREAK.replace("Reason: ", "Reason: Failed to handle graph break gracefully. Skipping the function.\n\n")
    compilation, = feed({"artifact": {"name": "dynamo_graph_break_reason"}, "payload": BREAK},
                        {"artifact": {"name": "dynamo_graph_break_reason"}, "payload": again, "attempt": 1})
    assert [(each.reason, each.skips_function) for each in compilation.breaks] == [("Data-dependent branching", True)]


def test_a_condition_that_the_backend_of_the_program_evaluates():
    """Torch names no line of the user's for it, but its own stack has the lines of the backend."""
    def frame(file, line):
        return {"line": line, "name": "f", "filename": file, "loc": ""}

    torch = "/lib/python3.11/site-packages/torch"
    files = ["/app/main.py", f"{torch}/_dynamo/convert_frame.py", "/app/backend.py", f"{torch}/fx/interpreter.py",
             f"{torch}/_inductor/graph.py", f"{torch}/fx/experimental/symbolic_shapes.py"]
    names = [{"str": [file, number]} for number, file in enumerate(files)]
    stack = [frame(0, 9), frame(1, 1), frame(2, 19), frame(3, 1), frame(2, 17), frame(3, 2), frame(5, 3)]
    compilation, = feed(*names, {"guard_added_fast": {"expr": "Eq(s2, 4)", "user_stack": [], "stack": stack}},
                        {"guard_added_fast": {"expr": "s2 < 9", "user_stack": [], "stack": [*stack[:-1], frame(4, 5)]}})
    backends, inductors = compilation.symbols
    assert (backends.location.line, [each.line for each in backends.stack]) == (17, [19])
    assert (inductors.location.filename, inductors.stack) == (f"{torch}/_inductor/graph.py", ())


def test_cache_lookups():
    compilation, = feed({"artifact": {"name": "fx_graph_cache_miss"}},
                        {"artifact": {"name": "aotautograd_cache_bypass"}, "payload": '{"cache_bypass_reason": "a hook"}'})
    assert [(c.cache, c.outcome, c.reason) for c in compilation.caches] == [
        ("fx_graph", "miss", ""), ("aotautograd", "bypass", "a hook")]


def test_the_options_of_a_graph_that_is_not_cached():
    reader = EventReader()
    event = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0, "artifact": {"name": "fx_graph_cache_bypass"}}
    reader.feed(event, '{"cache_bypass_reason": "freezing"}', options=lambda: ["freezing = True"])
    (lookup,), = (each.caches for each in reader.compilations())
    assert (lookup.reason, lookup.options) == ("freezing", ("freezing = True",))


def test_the_key_that_a_cache_was_asked_for():
    components = ["[a1] gm: <lambda>()\n\ndef forward(self, arg0_1):", "[b1] example_inputs[0]: TensorMetadata(...)",
                  "[c1] inductor_config[debug]: False", "[d1] inductor_config[cpp.threads]: -1", "no component", 3]

    def parts(*others):
        payload = json.dumps({"key": "fo", "components": [*components, *others]})
        compilation, = feed({"artifact": {"name": "fx_graph_cache_miss"}, "payload": payload})
        return {part.name: part.digest for part in compilation.caches[0].key}

    first, second = parts(), parts("[e1] inductor_config[max_autotune]: True")
    assert list(first) == ["gm", "example_inputs", "inductor_config"]
    assert [name for name in first if first[name] != second[name]] == ["inductor_config"]


@pytest.mark.parametrize("payload", ["", "no JSON", "[]", '{"components": 3}', '{"components": ["x"]}'])
def test_a_key_that_is_not_told(payload):
    compilation, = feed({"artifact": {"name": "fx_graph_cache_miss"}, "payload": payload})
    assert compilation.caches[0].key == ()


def test_foreign_events_are_let_be():
    assert feed({"something": 3}, {"artifact": None}, {"frame_id": None, "create_symbol": {}}) != ()
    assert EventReader().compilations() == ()


def timed(kind, name, moment, thread=0):
    return {"chromium_event": {}, "payload": json.dumps({"ph": kind, "name": name, "ts": moment, "tid": thread})}


def test_the_timeline_nests_and_leaves_out_what_is_short_or_has_no_end():
    compilation, = feed(
        timed("B", "dynamo", 1_000_000), timed("B", "inner", 1_100_000), timed("B", "short", 1_200_000),
        timed("E", "short", 1_200_500), timed("B", "lost", 1_300_000), timed("B", "worker", 1_350_000, thread=7),
        timed("E", "inner", 1_400_000), timed("i", "an instant", 1_450_000), timed("E", "never begun", 1_460_000),
        timed("E", "dynamo", 2_000_000), timed("E", "worker", 2_350_000, thread=7),
        {"chromium_event": {}, "payload": "not JSON"}, timed("B", "backward", 3_000_000),
        timed("E", "backward", 3_500_000))
    assert [(span.name, span.start, round(span.seconds, 6), span.depth) for span in compilation.timeline] == [
        ("dynamo", 1.0, 1.0, 0), ("inner", 1.1, 0.3, 1), ("worker", 1.35, 1.0, 0), ("backward", 3.0, 0.5, 0)]


def test_a_backward_graph_that_fails():
    compilation, = feed(metrics(has_guarded_code=True, shape_env_guard_count=2, accumulated_cache_size=5),
                        {"bwd_compilation_metrics": {"duration_us": 5, "fail_type": "E", "fail_reason": "why"}})
    assert compilation.outcome == "compiled" and compilation.failure is None
    assert (compilation.backward_failure.kind, compilation.backward_failure.reason) == ("E", "why")
    assert compilation.counts == {"shape_guards": 2, "all_cache_entries": 5}


def test_which_artifacts_are_written_on_request():
    def stage(name, payload):
        metadata = {"artifact": {"name": name}}
        assert unread_name(metadata) == ""
        found = text_of(metadata, payload)
        assert found.internal or not found.stage
        return found.stage

    assert stage("before_post_grad_graph", "class GraphModule: ...") == "before_post_grad_graph"
    assert stage("backward_prologue", "def f(): ...") == "backward_prologue"
    assert stage("aot_forward_graph_fw_metadata", "ViewAndMutationMeta(...)") == "aot_forward_graph_fw_metadata"
    assert stage("torch._functorch.config", "{}") == "_functorch.config"
    assert stage("fx_graph_cache_miss", "{}") == "fx_graph_cache_miss"
    assert stage("before_post_grad_graph", "{}") == ""


def test_the_functions_that_torch_writes_around_graphs():
    """Of arguments that are one tensor, for example: each is an artifact by the name that it has in torch's own code."""
    folder = pathlib.Path(torch.__file__).parent / "_functorch/_aot_autograd"
    calls = [node for path in folder.glob("*.py") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
             if isinstance(node, ast.Call) and ast.unparse(node.func) == "_compile_and_exec_source"]
    assert {node.args[3].value for node in calls} <= AROUND


@pytest.mark.parametrize("name", ["recompile_reasons", "fx_graph_cache_miss", "dynamo_error", "dynamo_started"])
def test_a_kind_of_event_that_nothing_reads(name):
    """Some have the name of an artifact, which is read otherwise."""
    assert unread_name({name: {}, "frame_id": 0}) == name


@pytest.mark.parametrize("name", ["fx_cache_miss", "graph_sizes", "dynamo_start", "compilation_metrics", "link"])
def test_an_artifact_that_nothing_reads(name):
    metadata = {"artifact": {"name": name}}
    assert unread_name(metadata) == name and text_of(metadata, "class A: 1").stage == ""


def test_why_tracing_began_again_is_told_in_one_order():
    """Torch keeps a set, and its trace makes a list of it: in another order in each process."""
    restarts = []
    for reasons in (["b", "a", "c"], ["c", "b", "a"], {"a", "b", "c"}):
        reader = EventReader()
        reader.feed({"frame_id": 0, "frame_compile_id": 0, "attempt": 0,
                     "compilation_metrics": {"restart_reasons": reasons}})
        restarts += [compilation.restarts for compilation in reader.compilations()]
    assert restarts == [("a", "b", "c")] * 3


def test_a_hint_in_front_of_an_error_is_no_reason():
    text = ("Graph break in user code at /a.py:3\nGraph Break Reason: Consider annotating your code using torch._check*(). "
            "Could not extract specialized integer from data-dependent expression u0 (unhinted: u0).\n\n"
            "User code traceback:\n  File \"/a.py\", line 3, in f\n    seen.add(token)\n")
    read = graph_break(CompileId(0, 0), text)
    assert read.reason.startswith("Could not extract specialized integer from data-dependent expression u0")
    assert read.hints == ("Consider annotating your code using torch._check*()",)
    only = graph_break(CompileId(0, 0), text.replace(" Could not extract", "\n\nUser code traceback:\n"))
    assert not only.reason and only.hints == read.hints
