"""The measure of ``make natural``: what is normalised, how functions are paired, how differences are named."""

import ast
import pathlib
import sys
import textwrap

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "benchmarks"))
from as_written import measure as measures
from as_written import normalise as rules
from as_written.classes import difference
from as_written.continuation import continuations, function_at, with_user_words
from as_written.stripped import stripped

from depyf.bytecode.code import Code
from depyf.decompiler.proof.exact import same_program

HERE = sys.version_info[:2]

#: Each rule with two bodies of ``def f(x, y, z)`` that are one program.
ONE_PROGRAM = [
    ("folded_operators", "return 60 * 60 + -x[(1, 2)[0]]", "return 3600 + -x[1]"),
    ("folded_operators", "return 'a' * 3, 2 ** 10, not 0", "return ('aaa', 1024, True)"),
    ("folded_tuples", "return x, (1, (2, -3))", "return x, (1, (2, -(1 + 2)))"),
    ("folded_debug", "return __debug__", "return True"),
    ("without_string_kinds", "return u'a'", "return 'a'"),
    ("displays_searched", "return x in [1, 2]", "return x in (1, 2)"),
    ("displays_searched", "return x not in {2, 1, 1}", "return x not in {1, 2}"),
    ("displays_searched", "for i in [x, y]: z(i)", "for i in (x, y): z(i)"),
    ("displays_searched", "return [i for i in [1, 2]]", "return [i for i in (1, 2)]"),
    ("sets_sorted", "return {3, 1, 2}", "return {1, 2, 3, 1}"),
    ("not_in", "return not x in y", "return x not in y"),
    ("not_in", "return not x is y", "return x is not y"),
    ("joined_strings", "return f'a' 'b' + f'c{x}' 'd' f'e'", "return 'ab' + f'c{x}de'"),
    ("decided_expressions", "return x if 1 else y", "return x"),
    ("decided_expressions", "return 0 or x", "return x"),
    ("targets_as_tuples", "[a, b] = x\ndel (a, [b])", "a, b = x\ndel a, b"),
    ("endless_loops", "while 1:\n  x()\nelse:\n  y()", "while True: x()"),
    ("without_dead_else", "try:\n  return x()\nexcept E:\n  y()\nelse:\n  z()",
     "try:\n  return x()\nexcept E:\n  y()"),
    ("decided_statements", "if 0: x()\nelif __debug__: y()\nwhile 0: z()\nassert 1", "y()"),
    ("without_dead_code", "if x:\n  return y\n  z()\nelse:\n  raise z\nz()", "if x:\n  return y\nelse:\n  raise z"),
    ("without_dead_code", "while True:\n  x()\n  for i in y: break\nz()", "while True:\n  x()\n  for i in y: break"),
    ("without_dead_code", "try:\n  return x\nfinally:\n  y()\nz()", "try:\n  return x\nfinally:\n  y()"),
    ("without_constants", "'doc'\n'comment'\n...\npass\nx()\nif y: 1", "'doc'\nx()\nif y: pass"),
    ("without_declarations", "x()\nif y:\n  global b, a\n  a = b = 1", "global a\nglobal b\nx()\nif y: a = b = 1"),
    ("declarations", "global a\nreturn a", "return a"),
    ("without_annotations", "a: int = x\nb: int\nx.c: int = a", "a = x\nx.c = a"),
    ("without_annotations", "x.c: int", "x"),
    ("without_last_return", "x()\nreturn None", "x()"),
]
#: One program, but positions tell them apart.
TOLD_APART = [
    ("if x:\n  return None\ny()", "if x:\n  return\ny()"),
    ("if x: return y\nelse: return z", "if x: return y\nreturn z"),
    ("if x: y()", "if x:\n  y()\n  return"),
    ("if x and y: z()", "if x:\n  if y: z()"),
    ("if x and (y and z): z()", "if x and y and z: z()"),
    ("del x, y", "del x; del y"),
    ("import x, y", "import x; import y"),
    ("return [i for i in x if i and y]", "return [i for i in x if i if y]"),
    ("while 1:\n  if x: return y", "while 1:\n  if x: break\nreturn y"),
]


def function(body):
    return "def f(x, y, z):\n" + textwrap.indent(body, "    ") + "\n"


def normalised(text, version=HERE):
    return ast.dump(rules.normalise(ast.parse(text).body[0], version))


def code(text):
    return Code.of(compile(text, "sample.py", "exec").co_consts[0])


def positions(text):
    work = [compile(text, "sample.py", "exec").co_consts[0]]
    for made in work:  # (it grows)
        work += [const for const in made.co_consts if hasattr(const, "co_code")]
    return [list(made.co_positions()) for made in work]


@pytest.mark.parametrize("rule, left, right", ONE_PROGRAM)
def test_what_bytecode_does_not_hold(rule, left, right):
    left, right = function(left), function(right)
    assert same_program(code(left), code(right))
    assert normalised(left) == normalised(right)


def test_each_rule_has_a_sample():
    wanted = {rule.__name__ for rule in rules.RULES} - {"take_docstring"}
    assert wanted == {rule for rule, _, _ in ONE_PROGRAM}


@pytest.mark.parametrize("left, right", TOLD_APART)
def test_what_positions_hold(left, right):
    left, right = function(left), function(right)
    assert same_program(code(left), code(right))
    assert HERE < (3, 11) or positions(left) != positions(right)
    assert normalised(left) != normalised(right)


def test_indentation_of_docstrings():
    left, right = function('"""One.\n\n        Two.\n    """'), function('"""One.\n\nTwo.\n"""')
    assert normalised(left, (3, 13)) == normalised(right, (3, 13))
    assert normalised(left, (3, 12)) != normalised(right, (3, 12))


def test_a_class_inside_keeps_its_annotations():
    assert normalised(function("class A:\n  a: int = 1")) != normalised(function("class A:\n  a = 1"))


@pytest.mark.parametrize("source, ours, kind", [
    ("if x: y()", "if not x: pass\nelse: y()", "if turned: pass in the branch"),
    ("if x: return y\nelse: return z", "if x: return y\nreturn z", "else vs guard (return of a value)"),
    ("if x: return 1\nelif y: return 2\nz()", "if x: return 1\nif y: return 2\nz()",
     "elif chain vs guard (return of a value)"),
    ("for i in x:\n  if i: continue\n  y()", "for i in x:\n  if not i: y()",
     "if turned: guard (continue) vs the rest nested"),
    ("if x is None or not y: z()", "if not (x is not None and y): z()", "test said otherwise: not and De Morgan"),
    ("if x and (y and z): z()", "if x and y and z: z()", "and/or grouped otherwise"),
    ("if x:\n  if y: z()", "if x and y: z()", "nested if vs if and"),
    ("if x: pass\nelif y: z()", "if not x and y: z()", "nested if vs if and, turned"),
    ("return '%r' % (x,)", "return f'{x!r}'", "% vs f-string"),
    ("return x(*(y, *z))", "return x(y, *z)", "call: stars"),
    ("return y if x is None else z", "return z if x is not None else y", "conditional expression turned"),
    ("try: x()\nfinally: y()", "try:\n  x()\n  return\nfinally: y()", "try body ends in a return that nobody wrote"),
    ("try: x()\nexcept E: pass", "try: x()\nexcept E: return", "handler: pass vs return"),
    ("try: x()\nexcept E: return\nelse: y()", "try: x()\nexcept E: return\ny()", "try else vs what follows"),
    ("while x: y()", "while True:\n  if not x: break\n  y()", "while test vs while True"),
    ("with x, y: z()", "with x:\n  with y: z()", "with of several vs nested"),
    ("del x, y", "del x\ndel y", "delete of several vs one each"),
    ("return x.a", "return x.b", "other: Attribute.attr differs"),
    ("x()\ny()", "x()", "left out: expr"),
])
def test_the_class_of_a_difference(source, ours, kind):
    source, ours = (rules.normalise(ast.parse(function(body)).body[0], HERE) for body in (source, ours))
    assert difference(source, ours) == kind
    assert difference(source, source) == ""


MODULE = '''
def decorated(f):
    return f

class A:
    @decorated
    def f(self, x: int = 60 * 60):
        """Text."""
        def inner():
            pass
        return [x, inner]

    if 0:
        def never(self): ...

try:
    def g(): return 1
except E:
    def g(): return 2
'''


def test_functions_are_paired_by_their_code():
    made = measures.measure("sample.py", compile(MODULE, "sample.py", "exec"), MODULE.encode())
    assert [(row.name, row.kind, row.checked) for row in made.rows] == [
        (name, "", True) for name in ("decorated", "A.f", "g", "g")]


@pytest.mark.parametrize("mode", ["lines", "none"])
def test_positions_are_taken_out(mode):
    made = stripped(compile(MODULE, "sample.py", "exec"), mode)
    for const in (made, made.co_consts[0]):
        found = {line for _, _, line in const.co_lines()}
        assert found == {None} if mode == "none" else found != {None}
        if HERE >= (3, 11):
            assert {position[2] for position in const.co_positions()} == {None}
    assert not [row for row in measures.measure("sample.py", made, MODULE.encode()).rows if row.kind]


def test_forms_that_nobody_writes():
    tree = ast.parse("if x:\n    pass\nelif y:\n    z(not a is b, not a in b, a is not b)\nif x:\n    pass")
    assert sorted(measures.ugly(tree)) == sorted(measures.UGLY)


FUNCTION = """
def f(x, y):
    a = g(x) + y
    if a and (y or x):
        with c:
            g(a)
            a = 1
    elif x:
        return 2
    while h(a):
        a -= 1
    return a if x else y
"""
#: A line, and one of the ways in which the function goes on behind a break there.
WAYS = [
    (3, "a = g(x) + y"), (3, "if a and (y or x):"), (4, "if y or x:"), (4, "if x:"), (4, "with c:"),
    (6, "with the_context_that_is_entered_again:"), (9, "return 2"), (10, "while True:"),
    (10, "return a if x else y"), (11, "while h(a):"), (12, "return a"), (12, "return y"),
]


@pytest.mark.parametrize("line, first", WAYS)
def test_how_a_function_goes_on(line, first):
    tree = ast.parse(FUNCTION)
    ways = ["\n".join(map(ast.unparse, way)).splitlines() for way in continuations(function_at(tree, line), line)]
    assert first in [way[0] for way in ways if way]


def test_a_branch_goes_on_behind_it():
    ways = continuations(function_at(ast.parse(FUNCTION), 7), 7)
    assert "\n".join(map(ast.unparse, ways[1])).splitlines() == [
        "with the_context_that_is_entered_again:", "    pass", "while h(a):", "    a -= 1", "return a if x else y"]


@pytest.mark.parametrize("ours, user, wanted", [
    ("return ___stack0 + x", "return g(1) + x", "return g(1) + x"),
    ("return ___stack0 + x", "return g(1) - x", "return g(1) + x"),
    ("return x\nreturn ___stack0", "return x\nreturn y", "return x\nreturn ___stack0"),
    ("with ___stack0(False): g(___stack1)", "with the_context_that_is_entered_again: g(x)",
     "with the_context_that_is_entered_again:\n    g(x)"),
])
def test_values_at_hand_are_the_users_in_the_first_statement(ours, user, wanted):
    made = with_user_words(ast.parse(ours).body, ast.parse(user).body, frozenset({"___stack0", "___stack1"}))
    assert "\n".join(map(ast.unparse, made)) == wanted
