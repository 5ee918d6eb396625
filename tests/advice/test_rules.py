"""Each rule's change works: a program with the trouble is run before and after it, by the search of ``depyf fix``."""

import ast
import dataclasses

import pytest

pytest.importorskip("torch")

import fix_programs

from depyf.advice import RULES, Sources, on_break
from depyf.advice.made import made_for
from depyf.advice.model import Edit, edited
from depyf.advice.tensor_indices import _Elements, in_steps
from depyf.fixing.outcome import Outcome
from depyf.fixing.patch import with_settings
from depyf.records.model import (
    Capture,
    Compilation,
    CompileId,
    Failure,
    GraphBreak,
    GuardFailure,
    SourceFile,
    SourceLocation,
)
from depyf.views.advice import Adviser, in_order
from depyf.views.causes import cause
from depyf.views.run_index import RunIndex

CASES = {case.name: case for case in fix_programs.cases()}
IN_WORDS = {name: case for name, case in CASES.items() if case.after}
#: Rules whose change is in words, or differs on generated calls, so that `depyf fix` does not take it.
NOT_TAKEN = {"unbacked", "numbers_as_indices", "index", "equal", "elements_as_indices", "deepcopy", "counter"}
#: The first program of each rule.
OF_RULE = {case.rule: case for case in reversed(CASES.values()) if not case.after and case.rule not in {
    "none", "several", "limit", *NOT_TAKEN}}

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
    assert rule == "unbacked" or not found.after.problems  # (a size that changes is compiled once more for all sizes)
    assert rule in [advice.rule for advice in found.taken]
    assert found.after.same_results(found.before)
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


@pytest.mark.slow
@pytest.mark.parametrize(("name", "told"), [
    ("number_as_index_later",
     ", and index in steps: `counts[place][0]` for `counts[place, 0]`, `counts.select(1, place)` for `counts[:, place]`"),
    ("number_as_index_of_a_list",
     "; where `scales` is a list, make it a tensor first: with a symbol for its index torch raises an error at line 10 "
     "(`scales[place - 1]`); so also where it is a dictionary, for which the graph breaks there"),
])
def test_where_the_setting_for_numbers_makes_torch_fail_is_said(name, told, tmp_path):
    """With the setting alone the program ends in an error (torch 2.13)."""
    setting = "torch._dynamo.config.capture_scalar_outputs = True"
    case = CASES[name]
    found = outcome(case, case.before, tmp_path)
    sources = Sources(found.capture.sources)
    (advice,) = [on_break(sources.site(broken)) for each in found.capture.compilations for broken in each.breaks]
    assert advice.change == f"set `{setting}`{told}"
    assert outcome(case, with_settings(case.before, [setting]), tmp_path).status


@pytest.mark.parametrize(("line", "expected"), [
    ("c[i, j] += 1", "c[i][j] += 1"),
    ("c[0, i] = c[i, 0, :2]", "c[0][i] = c[i][0, :2]"),
    ("c[:, i]", "c.select(1, i)"),
    ("c[:, i] = 1", "c.select(1, i)[:] = 1"),
    ("c[:, :, i, ::2]", "c.select(2, i)[:, :, ::2]"),
    ("c[:, t.max().item(), int(t[0])]", "c.select(1, t.max().item()).select(1, int(t[0]))"),
    ("c[i, ..., None]", "c[i][..., None]"),
    ("c[:, i - 1] + c[2 * i, 0]", "c.select(1, i - 1) + c[2 * i][0]"),
    ("c[i] + c[:, 0] + c[:i, 1]", "c[i] + c[:, 0] + c[:i, 1]"),
    *((line, None) for line in ("c[k, i]", "c[..., i]", "c[None, i]", "c[1:, i]", "c[t[:1], i]")),
])
def test_numbers_of_tensors_stand_alone_as_indices(line, expected):
    changed = in_steps(ast.parse(line).body[0], {"i", "j"})
    assert expected == (None if changed is None else ast.unparse(changed))


def advice_at(text, line, reason, registry_id=""):
    """The advice on a break of torch's at a line of a program, in the compiled function."""
    place = SourceLocation("m.py", line, "f", text.splitlines()[line - 1])
    broken = GraphBreak(CompileId(0, 0), reason, registry_id=registry_id, stack=(place,), depth=1)
    return on_break(Sources([SourceFile("m.py", text)]).site(broken))


def test_a_symbol_that_torch_refused_as_an_index_stands_alone():
    """With the setting that torch advises the program ends in an error there (torch 2.13)."""
    refused = ("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
               "(got SymInt)")
    advice = advice_at("def f(x, y):\n    i = y.argmax().item()\n    return x[:, i - 1]\n", 3, refused)
    assert advice.change == "write `return x.select(1, i - 1)`"
    assert advice_at("def f(x, i):\n    return x[:, i]\n", 2, refused) is None


@pytest.mark.parametrize(("lines", "told"), [
    (["p.step(y.item())"], "run `p.step(y.item())` where `f` is called, and have that return `y`"),
    (["p.step(y.item())", "return y"], "run `p.step(y.item())` where `f` is called"),
    (["p.step(y.item())", "return y + 1"], "run `p.step(y.item())` where `f` is called, and have that return `y`"),
    (["end = p.step(loss=y.item())", "return y, end"], "run `end = p.step(loss=y.item())` where `f` is called"),
    (["p.step(x.item())"], "run `p.step(x.item())` where `f` is called"),
    (["end = p.step(y.item())", "return y + end"], None),
    (["end = p.step(y.item())", "if end:", "    y = y + 1", "return y"], None),
    (["p.step(y.item())", "y = y + 1", "return y"], None),
    (["n = y.item()", "p.step(n)", "return y, n"], "run `p.step(y.item())` where `f` is called"),
    (["p.step(y.item())", "y.add_(1)", "return y"], None),
    (["p.step(y.item())", "return p.bad"], None),
    (["if x is not None:", "    p.step(y.item())"], None),
    (["q.step(y.item())"], None),  # (of which the file does not tell)
    (["p.step(y)"], None),
    (["if q:", "    return y", "p.step(y.item())", "return y"], None),
    (["n = y.item()", "y = y / 4", "p.step(n)", "return y"], None),
    (["p.step(y.item())", "y[0] = 5", "return y"], None),
    (["p.step(y.item(), lambda: y)", "return y"], None),
])
def test_a_decision_of_which_the_rest_needs_nothing_is_made_outside(lines, told):
    text = "\n    ".join(["def f(x, p, q):", "y = x.sum()", *lines])
    classes = "\n".join(["class P:", "    def step(self, loss):", "        self.bad = 1 if loss > 1 else 0"])
    at = next(number for number, line in enumerate(text.splitlines(), 1) if "step(" in line)
    reason = "Could not guard on data-dependent expression" if "n = " in text else "Unsupported Tensor.item() call"
    advice = advice_at(f"{text}\n{classes if 'p.step' in text else ''}\n", at, reason)
    assert (None if advice is None or advice.rule != "decision" else advice.change) == told


@pytest.mark.parametrize("depth", [0, 2])
def test_where_torch_does_not_tell_the_compiled_function_no_call_is_moved_out_of_it(depth):
    """(``depth`` is 0 where it is not known, as in older dumps.)"""
    text = "def f(x, p):\n    p.step(x.item())\n    return x\n"
    place = SourceLocation("m.py", 2, "f", "p.step(x.item())")
    broken = GraphBreak(CompileId(0, 0), "Could not guard on data-dependent expression", stack=(place,), depth=depth)
    site = Sources([SourceFile("m.py", text)]).site(broken)
    assert site.compiled_site is None and on_break(site) is None


@pytest.mark.parametrize(("lines", "search"), [
    (["name = f'user_{int(user[0])}'", "seen[name] = seen.get(name, 0) + 1"], "seen.get(name, 0)"),
    (["n = int(user[0])", "name = 'user_{}'.format(n)", "return name in seen"], "name in seen"),
    (["n = int(user[0])", "seen[f'user_{n}'] += 1"], "seen[f'user_{n}']"),
    (["y = seen[f'user_{user.item()}']"], "seen[f'user_{user.item()}']"),
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


@pytest.mark.parametrize(("lines", "told"), [
    (["if p.numel() > 0:", "    loss = loss + p.mean()", "return loss"],
     "the mean of what `t > 0` chooses of `value` is `torch.where(t > 0, value, 0).sum() / (t > 0).sum().clamp(min=1)`"),
    (["if len(p) == 0:", "    return loss * 0", "return p.sum()"],
     "the sum of what `t > 0` chooses of `value` is `torch.where(t > 0, value, 0).sum()`"),
    (["if p.numel() == 0:", "    return None", "return p.mean()"], None),  # (the mask gives 0)
    (["if p.numel() > 0:", "    return p.mean()", "else:", "    return x.abs().max() + 5"], None),
    (["if p.numel() > 0:", "    loss = F.cross_entropy(p, p)", "return loss"], None),
    (["t = t * 2", "if p.numel() > 0:", "    loss = loss + p.mean()", "return loss"], None),  # (of another mask)
    (["assert p.numel() > 0", "return p.mean()"], None),
])
def test_a_mask_takes_the_place_of_what_it_chooses_where_that_is_the_same(lines, told):
    text = "\n    ".join(["def f(x, t, loss):", "p = x[t > 0]", *lines])
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "if " in each or "assert" in each)
    advice = advice_at(text + "\n", line, "Data-dependent branching", "GB0170")
    if told is None:
        assert advice is None or advice.rule != "mask"
    else:
        assert f"{told}, and 0 where that is nothing" in advice.change


UNKNOWN = "Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1))"


@pytest.mark.parametrize(("lines", "line", "rule"), [
    ("for k in t.tolist():\n        if k in seen:\n            continue", 3, "membership"),
    ("seen = set()\n    for k in t.tolist():\n        if k in seen:\n            continue\n        seen.add(k)", 4, "rest"),
    ("k = t.item()\n    x = x + seen[k]", 3, "item"), ("k = t.item()\n    y = k in seen", 3, "membership"),
    ("k = t.item()\n    seen = {}\n    seen[k] = x * k\n    x = x + seen[k]", 5, ""),
    ("k = t.item()\n    seen[k] = x * k\n    x = x + seen[k]", 4, ""),
    ("k = t.item()\n    seen[k] = x * k", 3, "key"), ("k = t.item()\n    y = x + 1\n    seen[k] = y * k", 4, ""),
    ("k = t.item()\n    seen = {}\n    seen[k] = x * k", 4, ""), ("k = t.item()\n    seen.add(k)", 3, "key"),
    ("k = t.item()\n    seen = set()\n    seen.add(k)", 4, ""), ("k = t.item()\n    self.seen.add(k)", 3, "key"),
    ("k = t.item()\n    seen.append(x)\n    y = seen[k]", 4, ""), ("k = t.item()\n    seen.append(k)\n    y = k in seen", 4, ""),
    ("k = t.item()\n    self.seen.update(x)\n    y = self.seen[k]", 4, ""), ("k = t.item()\n    y = self.seen[k]", 3, "item"),
])
def test_what_the_function_itself_fills_is_no_tensor_of_before_the_call(lines, line, rule):
    advice = advice_at(f"def f(self, x, t, seen):\n    {lines}\n    return x\n", line, UNKNOWN)
    assert (advice.rule if advice is not None else "") == rule


@pytest.mark.parametrize(("line", "expected"), [
    ("c[t[0]]", "c[t[0].view(1)][0]"),
    ("c[t[0], 1] = d[t[i]]", "c[t[0].view(1), 1] = d[t[i].view(1)][0]"),
    ("c[x.shape[0], t[0]] += 1", "c[x.shape[0], t[0].view(1)] += 1"),
    ("c[t[0]][p[0]]", "c[t[0].view(1)][0][p[0].view(1)][0]"),
    ("c[i, t] + 1", "c[i, t] + 1"),
    *((line, None) for line in ("c[t[0]][p[0]] = 1", "c[t[0], i]", "c[t[p[0]]]", "c[t[0] + 1, t[0]]")),
])
def test_elements_of_tensors_become_tensors_of_one_element(line, expected):
    elements = _Elements()
    changed = elements.visit(ast.parse(line).body[0])
    assert expected == (None if elements.is_refused else ast.unparse(changed))


@pytest.mark.slow
def test_more_versions_are_made_where_the_limit_is_raised(tmp_path):
    case = CASES["many_strings"]
    raised = with_settings(case.before, ["torch._dynamo.config.recompile_limit = 64"])
    before, after = outcome(case, case.before, tmp_path), outcome(case, raised, tmp_path)
    assert (before.skipped, after.skipped) == (1, 0)
    assert after.same_results(before)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.rule == "none"])
def test_nothing_is_taken_that_changes_results(name, tmp_path):
    found = fix_programs.search(CASES[name], tmp_path)
    assert found.after.same_results(found.before)


def test_each_rule_for_breaks_has_a_program():
    """(What libraries set up at their first call was tried by hand: it needs a model of a library.)"""
    proposing = {rule.propose.__name__ for rule in RULES}
    assert {"on_print", "on_logger", "on_context", "on_generator"} <= proposing
    for setting in ("capture_scalar_outputs", "capture_dynamic_output_shape_ops", "trace_autograd_ops", "allow_rnn",
                    "enable_trace_load_build_class", "graph_break_on_nn_param_ctor"):
        assert setting in OF_RULE


# --- without torch --------------------------------------------------------------------------------------
def broken_at(text, line, registry_id="GB0170", reason="Data-dependent branching", explanation="",
              context=""):
    where = SourceLocation("/home/a/model.py", line, "f", text.splitlines()[line - 1])
    broken = GraphBreak(CompileId(0, 0), reason, explanation, registry_id=registry_id, stack=(where,), context=context)
    return Sources([SourceFile(where.filename, text)]).site(broken)


def after(text, line, **more):
    advice = on_break(broken_at(text, line, **more))
    return advice and edited(text, advice.edits)


@pytest.mark.parametrize(("frame", "line", "in_graph"), [
    ("step", "    loss = model(x).sum()\n    loss.backward()", True),
    ("torch_dynamo_resume_in_step_at_9", "    loss = model(x).sum()\n    loss.backward()", False),
    ("step", "    x.backward()", False),
    ("step", "    x = model(x).sum()\n    x.backward()", True),
    ("step", "    (x / 4).backward()", False),
    ("step", "    x = x / 4\n    x.backward()", False),
    ("step", "    loss = x + model(x).sum()\n    loss.backward()", False),
    ("step", "    loss = x.sum()\n    loss.backward()", False),
    ("step", "    x[0].backward()", False),
    ("step", "    LOSS.backward()", False),
    ("step", "    scaler.scale(x).backward()", False),
    ("step", "    loss = self.criterion(model(x), y)\n    loss.backward()", True),
])
def test_a_backward_pass_is_traced_only_with_what_computes_the_loss(frame, line, in_graph):
    """Else torch 2.13 traces nothing, so that parameters have no gradients, and raises no error."""
    text = f"def step(x):\n{line}\n"
    place = SourceLocation("/home/a/model.py", text.count("\n"), "step", "loss.backward()")
    broken = GraphBreak(CompileId(0, 0), "Unsupported Tensor.backward() call", registry_id="GB0123", stack=(place,))
    advice = on_break(Sources([SourceFile(place.filename, text)]).site(broken, frame))
    assert advice.rule == ("trace_autograd_ops" if in_graph else "backward")
    assert ("call `.backward()` in plain Python" in advice.change) != in_graph
    assert not advice.settings, "no run shows that gradients are missing, where results do not depend on them"


def test_gradients_of_gradients_need_one_graph():
    line = "    grad, = torch.autograd.grad(score.sum(), x, create_graph=True)"
    advice = on_break(broken_at(f"def f(score, x):\n{line}\n", 2, registry_id="GB9186", reason="using"))
    assert advice.settings and "cannot be differentiated twice" in advice.why


@pytest.mark.parametrize(("line", "made"), [
    ("    x.requires_grad_()", False), ("    y = (x + 1).requires_grad_(True)", True),
    ("    x = x * 2\n    x.requires_grad_()", True),
])
def test_a_tensor_that_the_function_makes_cannot_be_passed_as_it_is(line, made):
    text = f"def f(x):\n{line}\n"
    advice = on_break(broken_at(text, text.count("\n"), registry_id="GB8985", reason="requires_grad_()"))
    assert advice.change.startswith("make this tensor" if made else "call `.requires_grad_()` on the tensor")


@pytest.mark.parametrize(("lines", "told"), [
    (["o.zero_grad()", "y = x * 2"], "before the call of `f`"),
    (["y = x * 2", "o.zero_grad()"], "after the call of `f`"),
    (["y = x * 2", "o.zero_grad()", "return y, 1"], "after the call of `f`"),
    (["y = x * 2", "o.zero_grad()", "y.backward()"], "out of `f`: before its call, if nothing on the lines above has to "
     "come first, or after it, if nothing on those below needs what it does"),
    (["if last:", "    o.zero_grad()"], "out of `f`, under the same condition (`last`): before its call, if"),
    (["if last:", "    pass", "elif x is None:", "    o.zero_grad()"], "condition (`not last` and `x is None`): before"),
    (["for p in o:", "    o.zero_grad()"], "out of what is compiled"),
    (["try:", "    y = x * 2", "except KeyError:", "    o.zero_grad()"], "move `o.zero_grad()` out of what is compiled"),
    (["if last:", "    return x", "y = x * 2", "o.zero_grad()", "return y"],
     "after the call of `f`, unless `f` ended before this line"),
    (["y = x * 2", "o.zero_grad(y)", "return y"], "after the call of `f`, and have that return `y`"),
    (["n = len(x)", "if n > 3:", "    o.zero_grad()"],
     "after the call of `f`, under the same condition (`n > 3`), and have that return `n`"),
    (["o.zero_grad(x)", "x = x * 2", "return x"], "before the call of `f`"),
    (["y = x * 2", "o.zero_grad(y)", "y = y + 1", "return y"], "divide `f` here"),
])
def test_a_call_that_torch_skips_keeps_its_order_and_condition(lines, told):
    """(``zero_grad()`` before a step that adds to gradients loses those of the step before.)"""
    text = "\n    ".join(["def f(x, o, last):", *lines]) + "\n"
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "zero_grad" in each)
    site = broken_at(text, line, registry_id="GB0008", reason="Attempted to inline function marked as skipped",
                     context="qualname: Optimizer.zero_grad, skip reason")
    assert told in on_break(site).change


HANDLED = """class Failed(ArithmeticError): pass
class Far(Failed): pass
def f(x):
    if x.any():
        raise {}("bad")
    return x
try:
    f(1)
except {}:
    pass
"""


@pytest.mark.parametrize("line, registry_id, context", [
    ("self.spent.append(time.perf_counter() - began)", "GB0007", "module: time, qualname: perf_counter, skip reason: ..."),
    ("late = time.monotonic() > self.deadline", "GB0007", "module: time, qualname: monotonic, skip reason: ..."),
    ("now = datetime.now()", "GB0156", "call_method UserDefinedClassVariable(<class 'datetime.datetime'>) now [] {}"),
    ("used = torch.cuda.memory_allocated()", "GB0208", "target: <function memory_allocated at 0x7f>")])
def test_what_tells_of_the_lines_before_it_is_read_around_the_call(line, registry_id, context):
    """Read before the call, a clock measures nothing."""
    advice = on_break(broken_at(f"def f(self, x, began):\n    {line}\n    return x\n", 2, registry_id, "", context=context))
    assert advice.rule == "reading" and "before and after the call of `f`, not in it" in advice.change


@pytest.mark.parametrize("line, operator, change", [
    ("return F.ctc_loss(x, y, n, m)", "aten._ctc_loss.Tensor", "have `f` return what `F.ctc_loss` is given, and call that outside"),
    ("self.ctc(x, y, n, m)", "aten._ctc_loss.default", "keep the line out of `f`"),
    ("torch.nonzero(x, out=y)", "aten.nonzero.out", "have `f` return what `torch.nonzero` is given"),
    ("y = x.nonzero()", "aten.nonzero.default", "set `torch._dynamo.config.capture_dynamic_output_shape_ops = True`"),
    ("y = boxes.nms(x)", "boxes.nms.default", "set `torch._dynamo.config.capture_dynamic_output_shape_ops = True`")])
def test_the_setting_for_open_sizes_is_named_where_torch_makes_a_symbol(line, operator, change):
    """Where it has no implementation that gives a symbol, the setting does nothing (GB0037)."""
    advice = on_break(broken_at(f"def f(self, x, y, n, m):\n    {line}\n", 2, "GB0036", "Dynamic shape operator",
                                f"Operator `{operator}`'s output shape depends on input Tensor data."))
    assert advice.change.startswith(change)


@pytest.mark.parametrize("lines, rule", [
    ("out, _ = self.rnn(x)", "allow_rnn"),
    ("packed = pack_padded_sequence(x, n)\n    out, _ = self.rnn(packed)", "packed"),
    ("out, _ = self.rnn(rnn.pack_sequence(x))", "packed"),
    ("packed = pack_padded_sequence(x, n)\n    out, _ = self.rnn(x)", "allow_rnn")])
def test_of_a_packed_sequence_nothing_is_traced(lines, rule):
    text = f"def f(self, x, n):\n    {lines}\n"
    advice = on_break(broken_at(text, len(text.splitlines()), "GB0014"))
    assert advice.rule == rule and advice.settings == (
        ("torch._dynamo.config.allow_rnn = True",) if rule == "allow_rnn" else ())
    assert "padded" in (advice.cost if rule == "allow_rnn" else advice.change)


def test_a_test_of_a_size_that_only_the_data_tells_is_told_in_the_users_words():
    text = "def f(x, parts):\n    for part in parts:\n        rows = torch.where(x)[0]\n        if rows.numel() == 0:\n" \
           "            continue\n        x = part(rows)\n    return x\n"
    reason = "Could not guard on data-dependent expression Eq(u0, 0) (unhinted: Eq(u0, 0)).  (Size-like symbols: u0)"
    place = SourceLocation("/home/a/model.py", 4, "", "        if rows.numel() == 0:")
    broken = GraphBreak(CompileId(0, 0), reason, stack=(place,))
    assert cause(broken) == "`rows.numel() == 0` depends on a number that only the data tells"
    advice = on_break(Sources([SourceFile(place.filename, text)]).site(broken))
    assert advice.change.startswith("compile what follows the test in a turn of the loop at line 2")
    elsewhere = GraphBreak(CompileId(0, 0), reason, stack=(dataclasses.replace(place, text="y = x.view(n)"),))
    assert cause(elsewhere) == "a decision depends on a number that only the data tells: `Eq(u0, 0)`"


def test_the_packing_of_a_batch_goes_with_the_packed_sequence():
    lines = "    packed = rnn.pack_padded_sequence(x, n.cpu())\n    out, _ = self.rnn(packed)\n"
    skipped = "Attempted to call function marked as skipped"
    explanation = "Dynamo developers have intentionally marked that the function `pack_padded_sequence` in file ..."
    advice = on_break(broken_at(f"def f(self, x, n):\n{lines}", 2, "GB0007", skipped, explanation))
    assert advice.rule == "packed"
    advice = on_break(broken_at(f"def f(self, x, n):\n{lines.replace('(packed)', '(x)')}", 2, "GB0007", skipped,
                                explanation))
    assert advice.rule == "skipped"


@pytest.mark.parametrize(("lines", "line", "change"), [
    ("    y = x + 1\n    n = zlib.crc32(y, 3)\n", 3, "divide `f` here: compile what comes before this line"),
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
    ("self.n += 1", "cond(self.n)", ["self.n"]), ("self.n += 1", "cond(self)", ["self"]),
    ("self.n += 1", "cond(self.m)", []), ("self.n += 1", "cond(other.n)", ["other.n"]),
    ("self.time = time.time()", "time.time()", []), ("self.lib = g", "self.lib.cond(p)", ["self.lib"]),
    ("d['k'] = 1", "cond(d['k'])", ["d"]), ("self.d[p].n = 1", "cond(self.d)", ["self.d"]),
    ("d['k'] = p[0]", "cond(p[0])", []), ("setattr(self, p, 1)", "cond(d.n)", ["d.n"]),
    ("setattr(self, p, 1)", "cond(p)", []), ("d.append(1)", "cond(d)", ["d"]), ("y = np.append(d, 1)", "np.cond(d)", []),
    ("y = d.pop()", "cond(len(d))", ["d"]), ("x.add_(1)", "cond(x.sum())", ["x"]), ("torch.relu_(x)", "torch.cond(1)", []),
    ("def cond(a): pass", "cond(p)", ["cond"]), ("import cond", "cond(p)", []), ("x = x + 1", "cond(x, p)", ["x"]),
    ("match p:\n        case [y, *z]: pass", "cond(y, z)", ["y", "z"]), ("pass", "cond(x, p, self.n)", []),
    ("pass", "d.pop()", []), ("(lambda y: y)(p)", "cond(y)", []),
])
def test_what_a_function_makes_or_changes_is_not_there_before_the_call(lines, read, expected):
    function = ast.parse(f"def f(self, x, p, d):\n    {lines}\n    return {read}\n").body[0]
    assert made_for(function.body[-1].value, function) == expected
    assert made_for(function.body[-1].value, function, before=2) == []


@pytest.mark.parametrize("before", ["self.n += 1", "d['k'] = 1\n    self.n = d", "setattr(self, 'n', 1)"])
def test_what_depends_on_an_attribute_that_the_function_sets_is_not_evaluated_before_it(before):
    text = f"def f(self, x, d):\n    {before}\n    if lib.cond(self.n) > 2:\n        x = x + 1\n    return x\n"
    advice = on_break(broken_at(
        text, text[:text.index("if lib")].count("\n") + 1, "GB0007", "Attempted to call function marked as skipped",
        "Dynamo does not know how to trace the builtin function `lib.cond`."))
    assert advice.change.startswith("divide `f` here") and "makes or changes `self.n`, which the call" in advice.why


@pytest.mark.parametrize(("lines", "line", "change"), [
    ("    for t in range(3):\n        if time.time() < p:\n            x = x + 1\n", 3,
     "evaluate `time.time() < p` before the compiled function is called, once for each turn of the loop at line 2, and "
     "pass the outcomes to `f`: a list of `True` and `False`"),
    ("    for t in range(3):\n        if time.time() < t:\n            x = x + 1\n", 3,
     "compile what one turn of the loop at line 2 computes"),
    ("    while time.time() < p:\n        x = x + 1\n", 2, "compile what one turn of the loop at line 2 computes"),
    ("    for t in range(3):\n        y = time.time(x)\n        x = x + y\n", 3,
     "compile what one turn of the loop at line 2 computes"),
    ("    for t in range(3):\n        if time.time(t):\n            x = x + 1\n", 3,
     "compile what one turn of the loop at line 2 computes"),
    ("    while time.time(x):\n        x = x + 1\n", 2, "compile what one turn of the loop at line 2 computes"),
    ("    while x.any():\n        for t in range(3):\n            if time.time() < p:\n                x = x + 1\n", 4,
     "compile what one turn of the loop at line 3 computes"),
    ("    for u in range(2):\n        for t in range(3):\n            if time.time() < p:\n                x = x + 1\n", 4,
     "evaluate `time.time() < p` before the compiled function is called, once for each turn of the loop at line 3, in each "
     "turn of that at line 2, and pass the outcomes to `f`"),
    ("    for t in p:\n        x = x + 1\n    else:\n        if time.time() < p:\n            x = x + 1\n", 5,
     "evaluate `time.time() < p` before the compiled function is called, and pass the result to `f`"),
    ("    for t in range(time.time()):\n        x = x + 1\n", 2,
     "call `time.time()` before the compiled function is called, and pass the result to `f`"),
    ("    for t in range(3):\n        x = x * time.time()\n", 3,
     "call `time.time()` before the compiled function is called, once for each turn of the loop at line 2, and pass the "
     "results to `f`, as a tensor if they are numbers that change"),
    ("    if time.time() < p:\n        x = x + 1\n", 2, "evaluate `time.time() < p` before the compiled function"),
    ("    y = x + 1\n    if time.time() < y:\n        x = x + 1\n", 3,
     "call `time.time()` before the compiled function is called, and pass the result to `f`"),
])
def test_a_call_in_a_loop_or_a_test(lines, line, change):
    """One result in its place is another program, and a test of a tensor breaks the graph."""
    advice = on_break(broken_at(
        f"def f(x, p):\n{lines}    return x\n", line, "GB0007", "Attempted to call function marked as skipped",
        "Dynamo does not know how to trace the builtin function `time.time`."))
    assert advice.rule == "skipped" and advice.change.startswith(change)
    assert ("as a tensor" in advice.change) == ("x * time" in lines)


@pytest.mark.parametrize("line, registry_id, change", [
    ("if random.randint(0, 1) == 0:\n        x = x * 2", "GB0170", "evaluate `random.randint(0, 1) == 0` before"),
    ("if w > 1:\n        x = x * 2", "GB0170", "call `random.randint(1, 3)` before"),
    ("x = x[random.randrange(x.size(0) - w):]", "GB0213", "call `random.randint(1, 3)`, `random.randrange(x.size(0) - w)` before"),
    ("for _ in x:\n        if random.random() < 0.5:\n            x = x * 2", "GB0170",
     "evaluate `random.random() < 0.5` before the compiled function is called, once for each turn of the loop at line 3"),
    ("for _ in range(rng.randint(1, 2)):\n        x = x * 2", "GB4841", "call `random.randint(1, 3)`, `rng.randint(1, 2)` before")])
def test_random_numbers_of_python_are_drawn_before_the_call(line, registry_id, change):
    """Torch holds them as tensors, but the program has no tensor to give to `torch.where`."""
    text = f"def f(x, rng):\n    w = random.randint(1, 3)\n    {line}\n    return x\n"
    context = "" if registry_id == "GB4841" else "attempted to jump with UnspecializedPythonVariable()"
    advice = on_break(broken_at(text, 3 + line.startswith("for _ in x:"), registry_id, "", context=context))
    assert advice.rule == "drawn" and advice.change.startswith(change)


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


def test_a_list_is_not_indexed_by_a_symbol():
    """Torch raises an error there where the setting is on."""
    item = {"registry_id": "GB0124", "reason": "Unsupported Tensor.item() call"}
    text = "def f(x, xs):\n    return xs[int(x.argmax())]\n"
    advice = on_break(broken_at(text, 2, **item))
    assert not advice.settings
    assert advice.after == ("return torch.stack(xs).index_select(0, x.argmax())[0]",)
    assert on_break(broken_at("def f(x, xs):\n    xs[int(x.max())] = x\n", 2, **item)) is None


@pytest.mark.parametrize("base, mended", [("Exception", True), ("ValueError", True), ("OSError", False),
                                          ("Base", False), ("Exception, Base", False), ("", False)])
def test_only_plain_exceptions_keep_all_they_get_in_args(base, mended):
    text = f"class E({base}):\n    def __init__(self, a, b=1):\n        super().__init__(a, b)\n"
    site = broken_at(text, 3, registry_id="GB0006", reason="Attempted to call a super() attribute")
    assert (after(text, 3, registry_id="GB0006") or "").endswith("    self.args = (a, b)\n") == mended
    assert (on_break(site) is not None) == mended


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


def test_a_function_that_is_given_up_is_told_where_it_breaks_next():
    text = "def f(x, parts):\n    for part in parts:\n        rows = torch.where(x)[0]\n        if rows.numel() == 0:\n" \
           "            continue\n        x = part(rows)\n    return x\n"
    line = SourceLocation("/home/a/model.py", 3, "", text.splitlines()[2])
    given_up = Compilation(CompileId(0, 0), outcome="skipped", breaks=(GraphBreak(
        CompileId(0, 0), "Dynamic shape operator", registry_id="GB0036", stack=(line,), skips_function=True,
        explanation="Operator `aten.nonzero.default`'s output shape depends on input Tensor data."),))
    adviser = Adviser(RunIndex(Capture(compilations=(given_up,), sources=(SourceFile(line.filename, text),))))
    assert adviser.on_lost(given_up) == [
        "only together with a change of line 4 (`rows.numel() == 0`), which breaks the graph next: set "
        "`torch._dynamo.config.capture_dynamic_output_shape_ops = True`"]


def test_hints_that_ask_for_a_report_come_last():
    assert in_order(["Please report an issue to PyTorch.", "Use x.", "Use y."]) == [
        "Use x.", "Use y.", "Please report an issue to PyTorch."]


def test_an_unknown_break_has_no_advice():
    text = "def f(x):\n    return x\n"
    assert on_break(broken_at(text, 2, registry_id="GB9999", reason="Something new")) is None


def test_advice_never_says_to_report_an_issue():
    for rule in RULES:
        for reason in ("print", "x"):
            for line in ("y = x.item()", "print(x)", "while x.sum() > 0: x += 1", "import os"):
                advice = rule.propose(broken_at(f"def f(x):\n    {line}\n", 2, explanation=f"function `{reason}`"))
                assert advice is None or "issue" not in advice.change


@pytest.mark.parametrize("given, changed", [
    ("(n for n in y)", "list(n for n in y)"), ("map(int, y)", "list(map(int, y))"), ("y", None), ("[1]", None)])
def test_a_generator_is_handed_on_as_a_list(given, changed):
    text = "def f(x, ns):\n    for n in ns:\n        x = x + n\n    return x\nprint(f(1, {}), 2)\n"
    new = after(text.format(given), 2, registry_id="GB0811")
    assert new == text.format(changed or given)


def test_a_logger_may_have_any_name():
    advice = on_break(broken_at("def f(x):\n    log.info('x')\n", 2, registry_id="GB0291"))
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
    ("a, b = torch.where(x)", "GB0036", "Dynamic shape operator", "if a.requires_grad:\n        return None", "")])
def test_the_test_that_breaks_the_graph_next_is_named(line, registry_id, reason, behind, named):
    text = f"def f(x, token, stop):\n    {line}\n    {behind}\n    return 1\n"
    advice = on_break(broken_at(text, 2, registry_id, reason))
    if named:
        assert advice.cost == f"line 3 ({named}) depends on it, and breaks the graph next"
    else:
        assert "line 3" not in advice.cost


@pytest.mark.parametrize(("check", "breaks"), [
    ("n == len(u)", False), ("n == len(u), 'other'", False), ("n", False), ("n in (1, 2)", False),
    ("not n is None", False), ("isinstance(n, int) and n > 0", False), ("not (n < 0 or not n < 9)", True),
    ("not (not n > 0)", False), ("n == len(u), f'{n}'", True), ("n > 0 and n < 9", True), ("0 < n < 9", True),
    ("not n > 9", True), ("n > 9 or n > 0", True), ("n > 0 if x.dim() else n < 9", True)])
def test_of_an_assertion_a_break_is_announced_where_torch_does_not_trace_it(check, breaks):
    torch = pytest.importorskip("torch")
    text = f"def f(x):\n    u = torch.unique(x)\n    n = int(x.max() + 0)\n    assert {check}\n    return x + 1\n"
    scope = {"torch": torch}
    exec(text, scope)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        assert (torch._dynamo.explain(scope["f"])(torch.tensor([1, 2, 2])).graph_break_count > 0) == breaks
    advice = on_break(broken_at(text, 3, "GB0124", "Unsupported Tensor.item() call"))
    assert ("line 4" in advice.cost) == breaks


@pytest.mark.parametrize("loop, told", [
    ("for b in y:\n        if b.item() > 0.5:\n            n += 1", "line 4 (`b.item() > 0.5`) breaks the graph next, inside the loop at line 3: "),
    ("for b in y:\n        if scale > 0.5:\n            n += 1", "line 4 (`scale > 0.5`) breaks the graph next, inside the loop at line 3: "),
    ("for b in y:\n        if n > 0.5:\n            n += 1", ""),
    ("for b in y:\n        assert b.item() > 0.5\n        n += 1", ""),
    ("if (y > 1).any():\n        n += 1", "")])
def test_that_a_loop_behind_a_number_loses_the_whole_function_is_told(loop, told):
    text = f"def f(y, n):\n    scale = y.max().item()\n    {loop}\n    return n * scale\n"
    advice = on_break(broken_at(text, 2, "GB0124", "Unsupported Tensor.item() call"))
    assert advice.rule == "capture_scalar_outputs"
    assert advice.cost.startswith(told) and ("gives up all of `f`" in advice.cost) == bool(told)


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


@pytest.mark.parametrize("over, line, change", [
    ("for t, p in zip(ys, self.zs)", "m[p, t] += 1",
     "`m.index_put_((self.zs, ys), torch.tensor(1, dtype=m.dtype), accumulate=True)`"),
    ("for t in ys", "self.m[t] += 0.5",
     "`self.m.index_put_((ys,), torch.tensor(0.5, dtype=self.m.dtype), accumulate=True)`"),
    ("for t, p in zip(ys, zs)", "m[t] += 1", "`m[t.view(1)] += 1`"), ("for t, p in zip(ys, zs)", "m[t, p] += p", None),
    ("for i, t in enumerate(ys)", "m[i, t] += 1", None), ("for t in ys", "m[t] = 1", "`m[t.view(1)] = 1`")])
@pytest.mark.parametrize("error", [
    {"registry_id": "GB0033", "reason": "Data dependent operator", "explanation": "aten._local_scalar_dense.default"},
    {"registry_id": "", "reason": "Could not extract specialized integer from data-dependent expression u0"}])
def test_counting_by_tensors_is_done_at_once_and_the_setting_is_no_help(over, line, change, error):
    advice = on_break(broken_at(f"def f(self, m, ys, zs):\n    {over}:\n        {line}\n", 3, **error))
    if change is None or "view" in change and not error["registry_id"]:  # (With the setting `t` may be anything.)
        assert advice is None
    else:
        assert advice.change.endswith(change)


@pytest.mark.parametrize(("line", "changed"), [
    ("d = (boxes[i] - boxes[order[1:]]).abs().sum(-1)", "d = (boxes[i.view(1)][0] - boxes[order[1:]]).abs().sum(-1)"),
    ("d = near(boxes[i], order)", "d = near(boxes[i.view(1)][0], order)"),
    ("boxes[i] = 0", "boxes[i.view(1)] = 0"),
    ("d = boxes[order.argmax()] * 2", "d = boxes[order.argmax().view(1)][0] * 2"),
    ("boxes[i].add_(1)", None), ("d = boxes[:, i]", None), ("d = boxes[i].repeat(i)", None), ("d = boxes[k - 1]", None)])
@pytest.mark.parametrize("error", [
    {"registry_id": "GB0033", "reason": "Data dependent operator", "explanation": "aten._local_scalar_dense.default"},
    {"registry_id": "", "reason": "Could not extract specialized integer from data-dependent expression u0"}])
def test_an_element_with_a_name_becomes_a_tensor_of_one_element(line, changed, error):
    text = ("def near(a, b):\n    return a\n\n\ndef f(boxes, order, k):\n    i = order[0]\n"
            f"    {line}\n    order = order[1:][d > 1]\n")
    advice = on_break(broken_at(text, 7, **error))
    if changed is None:
        assert advice is None or advice.rule != "elements_as_indices"
    else:
        assert advice.change == f"write `{changed}`"


def test_nothing_is_said_of_lists_where_a_line_assigns_no_number():
    error = {"registry_id": "GB0033", "reason": "Data dependent operator",
             "explanation": "aten._local_scalar_dense.default"}
    text = "def f(x, n):\n    d = torch.zeros(n[0])\n    return x[1:][d > 1]\n"
    assert "is a list" not in on_break(broken_at(text, 2, **error)).change


def test_the_setting_helps_where_the_number_may_be_none_of_an_index():
    error = {"registry_id": "GB0033", "reason": "Data dependent operator",
             "explanation": "aten._local_scalar_dense.default"}
    for line in ("y = x[: n[0]]", "y = torch.zeros(n[i])"):
        assert on_break(broken_at(f"def f(x, n, i):\n    {line}\n", 2, **error)).rule == "capture_scalar_outputs"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["print_open_size", "print_open_size_set"])
def test_what_holds_an_open_size_is_formatted_and_printed_after_the_graph(name, tmp_path):
    found = fix_programs.search(CASES[name], tmp_path)
    assert [advice.rule for advice in found.taken] == ["print"] and not found.after.problems
    assert ".format(tuple(y.shape))" in found.taken[0].change and found.after.same_results(found.before)


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
    assert (advice is not None and advice.rule == "numbers_of_unknown_size") == taken
