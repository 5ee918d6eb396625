"""The proof's conscience: real functions, changed a little, are other programs; laid out anew, they are the same."""

import ast
import collections
import random
import sys
import warnings

import mutants as m
import pytest

from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import Code
from depyf.decompiler.proof.equivalence import equivalent
from depyf.decompiler.proof.exact import same_program

#: Every kind of change, with how many are tried at least.
KINDS = {
    "operator": 15, "constant": 15, "twin": 30, "name": 15, "attribute": 15, "count": 15, "keyword": 15, "defaults": 5,
    "closure": 5, "nested code": 15, "order of a closure": 3, "sense": 15, "target": 15,
    "handler shortened": 10, "handler removed": 10, "handler lengthened": 10, "handler depth": 10, "handler lasti": 10,
    "handler entry": 10, "handler retargeted": 5, "dropped": 15, "duplicated": 15, "order": 15, "arguments": 15,
    "flags": 15, "parameters": 15, "cells": 15, "docstring": 15, "code name": 15,
}
SOURCE_KINDS = {
    "source: dropped": 5, "source: duplicated": 5, "source: order": 3, "source: defaults": 3, "source: docstring": 3,
    "source: sense": 3, "source: handler": 3, "source: operator": 5, "source: and, or": 3, "source: arguments": 5,
    "source: keyword": 3, "source: star": 1, "source: constant": 5, "source: attribute": 5, "source: name": 5,
    "source: return": 5, "source: nested code": 1, "source: decorator": 1,
}
if sys.version_info >= (3, 11):
    KINDS["qualified name"] = 5


def test_changed_programs_are_rejected():
    rng = random.Random(20)
    tried: collections.Counter = collections.Counter()
    survivors = []
    for code in m.functions(seed=1, count=60):
        program = canonicalise(code)
        by_kind: dict = {}
        for kind, made in m.canonical_mutants(program, rng):
            by_kind.setdefault(kind, []).append(made)
        for kind, found in by_kind.items():
            if tried[kind] >= 60 and kind in KINDS:
                continue
            for made in rng.sample(found, min(len(found), 3)):
                tried[kind] += 1
                if same_program(program, made()):
                    survivors.append(f"{code.filename}:{code.firstlineno} {code.name}: {kind}")
    assert not survivors, survivors[:20]
    assert set(tried) == set(KINDS)
    assert not {kind: tried[kind] for kind, least in KINDS.items() if tried[kind] < least}
    assert sum(tried.values()) >= 800


def test_changed_sources_are_rejected():
    rng = random.Random(21)
    tried: collections.Counter = collections.Counter()
    survivors = []
    for file, text in m.sources(seed=2, count=60):
        top = ast.parse(text).body
        methods = [stmt for owner in top if isinstance(owner, ast.ClassDef) for stmt in owner.body]
        for tree in (*top, *methods):
            if not isinstance(tree, ast.FunctionDef) or tree.end_lineno - tree.lineno > 100:
                continue
            original = compiled(tree, file)
            for kind, mutant in m.source_mutants(tree, rng, lambda kind: tried[kind] < 50):
                try:
                    other = compiled(mutant, file)
                except SyntaxError:
                    continue  # (the change made something that is not Python)
                tried[kind] += 1
                if same_program(original, other):
                    survivors.append(f"{file}:{tree.lineno} {tree.name}: {kind}\n{ast.unparse(mutant)}")
    assert not survivors, "\n".join(survivors[:3])
    assert set(tried) == set(SOURCE_KINDS)
    assert not {kind: tried[kind] for kind, least in SOURCE_KINDS.items() if tried[kind] < least}
    assert sum(tried.values()) >= 500


def compiled(tree, file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Code.of(compile(ast.Module([tree], []), file, "exec", dont_inherit=True))


def test_other_layouts_are_accepted():
    rng = random.Random(22)
    tried: collections.Counter = collections.Counter()
    for code in m.functions(seed=3, count=25):
        program = canonicalise(code)
        for what, other in m.layouts(program, rng):
            tried[what] += 1
            for left, right in ((program, other), (other, program)):
                verdict = same_program(left, right)
                assert verdict, f"{code.filename}:{code.firstlineno} {code.name}, {what}: {verdict.where}"
    assert len(tried) == 5 and min(tried.values()) >= 100


def test_other_texts_of_a_program_are_accepted():
    for file, text in m.sources(seed=4, count=25):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            original = Code.of(compile(text, file, "exec", dont_inherit=True))
            passes = ast.fix_missing_locations(m.WithPass().visit(ast.parse(text)))
            for other in (compile("\n\n" + ast.unparse(ast.parse(text)), "other", "exec", dont_inherit=True),
                          compile(passes, "other", "exec", dont_inherit=True)):
                verdict = same_program(original, Code.of(other))
                assert verdict, f"{file}: {verdict.where}"


def test_mutants_that_change_what_is_done_are_not_equivalent():
    """``equivalent`` forgives what only locals and the stack see, so only what others see is changed."""
    seen = {"operator", "keyword", "attribute", "sense", "flags", "parameters", "docstring", "handler removed", "nested code"}
    rng = random.Random(23)
    tried: collections.Counter = collections.Counter()
    survivors = []
    for code in m.functions(seed=5, count=16):
        program = canonicalise(code)
        same = equivalent(program, program)
        if len(program.ops) > 300 or not same:
            continue  # the prover may be unsure; then there is nothing to test
        reached = {offset for offset, _ in same.pairs}
        found = [(kind, made) for kind, made in m.canonical_mutants(program, rng) if kind in seen]
        for kind, made in rng.sample(found, min(len(found), 4)):
            mutant = made()
            changed = {left.offset for left, right in zip(program.ops, mutant.ops)
                       if left.arg != right.arg and left.kind != "CONST"}
            if len(program.ops) == len(mutant.ops) and changed and not changed & reached:
                continue  # behind a test of a constant (``note = ""; note and g(note)``)
            tried[kind] += 1
            if equivalent(program, mutant):
                survivors.append(f"{code.filename}:{code.firstlineno} {code.name}: {kind}")
    assert not survivors, survivors[:20]
    assert set(tried) == seen and sum(tried.values()) >= 250


# --- what attacks of the proof found ----------------------------------------------------------------
def function(source, name="f"):
    space: dict = {}
    exec(compile(source, "test", "exec", dont_inherit=True), space)
    return Code.of(space[name].__code__)


def module(source):
    return Code.of(compile(source, "test", "exec", dont_inherit=True))


@pytest.mark.parametrize("left, right", [
    ("def f(a, b): return {1: a, 2: b}", "def f(a, b): return {True: a, 2: b}"),
    ("def f(a, b): return {0.0: a, 2: b}", "def f(a, b): return {-0.0: a, 2: b}"),
    ("def f(a): return a in {(1, 2), 3}", "def f(a): return a in {(2, 1), 3}"),
    ("def f(a): return a in {1, 'x'}", "def f(a): return a in {True, 'x'}"),
    ("def f(a): return 1e400 - 1e400", "def f(a): return -(1e400 - 1e400)"),
    ("def f(): return -0j", "def f(): return 0j"),
    ("def f(): return '\\ud800'", "def f(): return '\\ud801'"),
    ("def f(): return 'x'", "def f(): return b'x'"),
    ("def f(): return 1 << 70", "def f(): return (1 << 70) + 1"),
    ("def f():\n def g(): return 1\n return g", "def f():\n def g():\n  'doc'\n  return 1\n return g"),
])
def test_constants_that_look_alike(left, right):
    assert not same_program(function(left), function(right))


@pytest.mark.parametrize("left, right", [
    ("__firstlineno__ = 5", "__firstlineno__ = 6"),
    ("class A:\n __firstlineno__ = 5", "class A:\n __firstlineno__ = 6"),
    ("class A:\n __firstlineno__ = 5", "class A:\n __firstlineno__ = 'x'"),
])
def test_only_the_compilers_own_line_numbers_are_layout(left, right):
    assert not same_program(module(left), module(right))
    assert same_program(module("class A: pass"), module("\n\nclass A: pass"))


def test_a_renamed_global_is_no_other_global():
    renamed = {"A": "B"}
    assert same_program(function("def f(): return A"), function("def f(): return B"), rename=renamed)
    assert not same_program(function("def f(): return A + B"), function("def f(): return B + B"), rename=renamed)
    assert not same_program(function("def f(): return A + (lambda: B)()"),
                            function("def f(): return B + (lambda: B)()"), rename=renamed)
    renamed = {"__import_A": "__import_B"}
    assert not equivalent(function("def f(): return __import_A + __import_B"),
                          function("def f(): return __import_B + __import_B"), rename=renamed)


def test_a_skipped_not_keeps_its_handler():
    """It is the ``not`` that asks for the truth of the value: it must lie under the handler that the test had."""
    from depyf.bytecode import operations as o
    from depyf.bytecode.operations import Op

    program = canonicalise(function("def f(a):\n try:\n  if a: g()\n except E: h()"))
    at = next(i for i, op in enumerate(program.ops) if op.kind is o.BRANCH)
    branch = program.ops[at]
    inverted = m.changed(branch, arg=not branch.arg)
    assert branch.handler >= 0
    assert same_program(program, m.replaced(program, at, Op(o.UNARY, "not", handler=branch.handler), inverted))
    assert not same_program(program, m.replaced(program, at, Op(o.UNARY, "not", handler=-1), inverted))


def test_a_constant_object_is_itself():
    class Sly:
        def __eq__(self, other):
            return True

    code = function("def f(): return None")
    one, other = Sly(), Sly()

    def returning(value):
        program = canonicalise(code)
        assert program.ops[0].kind == "CONST"
        return m.replaced(program, 0, m.changed(program.ops[0], arg=value))

    assert same_program(returning(one), returning(one))
    assert not same_program(returning(one), returning(other))


def test_equivalence_tells_two_exceptions_apart():
    source = "def f():\n try: a\n except E as e1:\n  try: b\n  except F as e2:\n   return g({})"
    assert equivalent(function(source.format("e1")), function(source.format("e1")))
    assert not equivalent(function(source.format("e1")), function(source.format("e2")))


@pytest.mark.parametrize("arms", [["x = 1", "pass", "x = 2"], ["pass", "x = 1", "x = 2"], ["x = 2", "x = 1", "pass"]])
def test_equivalence_compares_what_a_variable_holds_that_may_be_unbound(arms):
    source = "def f(c, d):\n if c: {}\n elif d: {}\n else: {}\n g()\n while h(): k()\n return x"
    other = [arm.replace("2", "3") for arm in arms]
    assert equivalent(function(source.format(*arms)), function(source.format(*arms)))
    assert not equivalent(function(source.format(*arms)), function(source.format(*other)))


def test_equivalence_knows_which_of_equal_items_a_set_keeps():
    assert not equivalent(function("def f(): return {1, True}"), function("def f(): return {True, 1}"))
    assert equivalent(function("def f(): return {1, 2}"), function("def f(): return {2, 1}"))


def test_equivalence_misses_values_that_a_stack_lacks():
    """``BUILD_LIST 1`` of an empty stack is no empty list."""
    from depyf.bytecode import operations as o

    program = canonicalise(function("def f(): return []"))
    at = next(i for i, op in enumerate(program.ops) if op.kind is o.BUILD_LIST)
    assert equivalent(program, program)
    assert not equivalent(program, m.replaced(program, at, m.changed(program.ops[at], arg=1)))
