"""Work grows with the size of the code, not with its square: counted in calls, which are the same in every run."""

import sys
import textwrap

import pytest

from depyf.decompiler import Fidelity, decompile_code

BODIES = {
    "assignments and calls": "a = f(a, b + {i})\nb[{i}] = a.x",
    "branches": "if a > {i} and b:\n    a = f(b)\nelif c or a:\n    b = {i}\nelse:\n    c = g(a)",
    "loops": "for i in f({i}):\n    if i:\n        continue\n    while a:\n        a = g(a, i)",
    "endless loops": "while True:\n    a = f(a, {i})\n    if b:\n        break\n    c = g(a)",
    "try and with": "try:\n    with f(a) as c:\n        g(c, {i})\nexcept ValueError as e:\n    b = e",
    "try, except and finally": "try:\n    a = f(a, {i})\nexcept ValueError:\n    b = g(a)\nfinally:\n    c = f(b)",
    "loops with else": "for i in f({i}):\n    if i:\n        break\nelse:\n    a = g(a)",
    "comprehensions": "a = [x + {i} for x in b if x]",
    "guards": "if a == {i}:\n    return b\nb = f(a)",
    "try and else": "try:\n    a = f({i})\nexcept ValueError:\n    b = c\nelse:\n    b = a",
}
#: The same in one loop.
IN_A_LOOP = {
    "guards": "if a == {i}:\n    continue\nb = f(a)",
    "guards that leave it": "if a == {i}:\n    break\nb = f(a)",
    "with": "with f({i}) as c:\n    if c:\n        continue",
}
#: At four times the size, so many times the calls at most.
TIMES = 4.8


def function(body, number, head="def f(a, b, c):\n"):
    text = head + "".join(textwrap.indent(body.replace("{i}", str(i)) + "\n", "    " * head.count("\n"))
                          for i in range(number))
    namespace = {}
    exec(compile(text, "text.py", "exec", dont_inherit=True), namespace)
    return namespace["f"].__code__, text


def calls_of(action):
    """Return how many functions are called while an action runs."""
    count = 0

    def called(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("kind", BODIES)
def test_work_grows_with_the_size(kind):
    small, large = (function(BODIES[kind], number)[0] for number in (40, 160))
    decompile_code(small)  # (what is made once)
    assert calls_of(lambda: decompile_code(large)) < TIMES * calls_of(lambda: decompile_code(small))


@pytest.mark.parametrize("kind", IN_A_LOOP)
def test_work_grows_with_the_size_of_a_loop(kind):
    head = "def f(a, b, c):\n    for x in a:\n"
    small, large = (function(IN_A_LOOP[kind], number, head)[0] for number in (40, 160))
    decompile_code(small)
    assert calls_of(lambda: decompile_code(large)) < TIMES * calls_of(lambda: decompile_code(small))


def test_work_grows_with_the_returns_in_a_with():
    """All have the place of the `with`, which they leave."""
    def code(number):
        returns = "".join(f"    if a == {i}:\n        return b.f({i})\n" for i in range(number))
        return function(f"with a:\n{returns}return c", 1)[0]

    small, large = code(40), code(160)
    decompile_code(small)
    assert calls_of(lambda: decompile_code(large)) < TIMES * calls_of(lambda: decompile_code(small))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="without columns no spelling of a test is laid out")
def test_work_grows_with_the_operands_of_a_test_over_lines():
    def code(number):
        operands = "\n".join(f"    and a[{i}] == {i}" for i in range(number))
        return function(f"if (\n    a\n{operands}\n):\n    if b:\n        c(a)", 1)[0]

    small, large = code(40), code(160)
    decompile_code(small)
    assert calls_of(lambda: decompile_code(large)) < TIMES * calls_of(lambda: decompile_code(small))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns tell what is behind a loop")
def test_what_follows_an_endless_loop_is_not_in_it():
    code, text = function(BODIES["endless loops"], 60)
    found = decompile_code(code)
    assert found.fidelity is Fidelity.EXACT
    assert found.text.strip() == text.strip()


@pytest.mark.parametrize("guard", [
    "if a == {i}:\n    return {i}", "if a == {i}:\n    raise b({i})", "assert a, {i}",
    "if a == {i}:\n    continue\nb({i})", "if a == {i}:\n    break\nb({i})"])
def test_python_s_stack_is_no_limit_to_guards(guard):
    inside = "continue" in guard or "break" in guard
    many = "\n".join(guard.replace("{i}", str(i)) for i in range(500))
    body = "for a in b:\n" + textwrap.indent(many, "    ") if inside else many + "\nreturn b"
    found = decompile_code(function(body, 1)[0])
    assert found.fidelity is Fidelity.EXACT
    assert max(len(line) - len(line.lstrip()) for line in found.text.splitlines()) <= 12
