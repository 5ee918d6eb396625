"""Each rule's change works: a program with the trouble is run before and after it, by the search of ``depyf fix``."""

import dataclasses
import re
import string

import pytest

pytest.importorskip("torch")

import fix_programs

from depyf.advice import RULES, Sources, candidates, on_break
from depyf.advice.facts import Facts
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
from depyf.views.causes import cause, in_plain_python
from depyf.views.index.overview import SectionContext, first_changes
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
    assert found.before.weight > found.best.after.weight
    assert not found.best.after.weight
    assert rule in [advice.rule for advice in found.best.patch.taken]
    assert not found.best.after.difference(found.before)
    assert (tmp_path / f"{OF_RULE[rule].name}.py").read_text() == OF_RULE[rule].before, "the file itself was changed"


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_WORDS)
def test_what_a_rule_says_in_words_helps(name, tmp_path):
    case = IN_WORDS[name]
    before, after = outcome(case, case.before, tmp_path), outcome(case, case.after, tmp_path)
    sources = Sources(before.capture.sources)
    advices = [on_break(sources.site(broken)) for each in before.capture.compilations
               for broken in each.breaks]
    assert case.rule in [advice.rule for advice in advices if advice]
    assert before.totals.breaks and not after.weight
    assert before.printed == after.printed


def test_a_truth_value_of_torchs_needs_values():
    text = "def f(x, y):\n    return torch.allclose(x, y)\n"
    place = SourceLocation("m.py", 2, "f", "return torch.allclose(x, y)")
    broken = GraphBreak(CompileId(0, 0), "Data dependent operator", registry_id="GB0033", stack=(place,),
                        context="aten.allclose.default")
    advice = on_break(Sources([SourceFile("m.py", text)]).site(broken))
    assert advice.change.startswith("the line needs a value that is known only when the graph runs, and a graph has no values") and not advice.is_change


@pytest.mark.slow
def test_more_versions_are_made_where_the_limit_is_raised(tmp_path):
    case = CASES["many_strings"]
    raised = with_settings(case.before, ["torch._dynamo.config.recompile_limit = 64"])
    before, after = outcome(case, case.before, tmp_path), outcome(case, raised, tmp_path)
    assert (before.totals.skipped, after.totals.skipped) == (1, 0)
    assert not after.difference(before)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.rule == "none"])
def test_nothing_is_taken_that_changes_results(name, tmp_path):
    found = fix_programs.search(CASES[name], tmp_path)
    assert not found.best.after.difference(found.before)


def test_each_setting_has_a_program():
    for setting in ("capture_scalar_outputs", "capture_dynamic_output_shape_ops", "trace_autograd_ops", "allow_rnn",
                    "enable_trace_load_build_class"):
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


def rewritten(text, line, **more):
    """The text with the change that a trial gets for a line; ``None`` where there is none."""
    advice = next(candidates(broken_at(text, line, **more)), None)
    return advice and edited(text, advice.edits)


def test_only_proven_changes_are_given_to_apply():
    """All else is a sentence; a setting that it names is tried by ``depyf fix``."""
    assert {rule.name for rule in RULES if rule.edit is not None} == {"branch", "print"}
    for line, registry_id, setting in (("n = x.sum().item()", "GB0124", "capture_scalar_outputs"),
                                       ("y = x.nonzero()", "GB0036", "capture_dynamic_output_shape_ops")):
        site = broken_at(f"def f(x):\n    {line}\n", 2, registry_id, "")
        advice = on_break(site)
        assert not advice.is_change and not advice.edits and f"with `torch._dynamo.config.{setting} = True`" in advice.change
        assert [each.change for each in candidates(site)] == [f"set `torch._dynamo.config.{setting} = True`"]


@pytest.mark.parametrize("line", ["s = np.random.uniform(0.5, p)", "if np.random.rand() < p:\n        x = x * 2"])
def test_a_random_number_of_numpys_is_no_symbol(line):
    """Torch 2.13 breaks the graph at the same line, whatever is set."""
    text = f"def f(x, p):\n    {line}\n    return x * s\n"
    at = next(number for number, each in enumerate(text.splitlines(), 1) if "np." in each)
    site = broken_at(text, at, "GB0033", "Data dependent operator", context="aten._local_scalar_dense.default")
    assert on_break(site).rule == "drawn" and not list(candidates(site))


def test_a_test_of_a_size_that_only_the_data_tells_is_told_in_the_users_words():
    text = "def f(x, parts):\n    for part in parts:\n        rows = torch.where(x)[0]\n        if rows.numel() == 0:\n" \
           "            continue\n        x = part(rows)\n    return x\n"
    reason = "Could not guard on data-dependent expression Eq(u0, 0) (unhinted: Eq(u0, 0)).  (Size-like symbols: u0)"
    place = SourceLocation("/home/a/model.py", 4, "", "        if rows.numel() == 0:")
    broken = GraphBreak(CompileId(0, 0), reason, stack=(place,))
    assert cause(broken) == "`rows.numel() == 0` depends on a number known only when the graph runs"
    advice = on_break(Sources([SourceFile(place.filename, text)]).site(broken))
    assert advice.change.startswith("whether a turn of the loop at line 2 runs, or runs to its end, depends on values")
    elsewhere = GraphBreak(CompileId(0, 0), reason, stack=(dataclasses.replace(place, text="y = x.view(n)"),))
    assert cause(elsewhere) == "a decision depends on a number known only when the graph runs: `Eq(u0, 0)`"


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
    assert advice is None or f"`{name}()`" in advice.change


@pytest.mark.parametrize("stack", [0, 1])
def test_nothing_can_be_logged_elsewhere_in_a_function_of_a_library_that_torch_compiles_by_itself(stack):
    """Neither where torch's stack has the line of the program that calls it, nor where it has not."""
    library, text = "def debug(self):\n    if self.isEnabledFor(10): pass\n", "def f(x):\n    log.debug('x')\n"
    places = (SourceLocation("m.py", 2, "f", "log.debug('x')"),
              SourceLocation("/lib/python3.11/logging/__init__.py", 2, "debug", "if self.isEnabledFor(10): pass"))[stack:]
    broken = GraphBreak(CompileId(0, 0), "logging.Logger method", registry_id="GB0291", depth=1, stack=places,
                        context="method: <Logger a (INFO)>.isEnabledFor, args: []")
    assert on_break(Sources([SourceFile("m.py", text), SourceFile(places[-1].filename, library)]).site(broken)) is None


def test_a_numpy_function_that_is_compiled_by_cython_is_named():
    line = "y = x + np.random.default_rng(0).normal()"
    explanation = "Can't find numpy numpy function <cyfunction default_rng at 0x7f> in torch._numpy."
    site = broken_at(f"def f(x):\n    {line}\n", 2, "GB0294", "attempted to trace numpy function", explanation)
    assert cause(site.broken) == "torch has no function of its own for NumPy's `default_rng`"
    assert on_break(site).change.startswith("torch did not trace `np.random.default_rng(0)` here; before or after")


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
        assert on_break(Sources([SourceFile(own.filename, text)]).site(broken)).rule == "optimizer"


@pytest.mark.parametrize(("line", "operator", "registry_id", "has_advice"), [
    ("x = checkpoint(self.block, x)", "", "GB0067", False), ("y = self.run(x)", "torch.utils.checkpoint.checkpoint", "GB4413", True),
    ("y = torch.cond(p, checkpoint(f), g)", "cond", "GB0067", False), ("y = torch.cond(p, f, g)", "", "GB0067", False)])
def test_a_side_effect_of_what_is_checkpointed(line, operator, registry_id, has_advice):
    reason = "HOP: Unsafe side effect" + f"\nHigher Order Operator: {operator}" * bool(operator)
    advice = on_break(site := broken_at(f"def f(self, x):\n    {line}\n", 2, registry_id, reason))
    assert (advice is not None) == has_advice
    assert advice is None or advice.change.startswith("plain Python runs what is checkpointed again") and not advice.settings
    assert cause(site.broken) == (f"what `{operator}` runs changes something outside of it" if operator else reason)


def test_the_lock_of_a_cached_property():
    """Python 3.11 has one, in a line of the standard library."""
    stack = (SourceLocation("m.py", 2, "f", "return x * c.k"),
             SourceLocation("/lib/python3.11/functools.py", 997, "__get__", "with self.lock:"))
    broken = GraphBreak(CompileId(0, 0), "Unsupported context manager", registry_id="GB0142", stack=stack, depth=2)
    advice = on_break(Sources([SourceFile("m.py", "def f(x, c):\n    return x * c.k\n")]).site(broken))
    assert advice.change.startswith("`functools.cached_property` computes a first value under a lock (up to Python 3.11)")


def test_no_change_is_given_for_a_print_in_a_generator():
    """Neither can it return what it shows, nor does torch 2.13 print it after the graph."""
    explanation = "Dynamo does not know how to trace builtin operator `print` with argument types ['str'] (has_kwargs False)"
    text = "def f(x):\n    for row in x:\n        print('row')\n        yield row\n"
    assert not on_break(broken_at(text, 3, "GB0059", "Failed to trace builtin operator", explanation)).is_change


def test_what_a_called_function_prints_is_lost_after_the_graph():
    """Torch 2.13 prints after a graph what the compiled function itself prints, and nothing of what it calls."""
    explanation = "Dynamo does not know how to trace builtin operator `print` with argument types ['str'] (has_kwargs False)"
    text = "def helper(x):\n    print('row')\ndef f(x):\n    helper(x)\n"
    inner = SourceLocation("m.py", 2, "helper", "print('row')")
    for stack in (inner,), (SourceLocation("m.py", 4, "f", "helper(x)"), inner):
        broken = GraphBreak(CompileId(0, 0), "Failed to trace builtin operator", explanation, registry_id="GB0059",
                            stack=stack, depth=len(stack))
        (advice,) = [on_break(Sources([SourceFile("m.py", text)]).site(broken))]
        assert (advice.rule == "print") == (len(stack) == 1) and not advice.is_change


@pytest.mark.parametrize("line, registry_id", [
    ("if random.randint(0, 1) == 0:\n        x = x * 2", "GB0170"), ("if w > 1:\n        x = x * 2", "GB0170"),
    ("x = x[random.randrange(x.size(0) - w):]", "GB0213"),
    ("for _ in range(rng.randint(1, 2)):\n        x = x * 2", "GB4841")])
def test_random_numbers_of_python_are_no_values_of_tensors(line, registry_id):
    """Torch holds them as tensors, but the program has no tensor to give to `torch.where`."""
    text = f"def f(x, rng):\n    w = random.randint(1, 3)\n    {line}\n    return x\n"
    of_range = "DelayGraphBreakVariable() does not implement python_type()"
    context = of_range if registry_id == "GB4841" else "attempted to jump with UnspecializedPythonVariable()"
    site = broken_at(text, 3, registry_id, "", context=context)
    assert on_break(site).rule == "drawn" and not list(candidates(site))


def test_a_random_number_is_one_also_where_a_setting_lets_torch_have_a_symbol():
    text = "def f(x, p):\n    if np.random.rand() < p:\n        x = x * 2\n    return x\n"
    reason = "Could not guard on data-dependent expression zuf0 (unhinted: zuf0).  (Size-like symbols: none)"
    assert on_break(broken_at(text, 2, "", reason)).rule == "drawn"


def test_an_assert_that_a_resume_function_repeats_is_no_type_error():
    """Torch 2.13 resumes at the `raise`, with the class of the exception on the stack."""
    text = "def f(x):\n    assert x.ndim == 2, f'got {x.shape}'\n"
    context = "raised exception TypeError('exceptions must derive from BaseException, not AssertionError')"
    advice = on_break(broken_at(text, 2, "GB0088", "Observed exception", context=context))
    assert advice.change == "the condition is false for such a call in plain Python, too"


def test_an_error_in_the_text_of_a_condition_does_not_say_that_it_is_false():
    text = "def f(x, names):\n    assert f'{x.size(0)}' in names\n"
    advice = on_break(broken_at(text, 2, "GB0021", "BUILD_STRING type error", context="FakeVariable()"))
    assert advice is None or "the condition is false" not in advice.change


def test_nothing_was_compiled_before_a_backward_of_a_function_that_is_given_up():
    site = broken_at("def f(x):\n    x.sum().backward()\n", 2, "GB0123", "Unsupported Tensor.backward() call")
    assert "has compiled the backward pass" in on_break(site).change
    skipped = dataclasses.replace(site, broken=dataclasses.replace(site.broken, skips_function=True))
    assert "has compiled the backward pass" not in on_break(skipped).change


def test_an_attribute_of_a_class_is_no_random_number():
    """Torch 2.13 knows no type of the attributes of an autograd.Function."""
    site = broken_at("def f(x):\n    Norm.calls += 1\n    return x\n", 2, "GB4841",
                     context="GetAttrVariable(AutogradFunctionVariable(), calls) does not implement python_type()")
    assert on_break(site) is None


def test_a_number_that_random_drew_is_no_symbol():
    """The setting is an error there (`torch.roll(x, random.randint(1, 2))`)."""
    text = "def f(x):\n    k = random.randint(1, 2)\n    return torch.roll(x, k)\n"
    drawn = NamedValue("k", "Tensor", (), "int64", "cpu", source="random_value_0")
    advice = on_break(broken_at(text, 3, "GB0033", context="aten._local_scalar_dense.default", values=[drawn]))
    assert advice.rule == "drawn" and not advice.settings


def test_a_break_in_no_function_has_advice():
    """(A hook that is a lambda, at the level of a module.)"""
    text = "model.register_forward_hook(lambda m, i, o: seen.append(o.mean().item()))\n"
    assert on_break(broken_at(text, 1, "GB0124")) is not None


def test_a_number_of_pythons_is_given_to_no_operation_on_tensors():
    text = "def f(x, n):\n    if n > 1:\n        x = x * 2\n    return x\n"
    assert rewritten(text, 2) and not rewritten(text, 2, context="attempted to jump with UnspecializedPythonVariable()")


def test_no_line_is_changed_that_holds_more_than_the_statement():
    for text in ("def f(x):\n    if x.sum() > 0: y = 1\n    else: y = 2; z = 3\n    return y\n",
                 "def f(x):\n    if a: pass\n    elif x.sum() > 0:\n        y = 1\n    else:\n        y = 2\n    return y\n"):
        line = 2 if "z" in text else 3
        assert on_break(broken_at(text, line)) and not rewritten(text, line)


def test_lines_of_a_library_are_not_rewritten():
    text = "def f(x):\n    if x.sum() > 0:\n        x = x + 1\n    return x\n"
    where = SourceLocation("/usr/lib/python3/site-packages/models/a.py", 2, "f", "if x.sum() > 0:")
    broken = GraphBreak(CompileId(0, 0), "Data-dependent branching", registry_id="GB0170", stack=(where,))
    assert not list(candidates(Sources([SourceFile(where.filename, text)]).site(broken)))
    item = GraphBreak(CompileId(0, 0), "Unsupported Tensor.item() call", registry_id="GB0124", stack=(where,))
    assert on_break(Sources([]).site(item)).rule == "branch", "the number of a test is a branch"


def test_what_made_a_whole_function_fail_is_read_from_the_failure():
    text = "def f(x):\n    print(x.shape, sep='')\n    return x\n"
    reason = ("Failed to trace builtin operator\n  Explanation: Dynamo does not know how to trace builtin operator "
              "`print` with argument types ['Size', 'str'] (has_kwargs True)\n\n For more details about this graph "
              "break, please visit: https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html")
    failed = Compilation(CompileId(0, 0), outcome="failed", failure=Failure(
        "Unsupported", reason, SourceLocation("/home/a/model.py", 2)))
    adviser = Adviser(RunIndex(Capture(compilations=(failed,), sources=(SourceFile("/home/a/model.py", text),))))
    assert "can be printed outside" in adviser.on_lost(failed)[0]


def test_what_fails_at_a_branch_is_a_place_to_begin_and_nothing_tries_its_rewriting():
    """It is among no breaks: the exception reaches the program, and no call runs in plain Python."""
    text = "def f(x):\n" + "    if x.sum() > 0:\n        x = x + 1\n" * 4 + "    return x\n"
    reason = "Data-dependent branching\n  Explanation: Detected data-dependent branching"
    failed = [Compilation(CompileId(frame, 0), function="f", outcome="failed", failure=Failure(
        "Unsupported", reason, SourceLocation("m.py", 2 + 2 * frame))) for frame in range(4)]
    run = SectionContext(Capture(compilations=tuple(failed), sources=(SourceFile("m.py", text),)))
    texts, places = first_changes(run, run.place)
    assert places == 4
    assert all(re.match(r"`m\.py:\d`: `torch\.where`, .* have finite gradients \(`?f`? was not compiled in `\[\d/0\]`\)$", each) for each in texts)


def test_a_function_that_failed_is_a_place_to_begin_without_any_advice():
    failed = [Compilation(CompileId(frame, 0), function=f"f{frame}", outcome="failed",
                          failure=Failure("BackendCompilerFailed", "no `sort`")) for frame in range(4)]
    run = SectionContext(Capture(compilations=tuple(failed)))
    texts, places = first_changes(run, run.place)
    assert places == 4 and texts[0] == "`f0` was not compiled: `BackendCompilerFailed`: no `sort` (`[0/0]`)"


def test_a_warning_gives_no_setting_to_try():
    """With `reorderable_logging_functions` torch 2.13 loses warnings of functions that the compiled one calls."""
    site = broken_at("def f(x):\n    warnings.warn('a')\n    return x\n", 2, "GB0007", "Attempted to call function marked as skipped",
                     context="module: _warnings, qualname: warn, skip reason: <missing reason>")
    assert on_break(site).rule == "warning" and not list(candidates(site))


def test_a_test_of_a_loggers_level_is_no_call_that_only_logs():
    """`ignore_logging_functions` would make it `None`."""
    tested = "def f(x):\n    if log.isEnabledFor(10):\n        log.debug('x')\n    return x\n"
    said = on_break(broken_at(tested, 2, "GB0291", "logging.Logger method",
                              context="method: <Logger a (WARNING)>.isEnabledFor, args: []")).change
    assert "ignore_logging_functions" not in said


def test_an_operator_without_a_fake_implementation_fails_although_plain_python_does_not():
    site = broken_at("def f(x):\n    return op(x)\n", 2, "GB4315", "RuntimeError when making fake tensor call",
                     "got RuntimeError('There was no fake impl registered for <CustomOpDef(a::op)>.')")
    assert "its fake implementation, is wrong, missing, or takes no size or number that torch leaves open" in on_break(
        site).change


@pytest.mark.parametrize(("line", "reason", "context", "rule", "why"), [
    ("self.last = f'{{{n!r}}}'", "BUILD_STRING type error", "SymNodeVariable()", "text", "an f-string needs"),
    ("self.last = 'at %d' % n", "Observed exception", PERCENT, "text", "`%` needs"),
    ("self.last = a % n", "Observed exception", "raised exception TypeError(\"no\")", "raise", "Observed exception"),
])
def test_a_text_of_a_number_that_torch_keeps_open(line, reason, context, rule, why):
    text = f"def f(self, n, width):\n    {line}\n"
    place = SourceLocation("/home/a/model.py", 2, "", f"    {line}")
    broken = GraphBreak(CompileId(0, 0), reason, stack=(place,), context=context)
    advice = on_break(Sources([SourceFile(place.filename, text)]).site(broken))
    assert advice.rule == rule and cause(broken).startswith(why)


def test_no_change_of_its_text_keeps_an_exception_in_a_graph():
    """With ``.format(...)`` in the place of the f-string torch gives the function up for all calls (2.13)."""
    assert on_break(broken_at("def f(n):\n    raise ValueError(f'{n}')\n", 2, "GB0021", context="SymNodeVariable()")) is None


@pytest.mark.parametrize(("registry_id", "context"), [
    ("GB0170", "attempted to jump with ConstantVariable(bool: False)"), ("GB0002", "Eq(s27, 1)")])
def test_an_assertion_that_fails_while_torch_traces_it_is_on_no_tensor(registry_id, context):
    """``torch._assert_async`` takes a tensor, and this condition is one of sizes."""
    site = broken_at("def f(a):\n    assert a.shape[0] == 1, 'one'\n", 2, registry_id, context=context)
    assert cause(site.broken) == "the assertion fails, and a graph cannot raise an exception"
    assert on_break(site).change == "the condition is false for such a call in plain Python, too"


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
    assert "the line needs a value that is known only when the graph runs" in (said := change(" Higher Order Operator: autograd.Function"))
    assert "capture_scalar_outputs" not in said


@pytest.mark.parametrize("line", [4, 3])
def test_what_torch_cannot_reconstruct_goes_with_the_break_of_its_line(line):
    text = "def update(v):\n    return v.item()\ndef log(x):\n    add(update(x))\n"
    outer = SourceLocation("m.py", line, "log", text.splitlines()[line - 1])
    item = GraphBreak(CompileId(0, 0), "Unsupported Tensor.item() call with capture_scalar_outputs=False", depth=2,
                      registry_id="GB0124", stack=(SourceLocation("m.py", 4, "log"), SourceLocation("m.py", 2, "update")))
    failed = GraphBreak(CompileId(0, 0), "Reconstruction failure", registry_id="GB0092", depth=1, stack=(outer,))
    compilation = Compilation(CompileId(0, 0), outcome="skipped", breaks=(item, failed))
    adviser = Adviser(RunIndex(Capture(compilations=(compilation,), sources=(SourceFile("m.py", text),))))
    followed = f"it follows from the graph break at `m.py:2`: {adviser.change_on(item)}"
    assert adviser.change_on(failed) == (followed if line == 4 else "")
    assert adviser.change_on(item).startswith("with `torch._dynamo.config.capture_scalar_outputs = True` the number is a symbol")


def test_hints_that_ask_for_a_report_come_last():
    assert in_order(["Please report an issue to PyTorch.", "Use x.", "Use y."]) == [
        "Use x.", "Use y.", "Please report an issue to PyTorch."]


@pytest.mark.parametrize(("line", "registry_id", "said", "claim"), [
    # Torch traces the call with numbers that it fixes.
    ("g = math.gcd(a, b)", "GB0208", "a graph has no operation that returns", "torch does not trace"),
    ("rows = PATTERN.finditer(a)", "GB0292", "a graph has no operation that returns", "torch does not trace"),
    # Torch 2.13 compiles `next` of a list without the exception.
    ("one = next(rows, None)", "GB4347", "(`next` does not take a list)", "a list of what it gives"),
    # Nor does it say that plain Python raises what its own tracing met.
    ("one = rows[a]", "GB0088", "KeyError is raised while torch traces the line", "an address"),
    # (A size without a value, which no `torch.where` takes.)
    ("if a.shape[0] == b.shape[0]: a = a + b", "GB0170", "the line needs a value that is known only", "torch.where"),
    ("loss = opt.step(closure)", "GB0099", "excluded from compilation, by `torch.compiler.disable`", "optimizer")])
def test_a_sentence_claims_no_more_than_torch_says(line, registry_id, said, claim):
    context = {"GB0088": "raised exception KeyError('n')", "GB0170": "attempted to jump with SymNodeVariable()"}
    change = on_break(broken_at(
        f"def f(a, b, rows, opt):\n    {line}\n", 2, registry_id, context=context.get(registry_id, ""))).change
    assert said in change and claim not in change


def test_a_branch_on_a_size_without_a_value_is_on_no_tensor():
    broken = broken_at("def f(a, b):\n    if len(a) > b: a = a + b\n", 2, context="attempted to jump with SymNodeVariable()").broken
    assert cause(broken).startswith("which branch is taken depends on a size or number, which has no value")
    assert in_plain_python(broken) == "the choice by `len(a) > b`"


def test_a_call_that_torch_traces_in_another_version_is_not_said_to_be_in_no_graph():
    """Torch 2.13 traces a method of a text that is made without open numbers."""
    advice = on_break(broken_at("def f(text):\n    if text.startswith('mt'):\n        return 1\n", 2, "GB0156",
                                context="call_method StringFormatVariable() startswith [ConstantVariable()] {}"))
    assert advice.change.startswith("torch did not trace `text.startswith('mt')` here; before or after")


@pytest.mark.parametrize(("line", "call", "registry_id", "context"), [
    ("y = buf.resize_(n)", "buf.resize_(n)", "GB0148",
     "source: AttrSource(base=LocalSource(local_name='buf', is_input=True), member='resize_')"),
    ("torch.add(x, x, out=buf)", "torch.add(x, x, out=buf)", "GB0247",
     "fn=<built-in method add of type object at 0x7fe5>, args=[TensorVariable()], kwargs={}"),
    ("self.a.register_forward_hook(log)", "self.a.register_forward_hook(log)", "GB0467", "setattr(...)"),
    ("handle.remove()", "handle.remove()", "GB0013", ""), ("self.handles.append(handle)", None, "GB0013", ""),
    ("Net.count += len(x)", None, "GB0467", "setattr(...)")])
def test_a_call_that_changes_what_a_graph_cannot_is_named(line, call, registry_id, context):
    text = f"def f(self, x, buf, n):\n    {line}\n"
    place = SourceLocation("m.py", 2, "f", line)
    inner = [SourceLocation("/lib/python3.11/site-packages/torch/nn/modules/module.py", 9, "register_forward_hook")]
    broken = GraphBreak(CompileId(0, 0), "", registry_id=registry_id, context=context,
                        depth=1 + ("hook" in line), stack=(place, *inner * ("hook" in line)))
    advice = on_break(Sources([SourceFile("m.py", text)]).site(broken))
    assert (advice and advice.change.partition(" here;")[0]) == (call and f"torch did not trace `{call}`")


def test_a_comprehension_that_torch_compiles_by_itself_gets_no_list():
    """(Up to Python 3.11 a comprehension is a function, of an iterator that is made where it is written.)"""
    text = "def f(rows):\n    return {row: 1 for row in rows}\n"
    place = SourceLocation("m.py", 2, "<dictcomp>", text.splitlines()[1])
    broken = GraphBreak(CompileId(0, 0), "Missing tp_iternext", registry_id="GB4347", stack=(place,))
    assert on_break(Sources([SourceFile("m.py", text)]).site(broken)) is None


def test_an_unknown_break_has_no_advice():
    text = "def f(x):\n    return x\n"
    assert on_break(broken_at(text, 2, registry_id="GB9999", reason="Something new")) is None


def test_each_fact_that_a_sentence_names_is_known():
    named = {field for rule in RULES for _, field, _, _ in string.Formatter().parse(rule.text) if field}
    assert named == {"call", "loop", "met.raised"} and hasattr(Facts, "call") and hasattr(Facts, "loop")


def test_each_event_is_of_a_row():
    assert {event for rule in RULES for event in rule.events.split()} == {kind.event for kind in KINDS.values()} - {""}


def test_a_logger_may_have_any_name():
    advice = on_break(broken_at("def f(x):\n    log.info('x')\n", 2, registry_id="GB0291",
                                context="method: <Logger a (WARNING)>.info, args: []"))
    assert "a graph cannot log" in advice.change


def test_a_print_is_moved_only_where_a_trial_shows_the_same():
    """The setting changes each `print` that torch traces: `print(x); x.mul_(2)` shows what `x` is at the end of the graph."""
    site = broken_at("def f(x, n, y):\n    print('x', n, y)\n    y.mul_(2)\n", 2, "GB0059", "Failed to trace builtin operator",
                     "Dynamo does not know how to trace builtin operator `print` with argument types ['str', 'int', 'Tensor'] (has_kwargs")
    advice = on_break(site)
    assert not advice.is_change and "`sep`, `end` and `file` are ignored" in advice.change
    (tried,) = candidates(site)
    assert tried.is_change and tried.edits and tried.change.startswith("write `print('x', '{}'.format(n), ")


# --- edits, patches, results ------------------------------------------------------------------------------
def test_edits_that_touch_are_refused():
    edits = [Edit("a", 1, 2, ("x",)), Edit("a", 2, 3, ("y",))]
    assert edited("1\n2\n3\n", edits) is None
    assert edited("1\n2\n3\n", [Edit("a", 1, 1, ()), Edit("a", 3, 3, ("x", "y"))]) == "2\nx\ny\n"


def test_a_recompile_that_is_refused_at_the_limit_counts_once():
    failed = GuardFailure(CompileId(0, 0), "", "L['x']", "3", "4", subject="x.size()[0]")
    counted = Outcome(Capture(compilations=tuple(
        Compilation(CompileId(0, number), outcome=outcome, guard_failures=(failed,) * (number > 0))
        for number, outcome in enumerate(("compiled", "compiled", "limit")))))
    assert (counted.totals.recompiles, counted.totals.skipped) == (1, 1)


@pytest.mark.slow
def test_what_holds_an_open_size_is_formatted_and_printed_after_the_graph(tmp_path):
    found = fix_programs.search(CASES["print_open_size"], tmp_path)
    assert [advice.rule for advice in found.best.patch.taken] == ["print"] and not found.best.after.weight
    assert ".format(tuple(y.shape))" in found.best.patch.taken[0].change and not found.best.after.difference(found.before)


@pytest.mark.parametrize("line, types, change", [
    ("print('n', tuple(y.shape))", "['str', 'tuple']", "print('n', '{}'.format(tuple(y.shape)))"),
    ("print(y.shape[0], 3)", "['int', 'int']", "print('{}'.format(y.shape[0]), 3)"),
    ("print(y, thing)", "['Tensor', 'Thing']", "print(y, str(thing))")])
def test_arguments_of_print_that_may_hold_open_sizes_are_formatted(line, types, change):
    advice = on_break(broken_at(
        f"def f(y, thing):\n    {line}\n", 2, registry_id="GB0059", reason="Failed to trace builtin operator",
        explanation=f"Dynamo does not know how to trace builtin operator `print` with argument types {types} (has_kwargs"))
    assert f"write `{change}`" in advice.change
