"""The proof: it accepts other layouts of a program and rejects mutants."""

import ast
import importlib
import inspect
import random
import sys

import mutants as m
import pytest

from depyf.bytecode import operations as o
from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import Code
from depyf.bytecode.operations import CANNOT_RAISE, NO_FALL_THROUGH, Program
from depyf.decompiler.proof.equivalence import equivalent
from depyf.decompiler.proof.exact import _follow_jumps, line_map, same_constant, same_program

MODULES = ["textwrap", "bisect", "heapq", "shlex", "fnmatch", "contextlib", "json.decoder", "csv"]


def functions():
    for name in MODULES:
        module = importlib.import_module(name)
        for _, value in sorted(vars(module).items()):
            if inspect.isfunction(value) and value.__module__ == name:
                yield value.__code__


def code_of(source, name="f"):
    space: dict = {}
    exec(compile(source, "test", "exec"), space)
    return Code.of(space[name].__code__)


def test_same_source_with_other_lines_is_the_same():
    for module in MODULES:
        source = inspect.getsource(importlib.import_module(module))
        a = Code.of(compile(source, "a", "exec", dont_inherit=True))
        b = Code.of(compile("\n\n" + ast.unparse(ast.parse(source)), "b", "exec", dont_inherit=True))
        verdict = same_program(a, b)
        assert verdict, verdict.where


@pytest.mark.parametrize("left, right", [
    ("def f(a):\n if a: return 1\n else: return 2", "def f(a):\n if not a: return 2\n return 1"),
    ("def f(a, b):\n if a:\n  if b: return 1\n return 2", "def f(a, b):\n if a and b: return 1\n return 2"),
    ("def f(x):\n while x:\n  x -= 1\n return x", "def f(x):\n while True:\n  if not x: break\n  x -= 1\n return x"),
])
def test_layout_may_differ(left, right):
    verdict = same_program(code_of(left), code_of(right))
    assert verdict, verdict.where


@pytest.mark.parametrize("left, right", [
    ("def f(a): return 1", "def f(a): return 1.0"),
    ("def f(a): return 1", "def f(a): return True"),
    ("def f(a): return 0.0", "def f(a): return -0.0"),
    ("def f(a): return (1, 'x')", "def f(a): return (1.0, 'x')"),
    ("def f(a): return a + 1", "def f(a): return a - 1"),
    ("def f(a, b): return a", "def f(b, a): return a"),
    ("def f(a, b=1): return a", "def f(a, *b): return a"),
    ("def f(a): return a.x", "def f(a): return a.y"),
    ("def f(a): return a", "def f(a): yield a"),
    ("def f(a):\n try: return a()\n except E: return 1", "def f(a):\n try: return a()\n except F: return 1"),
    ("def f(a):\n try: return a()\n finally: b()", "def f(a):\n r = a()\n b()\n return r"),
    ("def f(a):\n 'doc'\n return a", "def f(a):\n 'other'\n return a"),
    ("def f(a): return lambda: a", "def f(a): return lambda: 1"),
    ("def f(a): return a < 1 < 2", "def f(a): return a < 1 and 2"),
])
def test_another_program_is_rejected(left, right):
    verdict = same_program(code_of(left), code_of(right))
    assert not verdict
    assert verdict.where


def test_constants_are_compared_by_type_and_sign():
    assert same_constant(float("nan"), float("nan"))
    assert not same_constant(0.0, -0.0)
    assert not same_constant((1,), (True,))
    assert same_constant(frozenset({1, "a"}), frozenset({"a", 1}))
    assert not same_constant(frozenset({1}), frozenset({1.0}))


def test_line_map_gives_lines_of_the_recompiled_text():
    source = "def f(a):\n    b = a + 1\n    return b * 2\n"
    space: dict = {}
    exec(compile("\n\n\n" + source, "x", "exec"), space)
    original = space["f"].__code__
    exec(compile(source, "y", "exec"), space)
    recompiled = space["f"].__code__
    lines = line_map(same_program(Code.of(original), Code.of(recompiled)), recompiled)
    assert set(lines.values()) == {2, 3}


# --- mutants --------------------------------------------------------------------------------------
OTHER = {"+": "-", "-": "+", "*": "/", "<": "<=", "==": "!=", ">": ">=", "<=": "<", "!=": "==", ">=": ">", "%": "//"}


def mutants(program, rng):
    """``(what, mutated program)``: one small change each, none of them without effect on what is done."""
    ops = program.ops

    def made(index, *replacement):
        return m.replaced(program, index, *replacement)

    for index in sorted(m.reached(program)):
        op = ops[index]
        if op.kind in (o.BINARY, o.COMPARE, o.INPLACE) and op.arg in OTHER:
            yield f"operator at {index}", made(index, m.changed(op, arg=OTHER[op.arg]))
        if op.kind is o.CONST:
            other = {int: lambda v: float(v), bool: lambda v: int(v), str: lambda v: v + "x",
                     type(None): lambda v: False}.get(type(op.arg), lambda v: "another")(op.arg)
            yield f"constant at {index}", made(index, m.changed(op, arg=other))
        if op.kind in (o.LOAD_FAST, o.STORE_FAST, o.LOAD_GLOBAL, o.LOAD_ATTR, o.STORE_ATTR):
            yield f"name at {index}", made(index, m.changed(op, arg=op.arg + "_"))
        if op.kind is o.CALL:
            yield f"keyword at {index}", made(index, m.changed(op, arg=(op.arg[0], (*op.arg[1], "k"))))
        if op.kind is o.BRANCH and _follow_jumps(ops, op.target) != _follow_jumps(ops, index + 1):
            yield f"sense at {index}", made(index, m.changed(op, arg=not op.arg))
            yield f"jump at {index}", made(index, m.changed(op, target=index + 1))
        if op.kind is o.FOR_ITER:
            yield f"exit at {index}", made(index, m.changed(op, target=index + 1))
        if op.handler >= 0 and op.kind not in CANNOT_RAISE:
            yield f"handler of {op.kind} at {index}", made(index, m.changed(op, handler=-1))
        if op.target < 0 and op.kind not in NO_FALL_THROUGH:
            following = ops[index + 1]
            if (following.kind, following.arg) != (op.kind, op.arg):
                yield f"dropped {index}", made(index)
                yield f"twice {index}", made(index, op, op)


def test_mutants_of_real_functions_are_rejected():
    rng = random.Random(0)
    tried, survivors = 0, []
    for code in functions():
        program = canonicalise(Code.of(code))
        found = list(mutants(program, rng))
        for what, mutant in rng.sample(found, min(len(found), 25)):
            tried += 1
            if same_program(program, mutant):
                survivors.append(f"{code.co_qualname if hasattr(code, 'co_qualname') else code.co_name}: {what}")
    assert tried >= 500
    assert not survivors


def test_equivalence_accepts_temporaries_and_rejects_their_misuse():
    plain = code_of("def f(a, b): return g(a.x, [a, b], *b)")
    named = code_of("def f(a, b):\n h = g\n t = a.x\n return h(t, [a, b], *b)")
    wrong = code_of("def f(a, b):\n h = g\n t = a.x\n return h(t, [b, a], *b)")
    late = code_of("def f(a, b):\n t = a.x\n h = g\n return h(t, [a, b], *b)")
    assert equivalent(plain, named), equivalent(plain, named).where
    assert not equivalent(plain, wrong)
    assert not equivalent(plain, late)


def test_equivalence_of_list_juggling():
    juggled = code_of("def f(a, b):\n l = [[a], b]\n l[0][0:0] = [b]\n m = l[0]\n m += [l[-1]]\n return g(*[1, *m][1:])")
    # ``+=`` on a list is an operation of its own, so this stays unproven rather than wrongly proven.
    assert not equivalent(juggled, code_of("def f(a, b): return g(b, a)"))
    built = code_of("def f(a, b):\n l = [[a], b]\n l[0][0:0] = [b]\n return g(*[1, *l[0]][1:])")
    assert equivalent(built, code_of("def f(a, b): return g(b, a)"))
    assert not equivalent(built, code_of("def f(a, b): return g(a, b)"))


def test_equivalence_through_loops_and_handlers():
    plain = code_of("def f(xs):\n s = 0\n for x in xs:\n  try:\n   s = s + g(x)\n  except E:\n   return s\n return s")
    named = code_of("def f(xs):\n t = 0\n for y in xs:\n  try:\n   h = g\n   u = h(y)\n   t = t + u\n  except E:\n   return t\n"
                    " return t")
    wrong = code_of("def f(xs):\n t = 0\n for y in xs:\n  try:\n   h = g\n   u = h(y)\n   t = t + u\n  except E:\n   return u\n"
                    " return t")
    assert equivalent(plain, named), equivalent(plain, named).where
    assert not equivalent(plain, wrong)


def test_mutants_are_not_equivalent_either():
    """Mutants that change an effect; changes of what only locals hold may be without effect."""
    rng = random.Random(1)
    tried, survivors = 0, []
    for code in functions():
        program = canonicalise(Code.of(code))
        if not equivalent(program, program):
            continue  # the prover is allowed to be unsure; then there is nothing to test here
        found = [(w, m) for w, m in mutants(program, rng)
                 if w.split()[0] in ("operator", "keyword", "sense", "jump", "exit")
                 or w.startswith(("handler of CALL", "handler of LOAD_ATTR", "handler of BINARY"))]
        for what, mutant in rng.sample(found, min(len(found), 15)):
            tried += 1
            if equivalent(program, mutant):
                survivors.append(f"{code.co_name}: {what}")
    assert tried >= 200
    assert not survivors


@pytest.mark.skipif(sys.version_info < (3, 12), reason="comprehensions are functions")
@pytest.mark.parametrize("result", [
    "[(item, a) for item in items if item]", "{item for item in items}", "{item: a for item in items}",
    "[[inner, item] for item in items for inner in item]", "[[(a, inner) for inner in item] for item in items]",
    "sum([item for item in items]) or [item for item in items]"])
def test_a_comprehension_of_the_function_itself(result):
    """Since 3.12 its container grows in the function, unseen, and its loop is one of the function's."""
    plain = f"def f(a, items):\n    return {result}"
    named = f"def f(a, items):\n    kept = a\n    return {result}"
    left, right = code_of(plain), code_of(named)
    for one, other in ((left, right), (right, left)):
        verdict = equivalent(one, other)
        assert verdict, verdict.where
    for wrong in (result.replace("in items", "in a", 1), result.replace("item", "a", 1), f"{result}[1:]"):
        assert not equivalent(left, code_of(named.replace(result, wrong))), wrong


def test_an_empty_set_is_one_however_it_is_made():
    """Dynamo writes BUILD_SET 0, for which source has only ``{*()}`` (found by torchdiffeq)."""
    written = canonicalise(code_of("def f(a): return g({*()}, a)"))
    ops = [op for index, op in enumerate(written.ops)
           if op.kind != "SET_UPDATE" and written.ops[index + 1 : index + 2] and written.ops[index + 1].kind != "SET_UPDATE"
           or op.kind == "RETURN"]
    made = Program(written.code, ops, written.handlers)
    assert len(ops) == len(written.ops) - 2 and equivalent(made, written), equivalent(made, written).where
    assert not equivalent(made, canonicalise(code_of("def f(a): return g({1}, a)")))
    assert not equivalent(made, canonicalise(code_of("def f(a): return g({*(1,)}, a)")))
    assert not equivalent(made, canonicalise(code_of("def f(a): return g([], a)")))


@pytest.mark.parametrize("left, right", [
    ("def f(): return a.x", "def f(): return b.x"),
    ("def f(): return a.x", "def f(): return a.y"),
    ("def f(): return 1", "def f(): return True"),
    ("def f(): return 0.0", "def f(): return -0.0"),
    ("def f(): return g((1, 2))", "def f(): return g((1, 2.0))"),
    ("def f(): return lambda: a", "def f(): return lambda: b"),
    ("def f(x, y): return x", "def f(y, x): return y"),
    ("def f():\n 'a'\n return 1", "def f():\n 'b'\n return 1"),
])
def test_the_same_bytes_are_not_yet_the_same_program(left, right):
    a, b = code_of(left), code_of(right)
    assert a.bytecode == b.bytecode
    assert not same_program(a, b)


def test_the_same_bytes_need_no_walk():
    a, b = code_of("def f(x):\n return [x, g(x)]"), code_of("\n\ndef f(x): return [x, g(x)]")
    verdict = same_program(a, b)
    assert verdict
    assert {left for left, _ in verdict.pairs} == {op.offset for op in canonicalise(a).ops}
    assert "_operations" not in b.__dict__
    assert not same_program(a, b, rename={"g": "h"})
