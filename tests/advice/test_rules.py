"""Each rule's change works: a program with the trouble is run before and after it, by the search of ``depyf fix``."""

import dataclasses
import string

import pytest

pytest.importorskip("torch")

import fix_programs

from depyf.advice import RULES, Sources, on_break
from depyf.advice.facts import NAMED, Facts
from depyf.advice.model import Edit, edited
from depyf.fixing.outcome import Outcome
from depyf.fixing.patch import with_settings
from depyf.records.model import (
    Capture,
    Compilation,
    CompileId,
    Failure,
    GraphBreak,
    GuardFailure,
    NamedValue,
    SourceFile,
    SourceLocation,
)
from depyf.torch_text.met import KINDS
from depyf.views.advice import Adviser, in_order
from depyf.views.causes import cause
from depyf.views.run_index import RunIndex

CASES = {case.name: case for case in fix_programs.cases()}
IN_WORDS = {name: case for name, case in CASES.items() if case.after}
#: The first program of each rule.
OF_RULE = {case.rule: case for case in reversed(CASES.values()) if not case.after and case.rule not in {
    "none", "several", "limit"}}

#: What torch tells of ``'at %d' % n`` where it keeps ``n`` open.
PERCENT = "raised exception TypeError(\"unsupported operand type(s) for %: 'str' and 'int'\")"


@pytest.fixture(scope="module", autouse=True)
def closed_server():
    yield
    fix_programs.SERVER.close()


def outcome(case, text, folder):
    path = folder / f"{case.name}.py"
    path.write_text(text, encoding="utf-8")
    return fix_programs.ForkedRunner(str(path), limit=120)({})


@pytest.mark.slow
@pytest.mark.parametrize("rule", OF_RULE)
def test_the_change_of_a_rule_helps_and_keeps_the_results(rule, tmp_path):
    found = fix_programs.search(OF_RULE[rule], tmp_path)
    assert not found.refused
    assert found.before.problems > found.after.problems
    assert not found.after.problems
    assert rule in [advice.rule for advice in found.taken]
    assert not found.after.difference(found.before)
    assert (tmp_path / f"{OF_RULE[rule].name}.py").read_text() == OF_RULE[rule].before, "the file itself was changed"


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_WORDS)
def test_what_a_rule_says_in_words_helps(name, tmp_path):
    case = IN_WORDS[name]
    before, after = outcome(case, case.before, tmp_path), outcome(case, case.after, tmp_path)
    sources = Sources(before.capture.sources)
    advices = [on_break(sources.site(broken, each.function)) for each in before.capture.compilations
               for broken in each.breaks]
    assert case.rule in [advice.rule for advice in advices if advice]
    assert before.breaks and not after.problems
    assert before.printed == after.printed


def advice_at(text, line, reason, registry_id=""):
    """The advice on a break of torch's at a line of a program, in the compiled function."""
    place = SourceLocation("m.py", line, "f", text.splitlines()[line - 1])
    broken = GraphBreak(CompileId(0, 0), reason, registry_id=registry_id, stack=(place,), depth=1)
    return on_break(Sources([SourceFile("m.py", text)]).site(broken))


@pytest.mark.parametrize(("lines", "search"), [
    (["name = f'user_{int(user[0])}'", "seen[name] = seen.get(name, 0) + 1"], "seen.get(name, 0)"),
    (["n = int(user[0])", "name = 'user_{}'.format(n)", "return name in seen"], "name in seen"),
    (["n = int(user[0])", "seen[f'user_{n}'] += 1"], "seen[f'user_{n}']"),
    (["y = seen[f'user_{user.item()}']"], "seen[f'user_{user.item()}']"),
    (["n = int(user[0])", "y = getattr(seen, f'user_{n}')"], "getattr(seen, f'user_{n}')"),
    (["name = f'user_{int(user[0])}'", "seen[name] = 1"], None),  # (what is stored has its text when the graph is done)
    (["name = f'user_{int(user[0])}'", "print(name, seen[0])"], None),
    (["n = int(user[0])", "seen[n] += 1", "print(f'user_{n}')"], None),
])
def test_no_symbol_is_advised_for_a_number_whose_text_is_looked_up(lines, search):
    """With a symbol, torch 2.13 counts each user of ``text_as_key`` once: it finds no text that it has not made yet."""
    text = "\n    ".join(["def f(user, seen):", *lines, "return 0\n"])
    advice = advice_at(text, 2, "Unsupported Tensor.item() call with capture_scalar_outputs=False", "GB0124")
    if search is None:
        assert advice.rule != "text_as_key"
    else:
        assert (advice.rule, advice.settings) == ("text_as_key", ())
        assert f"do `{search}`, in plain Python, where `f` is called" in advice.change


@pytest.mark.parametrize(("lines", "begins"), [
    (["log.append(x.sum().item())", "return x"], "set `torch._dynamo.config.capture_scalar_outputs = True`, if nothing"),
    (["n = x.max().item()", "return g(x, n)"], "set `torch._dynamo.config.capture_scalar_outputs = True`, if nothing"),
    (["n = x.max().item()", "return n"], "set `torch._dynamo.config.capture_scalar_outputs = True`, if nothing"),
    (["hits = set(x.tolist()) & words", "return x, hits"], "compute the number before the compiled function is"),
    (["for i in range(int(x.max()) + 1):", "    x = x * i", "return x"], "compute the number before the compiled function is"),
    (["n = int(x.max())", "for i in range(n):", "    x = x * i", "return x"], "compute the number before the compiled function"),
    (["seen = x.tolist()", "return words.get(tuple(seen[:2]))"], "compute the number before the compiled function is"),
    (["seen = x.tolist()", "return x if 9 in seen else x * 2"], "end what is compiled before this line: return the tensor, "
     "take the numbers and do `9 in seen` in plain Python, and pass no list of them"),
])
def test_a_symbol_is_advised_on_the_condition_that_nothing_needs_the_value(lines, begins):
    """With a symbol torch 2.13 breaks the graph again at ``str``, at a member of a set, and at a key, also in callers."""
    text = "\n    ".join(["def f(x, log, words):", *lines]) + "\n"
    advice = advice_at(text, 2, "Unsupported Tensor.item() call with capture_scalar_outputs=False", "GB0124")
    assert advice.change.startswith(begins)


@pytest.mark.parametrize(("lines", "line", "begins"), [
    (["while True:", "    y = x * 2", "    if y.sum() > 3:", "        break", "    x = x + y"], 4,
     "compile what a turn of the loop at line 2 computes before the test, and what it computes after it"),
    (["while True:", "    x = x * 2", "    if x.sum() > 3:", "        break"], 4,
     "compile what one turn of the loop at line 2 computes"),
])
def test_a_turn_with_a_test_in_its_middle_is_two_functions(lines, line, begins):
    """As one function, the last turn would compute what comes after the test, and draw its random numbers."""
    text = "\n    ".join(["def f(x):", *lines]) + "\n    return x\n"
    advice = advice_at(text, line, "Data-dependent branching", "GB0170")
    assert advice.rule == "turn" and advice.change.startswith(begins)


def test_a_truth_value_of_torchs_is_asked_for_outside():
    text = "def f(x, y):\n    return torch.allclose(x, y)\n"
    place = SourceLocation("m.py", 2, "f", "return torch.allclose(x, y)")
    broken = GraphBreak(CompileId(0, 0), "Data dependent operator", registry_id="GB0033", stack=(place,),
                        context="aten.allclose.default")
    advice = on_break(Sources([SourceFile("m.py", text)]).site(broken))
    assert advice.change.startswith("return what `torch.allclose(x, y)` compares")


@pytest.mark.parametrize(("arguments", "is_setting"), [
    ("'text'", True), ("'text', stacklevel=2", True), ("'text', UserWarning", False), ("'text', category=Old", False)])
def test_torch_warns_after_the_graph_where_it_is_given_no_class(arguments, is_setting):
    text = f"import warnings\n\ndef f(x):\n    warnings.warn({arguments})\n    return x + 1\n"
    place = SourceLocation("m.py", 4, "f", text.splitlines()[3])
    broken = GraphBreak(CompileId(0, 0), "Attempted to call function marked as skipped", registry_id="GB0007",
                        stack=(place,), context="module: _warnings, qualname: warn, skip reason: <missing reason>")
    advice = on_break(Sources([SourceFile("m.py", text)]).site(broken))
    assert bool(advice.settings) == is_setting


@pytest.mark.slow
def test_more_versions_are_made_where_the_limit_is_raised(tmp_path):
    case = CASES["many_strings"]
    raised = with_settings(case.before, ["torch._dynamo.config.recompile_limit = 64"])
    before, after = outcome(case, case.before, tmp_path), outcome(case, raised, tmp_path)
    assert (before.skipped, after.skipped) == (1, 0)
    assert not after.difference(before)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.rule == "none"])
def test_nothing_is_taken_that_changes_results(name, tmp_path):
    found = fix_programs.search(CASES[name], tmp_path)
    assert not found.after.difference(found.before)


def test_each_setting_has_a_program():
    for setting in ("capture_scalar_outputs", "capture_dynamic_output_shape_ops", "trace_autograd_ops", "allow_rnn",
                    "enable_trace_load_build_class", "graph_break_on_nn_param_ctor"):
        assert setting in OF_RULE


# --- without torch --------------------------------------------------------------------------------------
def tensor(name, shape=("4",), dtype="float32", **more):
    return NamedValue(name, "Tensor", shape, dtype, "cpu", **more)


def broken_at(text, line, registry_id="GB0170", reason="Data-dependent branching", explanation="",
              context="", values=()):
    where = SourceLocation("/home/a/model.py", line, "f", text.splitlines()[line - 1])
    broken = GraphBreak(CompileId(0, 0), reason, explanation, registry_id=registry_id, stack=(where,), context=context,
                        values=tuple(values))
    return Sources([SourceFile(where.filename, text)]).site(broken)


def after(text, line, **more):
    advice = on_break(broken_at(text, line, **more))
    return advice and edited(text, advice.edits)


@pytest.mark.parametrize(("frame", "line", "values", "change"), [
    ("step", "loss = model(x).sum()\n    loss.backward()", [("loss", "")], "set `torch"),
    ("torch_dynamo_resume_in_step_at_9", "loss = model(x).sum()\n    loss.backward()", [("loss", "")], "compile what"),
    ("step", "x.backward()", [("x", "L['x']")], "compile what"),
    ("step", "loss = (x * W).sum()\n    loss.backward()", [("x", "L['x']"), ("loss", "")],
     "if `x` is not computed of what requires a gradient: set `torch"),
    ("step", "(x / 4).backward(retain_graph=True)", [("x", "L['x']")], "compile what computes `x / 4`"),
    ("step", "loss.backward()", [], "compile what"),
])
def test_a_backward_pass_is_traced_only_with_what_computes_the_loss(frame, line, values, change):
    """Else torch 2.13 traces nothing, so that parameters have no gradients, and raises no error."""
    text = f"def step(x):\n    {line}\n"
    place = SourceLocation("/home/a/model.py", text.count("\n"), "step", "loss.backward()")
    broken = GraphBreak(CompileId(0, 0), "Unsupported Tensor.backward() call", registry_id="GB0123", stack=(place,),
                        values=tuple(tensor(name, source=source, requires_grad=True) for name, source in values))
    advice = on_break(Sources([SourceFile(place.filename, text)]).site(broken, frame))
    assert advice.change.startswith(change)
    assert not advice.settings, "no run shows that gradients are missing, where results do not depend on them"


@pytest.mark.parametrize(("rest", "is_kept"), [("return loss.detach()", True), ("return x", False)])
def test_a_loss_that_later_lines_use_is_detached_before_its_backward_pass(rest, is_kept):
    """(Else torch 2.13 breaks the graph at the same line.)"""
    text = f"def step(x):\n    loss = model(x).sum()\n    loss.backward()\n    {rest}\n"
    advice = on_break(broken_at(text, 3, "GB0123", "Unsupported Tensor.backward() call", values=[
        tensor("loss", (), requires_grad=True)]))
    assert advice.change == "set `torch._dynamo.config.trace_autograd_ops = True`" + (
        "; before this line write `kept = loss.detach()`, and use `kept` for `loss` after it" if is_kept else "")


@pytest.mark.parametrize(("line", "change"), [
    ("s = np.random.uniform(0.5, p)", "call `np.random.uniform(0.5, p)` before the compiled function is called, and pass"),
    ("if np.random.rand() < p:\n        x = x * 2", "call `np.random.rand()` before the compiled function is called, and"),
    ("y = x.max()\n    s = np.random.uniform(0, y)", None)])
def test_a_random_number_of_numpys_is_drawn_before_the_call(line, change):
    """Torch 2.13 breaks the graph at the same line, whatever is set."""
    text = f"def f(x, p):\n    {line}\n    return x * s\n"
    at = next(number for number, each in enumerate(text.splitlines(), 1) if "np." in each)
    advice = on_break(broken_at(text, at, "GB0033", "Data dependent operator", context="aten._local_scalar_dense.default"))
    assert advice is None if change is None else advice.change.startswith(change)


def test_the_number_of_an_index_is_passed_to_what_a_turn_computes():
    text = ("def nms(boxes, order):\n    while order.numel() > 0:\n        best = order[0]\n"
            "        y = boxes[best, :2] * 2\n        order = order[1:][y > 0]\n")
    advice = on_break(broken_at(text, 4, "GB0033", "Data dependent operator", context="aten._local_scalar_dense.default",
                                values=[tensor("best", (), "int64"), tensor("order"), tensor("boxes", ("4", "4"))]))
    assert "`nms` itself, which takes the number (`best.item()` for `best`) and passes it, stays in plain" in advice.change
    assert advice.change.endswith("; set `torch._dynamo.config.capture_dynamic_output_shape_ops = True` for it")


def test_gradients_of_gradients_need_one_graph():
    line = "    grad, = torch.autograd.grad(score.sum(), x, create_graph=True)"
    advice = on_break(broken_at(f"def f(score, x):\n{line}\n", 2, registry_id="GB9186", reason="using"))
    assert advice.settings and "cannot be differentiated twice" in advice.why
    advice = on_break(broken_at("def f(e, x):\n    g = torch.autograd.grad(e.sum(), x)\n    return e, g\n", 2,
                                registry_id="GB9186", reason="using"))
    assert advice.settings and "use its `.detach()` there, taken before the call" in advice.change


@pytest.mark.parametrize(("lines", "told"), [
    (["o.zero_grad()", "y = x * 2"], "move `o.zero_grad()` before the call of `f`"),
    (["y = x * 2", "o.zero_grad()"], "before the call of `f`, if it needs nothing that the lines before it do; after it"),
    (["if last:", "    o.zero_grad()"], "move `o.zero_grad()` out of what is compiled, with all that it is in"),
    (["for p in o:", "    o.zero_grad()"], "move `o.zero_grad()` out of what is compiled, with all that it is in"),
])
def test_a_call_that_torch_skips_keeps_its_order_and_condition(lines, told):
    """(``zero_grad()`` before a step that adds to gradients loses those of the step before.)"""
    text = "\n    ".join(["def f(x, o, last):", *lines]) + "\n"
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "zero_grad" in each)
    site = broken_at(text, line, registry_id="GB0008", reason="Attempted to inline function marked as skipped",
                     context="qualname: Optimizer.zero_grad, name: inner, skip reason")
    assert told in on_break(site).change


@pytest.mark.parametrize("line, registry_id, context", [
    ("self.spent.append(time.perf_counter() - began)", "GB0007", "module: time, qualname: perf_counter, skip reason: ..."),
    ("late = time.monotonic() > self.deadline", "GB0007", "module: time, qualname: monotonic, skip reason: ..."),
    ("now = datetime.now()", "GB0156", "call_method UserDefinedClassVariable(<class 'datetime.datetime'>) now [] {}"),
    ("used = torch.cuda.memory_allocated()", "GB0208", "target: <function memory_allocated at 0x7f>, args")])
def test_what_tells_of_the_lines_before_it_is_read_around_the_call(line, registry_id, context):
    """Read before the call, a clock measures nothing."""
    advice = on_break(broken_at(f"def f(self, x, began):\n    {line}\n    return x\n", 2, registry_id, "", context=context))
    assert advice.rule == "reading" and "before and after the call of `f`, not in it" in advice.change


@pytest.mark.parametrize("line, operator, change", [
    ("return F.ctc_loss(x, y, n, m)", "aten._ctc_loss.Tensor", "keep the line out of `f`"),
    ("torch.nonzero(x, out=y)", "aten.nonzero.out", "keep the line out of `f`"),
    ("y = x.nonzero()", "aten.nonzero.default", "set `torch._dynamo.config.capture_dynamic_output_shape_ops = True`"),
    ("y = boxes.nms(x)", "boxes.nms.default", "set `torch._dynamo.config.capture_dynamic_output_shape_ops = True`")])
def test_the_setting_for_open_sizes_is_named_where_torch_makes_a_symbol(line, operator, change):
    """Where it has no implementation that gives a symbol, the setting does nothing (GB0037)."""
    advice = on_break(broken_at(f"def f(self, x, y, n, m):\n    {line}\n", 2, "GB0036", "Dynamic shape operator",
                                f"Operator `{operator}`'s output shape depends on input Tensor data."))
    assert advice.change.startswith(change)


def test_of_a_packed_sequence_nothing_is_traced():
    text = "def f(self, x):\n    out, _ = self.rnn(x)\n"
    advice = on_break(broken_at(text, 2, "GB0014"))
    assert advice.settings and "a packed sequence breaks the graph again" in advice.cost
    inside = (SourceLocation("/home/a/model.py", 2), SourceLocation("/a/site-packages/torch/nn/modules/rnn.py", 9))
    broken = GraphBreak(CompileId(0, 0), "Data dependent operator", registry_id="GB0033", stack=inside,
                        context="aten._local_scalar_dense.default")
    advice = on_break(Sources([SourceFile("/home/a/model.py", text)]).site(broken))
    assert advice.rule == "packed" and not advice.settings


def test_a_test_of_a_size_that_only_the_data_tells_is_told_in_the_users_words():
    text = "def f(x, parts):\n    for part in parts:\n        rows = torch.where(x)[0]\n        if rows.numel() == 0:\n" \
           "            continue\n        x = part(rows)\n    return x\n"
    reason = "Could not guard on data-dependent expression Eq(u0, 0) (unhinted: Eq(u0, 0)).  (Size-like symbols: u0)"
    place = SourceLocation("/home/a/model.py", 4, "", "        if rows.numel() == 0:")
    broken = GraphBreak(CompileId(0, 0), reason, stack=(place,))
    assert cause(broken) == "`rows.numel() == 0` depends on a number known only from the data"
    advice = on_break(Sources([SourceFile(place.filename, text)]).site(broken))
    assert advice.change.startswith("compile what follows the test in a turn of the loop at line 2")
    elsewhere = GraphBreak(CompileId(0, 0), reason, stack=(dataclasses.replace(place, text="y = x.view(n)"),))
    assert cause(elsewhere) == "a decision depends on a number known only from the data: `Eq(u0, 0)`"


@pytest.mark.parametrize(("lines", "line", "change"), [
    ("    y = x + 1\n    n = zlib.crc32(y, 3)\n", 3, "divide `f` at this line: compile what comes before it"),
    ("    n = zlib.crc32(x)\n    y = n\n", 2, "call `zlib.crc32(x)` before the compiled function is called"),
    ("    for y in x:\n        n = zlib.crc32(y)\n", 3, "compile what one turn of the loop at line 2 computes"),
])
def test_what_a_call_is_given_may_be_made_in_the_function(lines, line, change):
    """It can then not be called before the function."""
    advice = on_break(broken_at(
        f"def f(x):\n{lines}", line, "GB0007", "Attempted to call function marked as skipped",
        "Dynamo does not know how to trace the builtin function `zlib.crc32`."))
    assert advice.change.startswith(change)


@pytest.mark.parametrize(("lines", "read", "expected"), [
    ("self.n += 1", "cond(self.n)", "`self.n`"), ("self.n += 1", "cond(self)", "`self`"),
    ("self.n += 1", "cond(self.m)", ""), ("self.n += 1", "cond(other.n)", "`other.n`"),
    ("self.lib = g", "self.lib.cond(p)", "`self.lib`"), ("d['k'] = 1", "cond(d['k'])", "`d`"),
    ("self.d[p].n = 1", "cond(self.d)", "`self.d`"), ("setattr(self, 'n', 1)", "cond(d.n)", "`d.n`"),
    ("d.append(1)", "cond(d)", "`d`"), ("y = d.pop()", "cond(len(d))", "`d`"), ("x.add_(1)", "cond(x.sum())", "`x`"),
    ("import cond", "cond(p)", ""), ("x = x + 1", "cond(x, p)", "`x`"), ("pass", "cond(x, p, self.n)", ""),
    ("pass", "d.pop()", ""), ("(lambda y: y)(p)", "cond(y)", ""),
])
def test_what_a_function_makes_or_changes_is_not_there_before_the_call(lines, read, expected):
    text = f"def f(self, x, p, d):\n    {lines}\n    return {read}\n"
    at = Facts(broken_at(text, text.count("\n")))
    assert at.made_of(at.statement.value) == expected


@pytest.mark.parametrize("before", ["self.n += 1", "d['k'] = 1\n    self.n = d", "setattr(self, 'n', 1)"])
def test_what_depends_on_an_attribute_that_the_function_sets_is_not_evaluated_before_it(before):
    text = f"def f(self, x, d):\n    {before}\n    if lib.cond(self.n) > 2:\n        x = x + 1\n    return x\n"
    advice = on_break(broken_at(
        text, text[:text.index("if lib")].count("\n") + 1, "GB0007", "Attempted to call function marked as skipped",
        "Dynamo does not know how to trace the builtin function `lib.cond`."))
    assert advice.change.startswith("divide `f` at this line") and "makes or changes `self.n`, which it" in advice.why


@pytest.mark.parametrize(("lines", "line", "change"), [
    ("    for t in range(3):\n        if lib.cond() < p:\n            x = x + 1\n", 3,
     "evaluate `lib.cond() < p` before the compiled function is called, once for each turn of the loop at line 2"),
    ("    for t in range(3):\n        if lib.cond() < t:\n            x = x + 1\n", 3,
     "call `lib.cond()` before the compiled function is called, once for each turn of the loop at line 2"),
    ("    while lib.cond() < p:\n        x = x + 1\n", 2, "compile what one turn of the loop at line 2 computes"),
    ("    for t in range(3):\n        y = lib.cond(x)\n        x = x + y\n", 3,
     "compile what one turn of the loop at line 2 computes"),
    ("    for t in p:\n        x = x + 1\n    else:\n        if lib.cond() < p:\n            x = x + 1\n", 5,
     "evaluate `lib.cond() < p` before the compiled function is called, in calls that come to this line, and pass the "
     "result to `f`"),
    ("    if p > 2 and lib.cond() < p:\n        x = x + 1\n", 2,
     "evaluate `lib.cond() < p` before the compiled function is called, in calls that come to it, and pass the result to `f`"),
    ("    for t in range(lib.cond()):\n        x = x + 1\n", 2,
     "call `lib.cond()` before the compiled function is called, and pass the result to `f`"),
    ("    y = [lib.cond(v) for v in p]\n", 2, "divide `f` at this line"),
    ("    y = sum(v for v in lib.cond(p))\n", 2, "call `lib.cond(p)` before the compiled function is called, and pass"),
    ("    for t in range(3):\n        x = x * lib.cond()\n", 3,
     "call `lib.cond()` before the compiled function is called, once for each turn of the loop at line 2, and pass the "
     "result to `f`"),
    ("    for t in range(3):\n        if x is p:\n            continue\n        x = x * lib.cond()\n", 5,
     "call `lib.cond()` before the compiled function is called, once for each turn of the loop at line 2 that comes to it"),
    ("    if lib.cond() < p:\n        x = x + 1\n", 2, "evaluate `lib.cond() < p` before the compiled function"),
    ("    y = x + 1\n    if lib.cond() < y:\n        x = x + 1\n", 3,
     "call `lib.cond()` before the compiled function is called, and pass the result to `f`"),
])
def test_a_call_in_a_loop_or_a_test(lines, line, change):
    """One result in its place is another program, and so is a draw more; a number as a tensor rounds otherwise."""
    advice = on_break(broken_at(
        f"def f(x, p):\n{lines}    return x\n", line, "GB0007", "Attempted to call function marked as skipped",
        "Dynamo does not know how to trace the builtin function `lib.cond`."))
    assert advice.rule == "skipped" and advice.change.startswith(change)
    assert "as a tensor" not in advice.change


@pytest.mark.parametrize(("called_at", "change"), [
    ("return self.block(x)", "call `os.uname()` before the compiled function is called"),
    ("input = module(input)", None),
    ("return fn(*args, **kwargs)", "call `os.uname()` before the compiled function is called"),
])
def test_nothing_is_passed_through_a_library_that_chooses_the_arguments(called_at, change):
    """Both where torch compiled the library's function, and where it calls what torch compiled."""
    text = "class Block:\n    def forward(self, x):\n        return x, os.uname()\ndef main():\n    model(x)\n"
    library = SourceLocation("/lib/python3.11/site-packages/torch/nn/modules/container.py", 253, "forward", called_at)
    if "self.block" in called_at:
        library = SourceLocation("m.py", 5, "main", called_at)
    stack = (SourceLocation("m.py", 5, "main", "model(x)"), library,
             SourceLocation("m.py", 3, "forward", "return x, os.uname()"))
    for depth in (1, 2):
        broken = GraphBreak(CompileId(0, 0), "Attempted to call function marked as skipped", registry_id="GB0007",
                            depth=depth, context="module: os, qualname: uname, skip reason", stack=stack)
        advice = on_break(Sources([SourceFile("m.py", text)]).site(broken))
        assert advice is None if change is None else depth == 2 or advice.change.startswith(change)


@pytest.mark.parametrize(("caller", "change"), [
    ("/home/a/train.py", "move `opt.zero_grad()` before the call of `f`"),
    ("/lib/python3.11/site-packages/torch/optim/lbfgs.py", None),
])
def test_nothing_is_moved_before_a_call_that_a_library_makes(caller, change):
    """``LBFGS.step(closure)``: nobody writes a line before its call of the closure."""
    text = "def f():\n    opt.zero_grad()\n    return loss(x)\n\nopt.step(f)\n"
    stack = (SourceLocation("m.py", 5, "<module>", "opt.step(f)"), SourceLocation(caller, 300, "step", "loss = closure()"),
             SourceLocation("m.py", 2, "f", "opt.zero_grad()"))
    broken = GraphBreak(CompileId(0, 0), "Attempted to inline function marked as skipped", registry_id="GB0008",
                        depth=1, context="qualname: Optimizer.zero_grad, name: zero_grad", stack=stack)
    advice = on_break(Sources([SourceFile("m.py", text)]).site(broken))
    assert advice.change == change if change else advice is None


def test_of_a_turn_that_makes_a_text_of_its_number_the_search_stays_outside():
    """In a function of its own the number is open from the second turn on, and an f-string breaks the graph."""
    text = ("def f(self, x):\n    for i in range(4):\n        x = getattr(self, f'layer{i}')(x)\n"
            "        log.append(x.mean().item())\n        if x.max().item() > 1:\n            break\n    return x\n")
    change = on_break(broken_at(text, 5)).change
    assert "so does what looks up `f'layer{i}'`" in change and "so does what adds to `log` or takes all of it" in change
    assert "so does what takes the number `x.mean().item()`" in change and "`x.max().item()` out of" not in change


@pytest.mark.parametrize(("call", "change"), [
    ("probe()", "if `probe()` gives the same at each call: call it once, outside of what is compiled, and"),
    ("probe(x)", None)])
def test_what_a_function_without_arguments_gives_is_read_from_a_global_variable(call, change):
    """Where a library calls what torch compiled, nothing can be passed to it."""
    text = f"def probe(x=0):\n    return os.uname()\ndef forward(self, x):\n    return x, {call}\ndef main():\n    model(x)\n"
    library = SourceLocation("/lib/python3.11/site-packages/torch/nn/modules/container.py", 253, "forward", "module(input)")
    stack = (SourceLocation("m.py", 6, "main", "model(x)"), library,
             SourceLocation("m.py", 4, "forward", f"return x, {call}"), SourceLocation("m.py", 2, "probe", "return os.uname()"))
    broken = GraphBreak(CompileId(0, 0), "Attempted to call function marked as skipped", registry_id="GB0007", depth=2,
                        context="module: os, qualname: uname, skip reason", stack=stack)
    advice = on_break(Sources([SourceFile("m.py", text)]).site(broken))
    assert advice is None if change is None else advice.change.startswith(change)


@pytest.mark.parametrize("compiled", ["/lib/python3.11/logging/__init__.py", "made.py"])
@pytest.mark.parametrize("name", ["time", "get_ident"])
def test_a_librarys_function_that_torch_compiles_by_itself_is_not_changed(compiled, name):
    """The user's line is its caller's, and runs in plain Python."""
    library, text = f"def make(x):\n    return {name}()\n", "def f(x):\n    make(x)\n"
    stack = (SourceLocation("m.py", 2, "f", "make(x)"), SourceLocation(compiled, 2, "make", f"return {name}()"))
    broken = GraphBreak(CompileId(0, 0), "Attempted to call function marked as skipped", registry_id="GB0007", depth=1,
                        context=f"module: time, qualname: {name}, skip reason", stack=stack)
    advice = on_break(Sources([SourceFile("m.py", text), SourceFile(compiled, library)]).site(broken))
    assert (advice is None) == (compiled != "made.py")


@pytest.mark.parametrize(("line", "setting"), [
    ("logger.warning('a')", "add(logging.Logger.warning)"),
    ("logger.warning_once('a')", "add(type(logger).warning_once)"),
    ("self.log.success('a')", "add(type(self.log).success)"),
    ("on = logger.isEnabledFor(10)", "call `logger.isEnabledFor(10)` before the compiled function is called"),
    ("if logger.isEnabledFor(10) and x is not None:\n        pass", "evaluate `logger.isEnabledFor(10)` before the compiled"),
])
def test_a_method_that_the_program_gives_its_loggers_is_one_of_their_class(line, setting):
    method = line.partition("(")[0].rpartition(".")[2]
    broken = GraphBreak(
        CompileId(0, 0), "logging.Logger method not supported for non-export cases", registry_id="GB0291", depth=1,
        context=f"method: <Logger m (INFO)>.{method}, args: [], kwargs: {{}}", stack=(SourceLocation("m.py", 2, "f", line),))
    assert setting in on_break(Sources([SourceFile("m.py", f"def f(self, x):\n    {line}\n")]).site(broken)).change


@pytest.mark.parametrize(("line", "change"), [
    ("return zlib.crc32(b)", "divide `step` at line 4: compile what comes before it and what comes after it as functions "
     "of their own, and call `helper(x * 2)` between them"),
    ("return os.uname()", "call `os.uname()` before the compiled function is called, and pass the result to `step` and on "
     "to `helper`"),
])
def test_a_function_that_the_compiled_one_calls_is_called_by_nobody_else(line, change):
    """What it is given may be made in the compiled one."""
    text = f"def helper(b):\n    {line}\ndef step(x):\n    return x + helper(x * 2)\n"
    stack = (SourceLocation("m.py", 4, "step", "return x + helper(x * 2)"), SourceLocation("m.py", 2, "helper", line))
    broken = GraphBreak(CompileId(0, 0), "Attempted to call function marked as skipped", registry_id="GB0007", depth=2,
                        context=f"module: os, qualname: {'crc32' if 'crc' in line else 'uname'}, skip reason", stack=stack)
    assert on_break(Sources([SourceFile("m.py", text)]).site(broken)).change.startswith(change)


def test_nothing_is_divided_in_a_loop_of_the_compiled_function():
    text = "def helper(b):\n    return zlib.crc32(b)\ndef step(x):\n    for b in x:\n        helper(b)\n    return x\n"
    stack = (SourceLocation("m.py", 5, "step", "helper(b)"), SourceLocation("m.py", 2, "helper", "return zlib.crc32(b)"))
    broken = GraphBreak(CompileId(0, 0), "Attempted to call function marked as skipped", registry_id="GB0007", depth=2,
                        context="module: zlib, qualname: crc32, skip reason", stack=stack)
    assert on_break(Sources([SourceFile("m.py", text)]).site(broken)) is None


@pytest.mark.parametrize(("registry_id", "context", "line", "change"), [
    ("GB0363", "Opaque object type: <class 'torch._C.Generator'>.", "g = torch.Generator()", "draw what the `torch.Gen"),
    ("GB0055", "call_function args: LazyVariableTracker(realized: UserDefinedObjectVariable(Generator))",
     "y = torch.rand(3, generator=g)", "draw what the `torch.Generator` gives before"),
    ("GB0055", "call_function args: LocalGeneratorObjectVariable()", "y = torch.rand(3, thing)", None),
    ("GB0142", "Attempted SETUP_WITH on UserDefinedObjectVariable(lock)", "with xs.lock:", "write `with xs.lock:` around"),
    ("GB0142", "Attempted SETUP_WITH on UserDefinedObjectVariable(R)", "with R(x) as r:", "write `with R(x) as r:` around"),
    ("GB0142", "Attempted SETUP_WITH on UserDefinedObjectVariable(lock)", "x = 2\n    with R(x):", None),
    ("GB0207", "TensorVariable()", "best = sorted(xs, key=g)", "call `sorted(xs, key=g)` before the compiled function"),
])
def test_what_torch_traces_of_no_object_is_done_before_the_call(registry_id, context, line, change):
    reason = "sort with non-constant keys" if registry_id == "GB0207" else ""
    text = f"def f(x, xs):\n    {line}\n" + "        pass\n" * line.endswith(":") + "    return x\n"
    advice = on_break(broken_at(text, 2 + line.count("\n"), registry_id, reason, context=context))
    assert advice is None if change is None else advice.change.startswith(change)


def test_the_break_of_an_optimizer_is_left():
    """``step`` has a graph of its own, also where a scheduler of learning rates wraps it."""
    text = "def f(o):\n    o.step()\n"
    own = SourceLocation("/home/a/model.py", 2, "f", "o.step()")
    inside = (own, SourceLocation("/a/site-packages/torch/optim/optimizer.py", 79, "_use_grad"))
    asked = GraphBreak(CompileId(0, 0), "", registry_id="GB0025", stack=inside)
    wrapped = GraphBreak(
        CompileId(0, 0), "", "the function `SGD.step` in file `/a/site-packages/torch/optim/lr_scheduler.py`",
        context="module: torch.optim.sgd, qualname: SGD.step, skip", registry_id="GB0007", stack=(own,))
    for broken in (asked, wrapped):
        assert on_break(Sources([SourceFile(own.filename, text)]).site(broken)).leaves


def test_nothing_is_said_of_a_print_in_a_generator():
    """Neither can it return what it shows, nor does torch 2.13 print it after the graph."""
    explanation = "Dynamo does not know how to trace builtin operator `print` with argument types ['str'] (has_kwargs False)"
    text = "def f(x):\n    for row in x:\n        print('row')\n        yield row\n"
    assert on_break(broken_at(text, 3, "GB0059", "Failed to trace builtin operator", explanation)) is None


@pytest.mark.parametrize(("lines", "registry_id", "heading", "begins"), [
    (["for row in x:", "    ids = row.tolist()", "    x = x * table.get(tuple(ids[:2]), 1)"], "GB0033", "Data dependent operator",
     "leave the loop at line 2 as it is"),
    (["for k in range(3):", "    at = torch.nonzero(x == k)", "    rows = x[at]", "    if rows.shape[0] == 0:", "        break"],
     "GB0036", "Dynamic shape operator", "set `torch._dynamo.config.capture_dynamic_output_shape_ops = True`"),
    (["x = x * 2", "return [row for row in x if row.sum() > 0]"], "GB0170", "Data-dependent branching",
     "leave the branch as it is: how many elements are taken depends on the values"),
    (["x = x * 2", "rate = next(table)"], "GB4347", "Missing tp_iternext", "call `next(table)` before the compiled function is"),
    (["x = x * 2", "y = x @ x"], "GB0015", "Attempted to wrap sparse Tensor", "keep calls with sparse tensors from `f`: test for"),
    (["x = x * 2", "x.requires_grad_()"], "GB8985", "requires_grad_() intermediate leaked as output", "leave the line as it is"),
])
def test_what_follows_from_values_of_a_list_or_of_a_size(lines, registry_id, heading, begins):
    text = "\n    ".join(["def f(x, table):", *lines]) + "\n"
    context = {"GB0033": "aten._local_scalar_dense.default", "GB0036": "aten.nonzero.default"}.get(registry_id, "")
    broken = GraphBreak(CompileId(0, 0), heading, registry_id=registry_id, context=context, depth=1,
                        stack=(SourceLocation("m.py", 3, "f", lines[1].strip()),))
    advice = on_break(Sources([SourceFile("m.py", text)]).site(broken))
    assert advice.change.startswith(begins)
    assert advice.next_break == ("line 5 (`rows.shape[0] == 0`)" if registry_id == "GB0036" else "")


def test_what_a_called_function_prints_or_warns_is_lost_after_the_graph():
    """Torch 2.13 prints after a graph what the compiled function itself prints, and nothing of what it calls."""
    explanation = "Dynamo does not know how to trace builtin operator `print` with argument types ['str'] (has_kwargs False)"
    text = "import warnings\ndef helper(x):\n    print('row')\n    warnings.warn('row')\ndef f(x):\n    helper(x)\n"
    for line, registry_id, heading, context in ((3, "GB0059", "Failed to trace builtin operator", ""), (
            4, "GB0007", "Attempted to call function marked as skipped", "module: _warnings, qualname: warn, skip reason: x")):
        inner = SourceLocation("m.py", line, "helper", text.splitlines()[line - 1].strip())
        own, called = (GraphBreak(CompileId(0, 0), heading, explanation=explanation * (line == 3), context=context,
                                  registry_id=registry_id, stack=stack, depth=len(stack)) for stack in (
            (inner,), (SourceLocation("m.py", 6, "f", "helper(x)"), inner)))
        sources = Sources([SourceFile("m.py", text)])
        assert on_break(sources.site(own)).settings
        assert not on_break(sources.site(called)).settings


@pytest.mark.parametrize("line, registry_id, change", [
    ("if random.randint(0, 1) == 0:\n        x = x * 2", "GB0170", "call `random.randint(1, 3)`, `random.randint(0, 1)` before "
     "the compiled function is called, in the order and as often as they are here"),
    ("if w > 1:\n        x = x * 2", "GB0170", "call `random.randint(1, 3)` before"),
    ("x = x[random.randrange(x.size(0) - w):]", "GB0213", "call `random.randint(1, 3)`, `random.randrange(x.size(0) - w)` before"),
    ("for _ in x:\n        if random.random() < 0.5:\n            x = x * 2", "GB0170",
     "call `random.randint(1, 3)`, `random.random()` before the compiled function is called, in the order and as often"),
    ("for _ in range(rng.randint(1, 2)):\n        x = x * 2", "GB4841", "call `random.randint(1, 3)`, `rng.randint(1, 2)` before")])
def test_random_numbers_of_python_are_drawn_before_the_call(line, registry_id, change):
    """Torch holds them as tensors, but the program has no tensor to give to `torch.where`."""
    text = f"def f(x, rng):\n    w = random.randint(1, 3)\n    {line}\n    return x\n"
    context = "" if registry_id == "GB4841" else "attempted to jump with UnspecializedPythonVariable()"
    advice = on_break(broken_at(text, 3 + line.startswith("for _ in x:"), registry_id, "", context=context))
    assert advice.rule == "drawn" and advice.change.startswith(change)


@pytest.mark.parametrize("line, change", [
    ("if random.randint(0, 1) == 0:\n        x = x * 2", "evaluate `random.randint(0, 1) == 0` before the compiled function is "
     "called, and"),
    ("for _ in x:\n        if random.random() < 0.5:\n            x = x * 2",
     "evaluate `random.random() < 0.5` before the compiled function is called, once for each turn of the loop at line 2")])
def test_the_test_of_a_single_draw_is_evaluated_before_the_call(line, change):
    advice = on_break(broken_at(f"def f(x):\n    {line}\n    return x\n", 2 + line.startswith("for _ in x:"), "GB0170", "",
                                context="attempted to jump with UnspecializedPythonVariable()"))
    assert advice.rule == "drawn" and advice.change.startswith(change)


def test_a_number_that_random_drew_is_no_symbol():
    """The setting is an error there (`torch.roll(x, random.randint(1, 2))`)."""
    text = "def f(x):\n    k = random.randint(1, 2)\n    return torch.roll(x, k)\n"
    drawn = NamedValue("k", "Tensor", (), "int64", "cpu", source="random_value_0")
    advice = on_break(broken_at(text, 3, "GB0033", context="aten._local_scalar_dense.default", values=[drawn]))
    assert advice.change.startswith("call `random.randint(1, 2)` before the compiled function is called, and pass")


@pytest.mark.parametrize("line, called", [("c = json.loads(cfg)", "loads"), ("n = len(os.listdir(cfg))", "listdir")])
def test_a_call_into_the_standard_library_is_made_before_the_function(line, called):
    text = f"def f(x, cfg):\n    {line}\n    return x\n"
    own, library = SourceLocation("m.py", 2, "f", line), SourceLocation("/usr/lib/python3.11/a.py", 3, called, "scan(s)")
    broken = GraphBreak(CompileId(0, 0), "Unsupported method call", registry_id="GB0156", stack=(own, library), depth=2)
    advice = on_break(Sources([SourceFile("m.py", text)]).site(broken))
    assert advice.change.startswith("call `") and f"{called}(cfg)` before the compiled function" in advice.change


@pytest.mark.parametrize("line", ["return sorted(x, key=lambda t: t.item())[0]", "return torch.tensor([x.item(), 2.0])"])
def test_what_needs_the_value_of_a_number_gets_no_symbol(line):
    advice = on_break(broken_at(f"def f(x):\n    x = x + 1\n    {line}\n", 3, "GB0124"))
    assert advice.change.startswith("end what is compiled before this line") and not advice.settings


def test_an_exception_that_the_function_catches_stays_in_its_branch():
    text = ("def f(x):\n    try:\n        if x.sum() < 0:\n            raise ValueError('a')\n    except ValueError:\n"
            "        x = -x\n    return x\n")
    assert "that the function may catch" in on_break(broken_at(text, 3)).change


def test_a_break_in_no_function_has_advice():
    """(A hook that is a lambda, at the level of a module.)"""
    text = "model.register_forward_hook(lambda m, i, o: seen.append(o.mean().item()))\n"
    assert on_break(broken_at(text, 1, "GB0124")) is not None


def test_a_turn_takes_an_item_by_a_tensor_of_one_index():
    text = "def f(x):\n    for i in x.nonzero():\n        x = x + x[i]\n    return x\n"
    advice = on_break(broken_at(text, 2, "GB0036", "Dynamic shape operator"))
    assert "and `f` itself stay in plain Python; in it write `x[i.view(1)][0]` for `x[i]`, where" in advice.change


def test_a_turn_over_numbers_takes_an_item_by_its_number():
    text = "def f(x, log):\n    for i in x.nonzero().flatten().tolist():\n        log.append(x[i])\n    return x\n"
    advice = on_break(broken_at(text, 2, "GB0036", "Dynamic shape operator"))
    assert ".view(1)" not in advice.change and "so does what adds to `log`" in advice.change


def test_a_setting_for_sizes_waits_for_the_loop_over_what_the_data_counts():
    """(With the setting torch 2.13 raises GuardOnDataDependentSymNode at the loop.)"""
    text = "def f(x):\n    for i in x.nonzero().tolist():\n        x = x + i[0]\n    return x[x > 0]\n"
    breaks = tuple(GraphBreak(CompileId(0, 0), "Dynamic shape operator", registry_id="GB0036", depth=1, stack=(
        SourceLocation("m.py", line, "f", text.splitlines()[line - 1]),)) for line in (2, 4))
    adviser = Adviser(RunIndex(Capture(compilations=(Compilation(CompileId(0, 0), breaks=breaks),),
                                       sources=(SourceFile("m.py", text),))))
    assert "; first do what is advised at `m.py:2`" in adviser.change_on(breaks[1])


def test_a_context_in_a_called_function_is_around_the_call_that_the_program_makes():
    """``g`` is compiled by itself since its context breaks the graph of ``f``: around its call in ``f`` it does, too."""
    text = "def f(x):\n    return g(x)\ndef g(x):\n    with lock:\n        return x * 2\nf(x)\n"
    main, call, line = (SourceLocation("m.py", *each) for each in (
        (6, "<module>", "f(x)"), (2, "f", "return g(x)"), (4, "g", "with lock:")))
    breaks = [GraphBreak(CompileId(number, 0), "Unsupported context manager", registry_id="GB0142", depth=2 - number,
                         stack=(call, line)[number:], skips_function=bool(number)) for number in (0, 1)]
    compilations = tuple(
        Compilation(CompileId(number, 0), function="fg"[number], breaks=(broken,), stack=stack)
        for number, (broken, stack) in enumerate(zip(breaks, ((main,), (main, call)))))
    adviser = Adviser(RunIndex(Capture(compilations=compilations, sources=(SourceFile("m.py", text),))))
    assert {adviser.change_on(each) for each in breaks} == {"write `with lock:` around the call of `f`, not in it"}


def test_a_number_of_pythons_is_given_to_no_operation_on_tensors():
    text = "def f(x, n):\n    if n > 1:\n        x = x * 2\n    return x\n"
    assert after(text, 2) and not after(text, 2, context="attempted to jump with UnspecializedPythonVariable()")


def test_no_line_is_changed_that_holds_more_than_the_statement():
    for text in ("def f(x):\n    if x.sum() > 0: y = 1\n    else: y = 2; z = 3\n    return y\n",
                 "def f(x):\n    if a: pass\n    elif x.sum() > 0:\n        y = 1\n    else:\n        y = 2\n    return y\n"):
        line = 2 if "z" in text else 3
        assert not (advice := on_break(broken_at(text, line))) or not advice.edits


def test_lines_of_a_library_are_not_rewritten():
    text = "def f(x):\n    if x.sum() > 0:\n        x = x + 1\n    return x\n"
    where = SourceLocation("/usr/lib/python3/site-packages/models/a.py", 2, "f", "if x.sum() > 0:")
    broken = GraphBreak(CompileId(0, 0), "Data-dependent branching", registry_id="GB0170", stack=(where,))
    assert on_break(Sources([SourceFile(where.filename, text)]).site(broken)) is None
    item = GraphBreak(CompileId(0, 0), "Unsupported Tensor.item() call", registry_id="GB0124", stack=(where,))
    assert on_break(Sources([]).site(item)) is None, "the number of a test is a branch"


@pytest.mark.parametrize(("lines", "change"), [
    ("return xs[int(x.argmax())]", "compute the number before"),
    ("y = x * 2\n    n = y.argmax().item()\n    return xs[n]", "end what is compiled before this line"),
    ("n = x.argmax().item()\n    return t[n]", "set `torch._dynamo.config.capture_scalar_outputs = True`"),
    ("n = x.argmax().item()\n    return t[0, n]", "compute the number before"),
    ("for n in x.argmax(0).tolist():\n        y = t[0, n]\n    return y", "compute the number before"),
    ("n = x.argmax().item()\n    return t[:n]", "compute the number before"),
    ("n = x.argmax().item()\n    return F.interpolate(t, size=(n, 2))", "compute the number before"),
    ("n = x.argmax().item()\n    n = 2\n    return xs[n]", "set `torch._dynamo.config.capture_scalar_outputs = True`"),
])
def test_a_number_of_the_data_that_has_to_be_known_is_taken_outside(lines, change):
    """With a symbol in its place torch 2.13 raises an error, or may do so."""
    text = f"def f(x, xs, t):\n    {lines}\n"
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "argmax" in each)
    assert on_break(broken_at(text, line, "GB0124", "Unsupported Tensor.item() call", values=[tensor("t", ("4", "4"))])
                    ).change.startswith(change)


@pytest.mark.parametrize(("line", "change"), [
    ("for i in k: counts[i] += 1", "compile what one turn of the loop at line 2 computes"), ("y = names[i]", "compute the number before"),
    ("y = names[k[0]]", "compute the number before"), ("y = F.interpolate(x, size=(i, i))", "compute the number before"),
    ("y = torch.split(x, k.tolist())", "set `torch"), ("y = x[m]", "set `torch"), ("y = torch.zeros(n[0])", "set `torch")])
def test_a_tensor_that_has_to_be_a_number_is_an_index_or_a_size(line, change):
    """With a symbol for it torch 2.13 breaks the graph there, or ends in an error."""
    values = [tensor("i", (), "int64"), tensor("k", ("3",), "int64"), tensor("m", ("4",), "bool"), tensor("x")]
    advice = on_break(broken_at(f"def f(x, i, k, m, n, names, counts):\n    {line}\n", 2, "GB0033",
                                "Data dependent operator", context="aten._local_scalar_dense.default", values=values))
    assert advice.change.startswith(change)


@pytest.mark.parametrize(("line", "values", "expected"), [
    ("y = x / x.max().item()", [("x", ("4",), "float32")], "y = x / x.max().detach()"),
    ("x -= float(x.mean())", [("x", ("4",), "float16")], "x -= x.mean().detach()"),
    ("y = n - x.mean().item()", [("x", ("4",), "float32"), ("n", ("4",), "int64")], "y = n - x.mean().detach()"),
    ("y = n - x.mean().item()", [("x", ("4",), "float64"), ("n", ("4",), "int64")], ""),  # (gives float32)
    ("y = h * x.mean().item()", [("x", ("4",), "float32"), ("h", (), "float16")], ""),
    ("y = x / x.max().item()", [("x", ("4",), "int64")], ""),
    ("y = x / x.max().item() + z.item()", [("x", ("4",), "float32")], ""),
    ("y = p / x.max().item()", [("x", ("4",), "float32")], ""),
])
def test_a_number_becomes_its_tensor_where_that_gives_the_same_type(line, values, expected):
    advice = on_break(broken_at(f"def f(x, n, h, z, p):\n    {line}\n", 2, "GB0124", "Unsupported Tensor.item() call",
                                values=[tensor(name, shape, dtype) for name, shape, dtype in values]))
    assert (advice.change == f"write `{expected}`") if expected else advice.rule == "capture_scalar_outputs"


@pytest.mark.parametrize(("line", "expected"), [
    ("d = (boxes[i] - boxes[1:]).abs()", "d = (boxes[i.view(1)][0] - boxes[1:]).abs()"),
    ("d = -boxes[i]", "d = -boxes[i.view(1)][0]"),
    ("boxes[i].add_(1)", ""), ("d = boxes[i]", ""), ("boxes[i] = 0", ""), ("d = names[i] + 1", ""),
    ("d = boxes[m] + 1", "")])
def test_an_item_that_an_element_chooses_is_an_operand(line, expected):
    """Elsewhere the copy may be told from the view that it is in the program."""
    values = [tensor("boxes", ("4", "4")), tensor("i", (), "int64"), tensor("m", (), "bool")]
    advice = on_break(broken_at(f"def f(boxes, i, m, names):\n    {line}\n", 2, "GB0033", "Data dependent operator",
                                context="aten._local_scalar_dense.default", values=values))
    assert (advice.change == f"write `{expected}`") if expected else advice.rule != "element"


def none_at(text, line, where="/home/a/model.py"):
    place = SourceLocation(where, line, "f", text.splitlines()[line - 1])
    context = "raised exception TypeError(\"'NoneType' object is not subscriptable\")"
    broken = GraphBreak(CompileId(0, 0), "Observed exception", context=context, registry_id="GB0088", stack=(place,),
                        skips_function=True)
    return Sources([SourceFile(where, text)]).site(broken)


def test_an_argument_that_is_none_is_named_also_in_a_library():
    text = "def f(self, x, mask=None):\n    return x * mask[:, None]\n"
    for where in ("/home/a/model.py", "/usr/lib/python3/site-packages/models/a.py"):
        assert "pass `mask`" in on_break(none_at(text, 2, where)).change
    assert on_break(none_at("def f(x):\n    y = g()\n    return x * y[0]\n", 3)).rule == "raise"


def test_a_method_of_a_library_that_raises_an_exception_is_not_left_out():
    """T5 without ``decoder_start_token_id``: in plain Python it raises the same."""
    text = "class Net(Module):\n    def embed(self, x):\n        return x + self.config.missing\n"
    where = SourceLocation("/usr/lib/site-packages/models/net/__init__.py", 3, "embed", "return x + self.config.missing")
    broken = GraphBreak(CompileId(0, 0), "Observed exception", context="raised exception AttributeError()",
                        registry_id="GB0088", stack=(where,), skips_function=True, depth=1)
    assert on_break(Sources([SourceFile(where.filename, text)]).site(broken)) is None


def test_a_method_of_a_library_that_torch_gives_up_is_left_out():
    text = "class Net(Module):\n    def embed(self, xs):\n        for x in xs:\n            if x > 0:\n                g(x)\n"
    where = SourceLocation("/usr/lib/site-packages/models/net/__init__.py", 4, "embed", "if x > 0:")
    for skips, depth in ((True, 1), (False, 1), (True, 2)):
        broken = GraphBreak(CompileId(0, 0), "Data-dependent branching", registry_id="GB0170", stack=(where,),
                            skips_function=skips, depth=depth)
        advice = on_break(Sources([SourceFile(where.filename, text)]).site(broken))
        assert (advice is not None) == (skips and depth == 1)
        if advice is not None:
            assert "`Net.embed = torch.compiler.disable(Net.embed)`" in advice.change
            assert "`from models.net import Net`" in advice.change


def exception(place, skips=True):
    return GraphBreak(CompileId(0, 0), "Observed exception", registry_id="GB0088", stack=(place,), skips_function=skips,
                      context="raised exception TypeError(\"'NoneType' object is not subscriptable\")")


def test_an_exception_has_its_advice_wherever_it_comes_out():
    text = "def f(x, mask=None):\n    return x * mask[0]\ndef g(x):\n    try:\n        return f(x)\n    finally:\n        done()\n"
    path = "/usr/lib/site-packages/models/a.py"
    compilations = tuple(Compilation(CompileId(n, 0), outcome="skipped", breaks=(exception(SourceLocation(
        path, line, "", text.splitlines()[line - 1])),)) for n, line in enumerate((7, 2)))
    adviser = Adviser(RunIndex(Capture(compilations=compilations, sources=(SourceFile(path, text),))))
    assert [adviser.on_lost(each) for each in compilations] == [["pass `mask` at each call: it is `None` here"]] * 2


def test_what_made_a_whole_function_fail_is_read_from_the_failure():
    text = "def f(x):\n    print(x.shape, sep='')\n    return x\n"
    reason = ("Failed to trace builtin operator\n  Explanation: Dynamo does not know how to trace builtin operator "
              "`print` with argument types ['Size', 'str'] (has_kwargs True)\n\n For more details about this graph "
              "break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html")
    failed = Compilation(CompileId(0, 0), outcome="failed", failure=Failure(
        "Unsupported", reason, SourceLocation("/home/a/model.py", 2)))
    adviser = Adviser(RunIndex(Capture(compilations=(failed,), sources=(SourceFile("/home/a/model.py", text),))))
    assert "print outside of what is compiled" in adviser.on_lost(failed)[0]


@pytest.mark.parametrize(("line", "reason", "context", "change", "why"), [
    ("print(f'{n:.3f}')", "BUILD_STRING type error", "SymNodeVariable()",
     "write `print('{:.3f}'.format(n))`, and set", "an f-string needs the value"),
    ("self.last = f'{{{n!r}}} {n:{width}}'", "BUILD_STRING type error", "SymNodeVariable()", None, "an f-string needs"),
    ("self.last = f'{{{n!r}}}'", "BUILD_STRING type error", "SymNodeVariable()",
     "write `self.last = '{{{!r}}}'.format(n)`", "an f-string needs"),
    ("self.log.append(f'{n}')", "BUILD_STRING type error", "SymNodeVariable()",  # (one more version for each text)
     "return what the text shows, and do `self.log.append(f'{n}')` where `f` is called", "an f-string needs"),
    ("raise ValueError(f'{n}')", "BUILD_STRING type error", "SymNodeVariable()",  # (the raise breaks the graph, too)
     "test for it before the call of `f`", "an f-string needs"),
    ("self.last = 'at %d' % n", "Observed exception", PERCENT, "format the text with `.format(...)`", "`%` needs"),
    ("self.last = a % n", "Observed exception", "raised exception TypeError(\"no\")",
     "if this line raises TypeError in plain Python, too: keep", "Observed exception"),
])
def test_a_text_of_a_number_that_torch_keeps_open(line, reason, context, change, why):
    text = f"def f(self, n, width):\n    {line}\n"
    place = SourceLocation("/home/a/model.py", 2, "", f"    {line}")
    broken = GraphBreak(CompileId(0, 0), reason, stack=(place,), context=context)
    advice = on_break(Sources([SourceFile(place.filename, text)]).site(broken))
    assert advice is None if change is None else advice.change.startswith(change)
    assert cause(broken).startswith(why)


@pytest.mark.parametrize("way_out, expected", [
    ("break", "only together with a change of line 4 (`rows.numel() == 0`), which breaks the graph next: set "
     "`torch._dynamo.config.capture_dynamic_output_shape_ops = True`"),
    ("continue", "compile what follows the test `rows.numel() == 0` in a turn of the loop at line 2: a function of its own "
     "with `@torch.compile`, called in the loop; this line, the test and `f` itself stay in plain Python")])
def test_a_function_that_is_given_up_is_told_where_it_breaks_next(way_out, expected):
    text = "def f(x, parts):\n    for part in parts:\n        rows = torch.where(x)[0]\n        if rows.numel() == 0:\n" \
           f"            {way_out}\n        x = part(rows)\n    return x\n"
    line = SourceLocation("/home/a/model.py", 3, "", text.splitlines()[2])
    given_up = Compilation(CompileId(0, 0), outcome="skipped", breaks=(GraphBreak(
        CompileId(0, 0), "Dynamic shape operator", registry_id="GB0036", stack=(line,), skips_function=True,
        explanation="Operator `aten.nonzero.default`'s output shape depends on input Tensor data."),))
    adviser = Adviser(RunIndex(Capture(compilations=(given_up,), sources=(SourceFile(line.filename, text),))))
    assert adviser.on_lost(given_up) == [expected]


@pytest.mark.parametrize(("first", "ends"), [
    ("best = int(scores.argmax())", "; first do what is advised at `m.py:2`: the setting is for the whole program, which may "
     "end in an error or another result there"),
    ("best = len(scores)", ""),
])
def test_a_setting_for_the_whole_program_waits_for_the_line_that_needs_the_number(first, ends):
    text = f"def f(scores, x):\n    {first}\n    top = float(x.max())\n    return x * SCALES[best] * top\n"
    breaks = [GraphBreak(CompileId(0, 0), "Unsupported Tensor.item() call with capture_scalar_outputs=False",
                         registry_id="GB0124", depth=1, stack=(SourceLocation("m.py", line, "f", text.splitlines()[line - 1]),))
              for line in (2, 3) if "len" not in first or line == 3]
    compilation = Compilation(CompileId(0, 0), breaks=tuple(breaks))
    adviser = Adviser(RunIndex(Capture(compilations=(compilation,), sources=(SourceFile("m.py", text),))))
    assert adviser.change_on(breaks[-1]).endswith(f"a call that takes no symbol in its place{ends}")


def test_no_setting_makes_a_symbol_in_the_forward_of_an_autograd_function():
    """Torch 2.13 ends in an error there: the symbol is in none of the outputs."""
    text = "class F(torch.autograd.Function):\n    def forward(ctx, x):\n        ctx.n = x.sum().item()\n        return x * ctx.n\n"
    place = SourceLocation("m.py", 3, "forward", text.splitlines()[2])

    def change(more):
        reason = f"Unsupported Tensor.item() call with capture_scalar_outputs=False{more}"
        broken = GraphBreak(CompileId(0, 0), reason, registry_id="GB0124", depth=1, stack=(place,))
        compilation = Compilation(CompileId(0, 0), breaks=(broken,))
        return Adviser(RunIndex(Capture(compilations=(compilation,), sources=(SourceFile("m.py", text),)))).change_on(broken)

    assert "capture_scalar_outputs" in change("")
    assert change(" Higher Order Operator: autograd.Function") == ""


@pytest.mark.parametrize(("test", "is_advised"), [("not mask.any()", False), ("mask is None", True), ("deep", True)])
def test_no_setting_is_advised_for_a_library_that_tests_a_tensor_next(test, is_advised):
    """torch 2.13's ``trunc_normal_`` draws again until no element is outside."""
    text = f"def draw(t, a, deep):\n    low = t.max().item()\n    mask = t < low\n    if {test}:\n        return a\n    return mask\n"
    where = SourceLocation("/usr/lib/site-packages/models/init.py", 2, "draw", "low = t.max().item()")
    broken = GraphBreak(CompileId(0, 0), "Unsupported Tensor.item() call with capture_scalar_outputs=False",
                        registry_id="GB0124", depth=1, stack=(where,))
    assert (on_break(Sources([SourceFile(where.filename, text)]).site(broken)) is not None) == is_advised


@pytest.mark.parametrize("line", [4, 3])
def test_what_torch_cannot_reconstruct_goes_with_the_break_of_its_line(line):
    text = "def update(v):\n    return v.item()\ndef log(x):\n    add(update(x))\n"
    outer = SourceLocation("m.py", line, "log", text.splitlines()[line - 1])
    item = GraphBreak(CompileId(0, 0), "Unsupported Tensor.item() call with capture_scalar_outputs=False", depth=2,
                      registry_id="GB0124", stack=(SourceLocation("m.py", 4, "log"), SourceLocation("m.py", 2, "update")))
    failed = GraphBreak(CompileId(0, 0), "Reconstruction failure", registry_id="GB0092", depth=1, stack=(outer,))
    compilation = Compilation(CompileId(0, 0), outcome="skipped", breaks=(item, failed))
    adviser = Adviser(RunIndex(Capture(compilations=(compilation,), sources=(SourceFile("m.py", text),))))
    assert adviser.change_on(failed) == (adviser.change_on(item) if line == 4 else "")
    assert adviser.change_on(item).startswith("set ")


def test_hints_that_ask_for_a_report_come_last():
    assert in_order(["Please report an issue to PyTorch.", "Use x.", "Use y."]) == [
        "Use x.", "Use y.", "Please report an issue to PyTorch."]


def test_an_unknown_break_has_no_advice():
    text = "def f(x):\n    return x\n"
    assert on_break(broken_at(text, 2, registry_id="GB9999", reason="Something new")) is None


def test_each_fact_that_a_sentence_names_is_known():
    named = {field for rule in RULES for sentence in (rule.change, rule.why, rule.cost, rule.next_break)
             for _, field, _, _ in string.Formatter().parse(sentence) if field}
    assert named <= NAMED.keys() and NAMED.keys() - named <= {"line"}


def test_each_event_is_of_a_row():
    assert {event for rule in RULES for event in rule.events.split()} - {"*"} == {
        kind.event for kind in KINDS.values()} - {""}


def test_a_logger_may_have_any_name():
    advice = on_break(broken_at("def f(x):\n    log.info('x')\n", 2, registry_id="GB0291",
                                context="method: <Logger a (WARNING)>.info, args: []"))
    assert "`torch._dynamo.config.ignore_logging_functions.add(logging.Logger.info)`" in advice.change


TURN = "def f(x, out, total):\n    for c in x:\n        rows = g(c)\n        if {}:\n            continue\n        {}\n    return total\n"


@pytest.mark.parametrize("rest", [
    "out.append(x[rows])", "total += x[rows].mean()", "total = x[rows].max()", "g(rows)", "y = x[rows]\n    y.add_(1)",
    "total += 1", "total += x[rows].sum()\n        total += 1", "total += g(x[rows]).sum()", "out[rows] = x[rows].max()"])
def test_what_may_do_something_for_no_elements_is_left_in_its_branch(rest):
    advice = on_break(broken_at(TURN.format("rows.numel() == 0", rest), 4))
    assert advice.rule == "rest" and "the test `rows.numel() == 0` and `f` itself stay in plain Python" in advice.change


def test_a_loop_that_the_data_ends_is_left_in_plain_python():
    text = "def f(x):\n    for n in x:\n        if n.sum() > 1:\n            {}\n    return x\n"
    advice = on_break(broken_at(text.format("break"), 3))
    assert advice.rule == "turn" and "the loop at line 2" in advice.change and not advice.is_mechanical
    assert on_break(broken_at(text.format("print(x)"), 3)).leaves
    number = NamedValue("t", "float")
    text = "def f(x, t):\n    while (x * t).norm() > 1:\n        t *= 0.5\n    return t\n"
    assert on_break(broken_at(text, 2, values=[number])) is None  # (a turn has nothing to compile)


# --- edits, patches, results ------------------------------------------------------------------------------
def test_edits_that_touch_are_refused():
    edits = [Edit("a", 1, 2, ("x",)), Edit("a", 2, 3, ("y",))]
    assert edited("1\n2\n3\n", edits) is None
    assert edited("1\n2\n3\n", [Edit("a", 1, 1, ()), Edit("a", 3, 3, ("x", "y"))]) == "2\nx\ny\n"


@pytest.mark.parametrize(("line", "registry_id", "reason", "behind", "named"), [
    ("n = int(x.sum())", "GB0124", "Unsupported Tensor.item() call", "if n in stop:\n        return None", "`n in stop`"),
    ("n = int(x.sum())", "GB0124", "Unsupported Tensor.item() call", "if n is None:\n        return None", ""),
    ("n = int(x.sum())", "GB0124", "Unsupported Tensor.item() call", "n = 3\n    if n > 1:\n        return None", ""),
    ("n = int(token)", "GB0124", "Unsupported Tensor.item() call", "if n in stop:\n        return None", ""),
    ("a, b = torch.where(x)", "GB0036", "Dynamic shape operator", "if a.numel() == 0:\n        return None", "`a.numel() == 0`"),
    ("a, b = torch.where(x)", "GB0036", "Dynamic shape operator", "y = 1 if len(b) else 2", "`len(b)`"),
    ("a = x.nonzero()", "GB0036", "Dynamic shape operator", "n = len(a)\n    if n < 3:\n        return None", "`n < 3`"),
    ("a, b = torch.where(x)", "GB0036", "Dynamic shape operator", "if a.requires_grad:\n        return None", "")])
def test_the_test_that_breaks_the_graph_next_is_named(line, registry_id, reason, behind, named):
    text = f"def f(x, token, stop):\n    {line}\n    {behind}\n    return 1\n"
    advice = on_break(broken_at(text, 2, registry_id, reason, values=[tensor("token", (), source="L['token']")]))
    if named:
        assert advice.cost.endswith(f" ({named}) depends on it, and breaks the graph next")
    else:
        assert "line 3" not in advice.cost


def test_a_test_of_what_a_setting_lets_torch_trace_breaks_the_graph():
    """What the cost of the settings says is so."""
    torch = pytest.importorskip("torch")

    def number(token):
        value = int(token * 2)
        if value in (3, 4):
            return None
        return token * 2

    def rows(x):
        (found,) = torch.where(x > 0)
        if found.numel() == 0:
            return x
        return x[found]

    settings = torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True)
    for function, value in ((number, torch.tensor(5)), (rows, torch.ones(3))):
        torch._dynamo.reset()
        with settings:
            assert torch._dynamo.explain(function)(value).graph_break_count == 1


def test_a_recompile_that_is_refused_at_the_limit_counts_once():
    failed = GuardFailure(CompileId(0, 0), "", "L['x']", "3", "4", subject="x.size()[0]")
    counted = Outcome(Capture(compilations=tuple(
        Compilation(CompileId(0, number), outcome=outcome, guard_failures=(failed,) * (number > 0))
        for number, outcome in enumerate(("compiled", "compiled", "limit")))))
    assert (counted.recompiles, counted.skipped) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["print_open_size", "print_open_size_set"])
def test_what_holds_an_open_size_is_formatted_and_printed_after_the_graph(name, tmp_path):
    found = fix_programs.search(CASES[name], tmp_path)
    assert [advice.rule for advice in found.taken] == ["print"] and not found.after.problems
    assert ".format(tuple(y.shape))" in found.taken[0].change and not found.after.difference(found.before)


@pytest.mark.parametrize("line, types, change", [
    ("print('n', tuple(y.shape))", "['str', 'tuple']", "print('n', '{}'.format(tuple(y.shape)))"),
    ("print(y.shape[0], 3)", "['int', 'int']", "print('{}'.format(y.shape[0]), 3)"),
    ("print(y, thing)", "['Tensor', 'Thing']", "print(y, str(thing))")])
def test_arguments_of_print_that_may_hold_open_sizes_are_formatted(line, types, change):
    advice = on_break(broken_at(
        f"def f(y, thing):\n    {line}\n", 2, registry_id="GB0059", reason="Failed to trace builtin operator",
        explanation=f"Dynamo does not know how to trace builtin operator `print` with argument types {types} (has_kwargs"))
    assert f"write `{change}`" in advice.change


@pytest.mark.parametrize(("lines", "taken"), [
    (["return x[x > 0].tolist()"], True),
    (["return x[~m].tolist()"], True),
    (["return torch.unique(x).tolist()"], True),
    (["return torch.where(m)[0].tolist()"], True),
    (["return x.nonzero().flatten().tolist()"], True),
    (["a, b = x.nonzero(as_tuple=True)", "return a.tolist()"], True),
    (["ids = torch.unique_consecutive(x)", "return ids.tolist()"], True),
    (["return x.nonzero().amax(0).tolist()"], False),
    (["return WORDS.index(x.item()).tolist()"], False),
    (["return torch.where(m, x, 0).tolist()"], False),
    (["ids = x.nonzero()", "ids = m", "return ids.tolist()"], False),
    (["ids = x.nonzero().sum(0)", "return ids.tolist()"], False),
])
def test_numbers_of_which_only_the_data_tells_how_many_are_taken_outside(lines, taken):
    """With a symbol for the size torch 2.13 raises an error at ``.tolist()``."""
    text = "\n    ".join(["def f(x, m):", *lines]) + "\n"
    advice = advice_at(text, 2, "Dynamic shape operator", "GB0036")
    assert (advice is not None and advice.rule == "numbers_of_size") == taken
