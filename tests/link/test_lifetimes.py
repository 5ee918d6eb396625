"""What runs in place of Dynamo's code keeps nothing longer, and its constants are the real objects."""

import ast
import dis
import gc
import sys
import textwrap
import weakref

import pytest

from depyf.decompiler.constants import CellOf, constant_values
from depyf.decompiler.proof.parts import first_mismatch
from depyf.link import lifetimes
from depyf.link.lifetimes import free_unused
from depyf.link.transformed import CannotStandIn, with_constants, with_moves


class Value:
    """Something that can be watched, and that anything can be done with."""

    def __init__(self, *parts):
        self.parts = parts

    def __add__(self, other):
        return Value(self, other)

    def __getitem__(self, index):
        return self.parts[index]


def compiled(text):
    code = compile(text, "<text>", "exec", dont_inherit=True)
    return next(c for c in code.co_consts if hasattr(c, "co_code"))


def freeing(text):
    """``(code of the text, code that frees)``, both of one function."""
    text = textwrap.dedent(text)
    plain = compiled(text)
    definition = ast.parse(text).body[0]
    freed = free_unused(definition, plain.co_cellvars)
    code = compiled(ast.unparse(definition))
    return plain, with_moves(code, freed.mark) if freed.mark else code


def calling(code, space):
    return type(freeing)(code, space)


class Watching:
    """Globals for a function: ``new(n)`` makes values, every other call notes which of them are alive."""

    def __init__(self):
        self.values = []
        self.seen = []

    def new(self, name, *parts):
        value = Value(*parts)
        self.values.append((name, weakref.ref(value)))
        return value

    def pair(self, left, right):
        return self.new(left), self.new(right)

    def note(self, where, *values):
        self.seen.append((where, "".join(name for name, ref in self.values if ref() is not None)))
        return len([self.seen, *values])  # it holds what it is handed

    def run(self, code, *arguments):
        gc.disable()
        try:
            result = calling(code, {"new": self.new, "note": self.note, "pair": self.pair})(*arguments)
        finally:
            gc.enable()
        return result


#: Function, what is alive at each note as it stands, and as it frees.
FREED = [
    ("""
     def f():
         g = pair('a', 'b')
         x = g[0]
         note(1)
         return note(2, x)
     """, ["ab", "ab"], ["a", "a"]),  # the call that is handed x holds it
    ("""
     def f():
         x = new('a')
         y = new('b', x)
         note(1)
         y = new('c')
         note(2)
         return y
     """, ["ab", "ac"], ["", "c"]),
    ("""
     def f(c):
         x = new('a')
         y = (0 if c else x), note(1, c and 0 or x and 0, 0 < 1 < 2 or x), x and 0
         return note(2)
     """, ["a", "a"], ["a", ""]),
    ("""
     def f(c):
         x = new('a')
         y = note(1, x), (c or x) and 0
         return note(2, y)
     """, ["a", "a"], ["a", ""]),
    ("""
     def f(c):
         x, d = new('a'), {}
         d[note(1, x)]: int = note(2, x)
         return note(3)
     """, ["a", "a", "a"], ["a", "a", ""]),
    ("""
     def f(c):
         x, y = pair('a', 'b')
         if c:
             note(1)
             return x
         note(2)
         return y
     """, ["ab"], ["a"]),
    ("""
     def f(c):
         x = new('a')
         y = new('b')
         if c:
             y = note(1, y)
         note(2)
         note(3, x)
         return y
     """, ["ab", "a", "a"], ["ab", "a", "a"]),
    ("""
     def f(c):
         x = new('a')
         for i in (1, 2):
             note(i, x)
         note(3)
         return c
     """, ["a", "a", "a"], ["a", "a", ""]),
    ("""
     def f(c):
         x = new('a')
         y = new('b')
         try:
             note(1, y)
             note(2)
             raise ValueError
         except ValueError:
             note(3, x)
         note(4)
         return c
     """, ["ab", "ab", "ab", "ab"], ["ab", "ab", "ab", ""]),
]


@pytest.mark.parametrize("text, plainly, freed", FREED, ids=range(len(FREED)))
def test_values_end_with_their_last_use(text, plainly, freed):
    for code, expected in zip(freeing(text), (plainly, freed)):
        watching = Watching()
        watching.run(code, *[True] * code.co_argcount)
        assert [alive for _, alive in watching.seen] == expected


@pytest.mark.parametrize("text", [text for text, _, _ in FREED] + ["""
    def f(a):
        x = a + 1
        y = -x
        return [i + y for i in (x,)]
    """, """
    def f(a):
        x = a + 1
        while x < 5:
            y = x
            x = y + note(x)
        return x
    """, """
    def f(a):
        x = a if a else note(0)
        y = x and note(x) or x
        return note(y) if a else x
    """, """
    def f(a):
        x = note(1)
        x += note(x)
        (x := x + 1)
        del a
        return note(x, x) + x
    """, """
    def f(a):
        x = new('a')
        def g():
            return x
        y = g
        return note(y(), y)
    """, """
    def f(a):
        x = note(a)
        y = note(x)
        return note({x: y, a: x}, y) or note({a: x and y})
    """, """
    def f(a):
        x = note(a)
        with a:
            y = note(x)
            x = note(y)
        return note(x)
    """])
def test_a_function_that_frees_is_proven_the_same(text):
    plain, freed = freeing(text)
    assert first_mismatch(plain, freed, {}) == ""


def test_a_name_is_there_until_the_next_statement():
    _, code = freeing("def f():\n    g = pair('a', 'b')\n    x = g[0]\n    note(1)\n    return note(2, x)\n")
    names = {}

    def trace(frame, event, argument):
        if frame.f_code is code and event == "line":
            names[frame.f_lineno - code.co_firstlineno] = set(frame.f_locals)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        Watching().run(code)
    finally:
        sys.settrace(before)
    # (``ast.unparse`` of this test gives the ``del`` a line of its own.)
    assert [names[line] for line in sorted(names)] == [set(), {"g"}, {"g", "x"}, {"x"}, {"x"}]


def test_names_that_others_may_see_are_kept():
    text = "def f():\n    x = new('a')\n    y = locals()\n    note(1)\n    return y\n"
    assert not free_unused(ast.parse(text).body[0], ()).changed


def test_an_operator_of_the_text_is_never_taken_for_a_mark():
    text = "def f(a):\n    x = note(a)\n    return note(~x)\n"
    plain, code = freeing(text)
    assert "UNARY_INVERT" in {i.opname for i in dis.get_instructions(code)}
    assert first_mismatch(plain, code, {}) == ""
    text = "def f(a):\n    x = note(a)\n    y = note(-a)\n    return note(~x, y)\n"
    assert free_unused(ast.parse(text).body[0], ()).mark is None


def test_a_wrong_move_is_not_proven(monkeypatch):
    monkeypatch.setattr(lifetimes._Freeing, "lives", lambda _, block, *unused: [frozenset()] * (len(block) + 1))
    plain, code = freeing("def f():\n    x = new('a')\n    note(1, x)\n    return note(2, x)\n")
    assert first_mismatch(plain, code, {}) != ""


def test_moves_come_from_variables_only():
    with pytest.raises(CannotStandIn):
        with_moves(compiled("def f(a):\n    return ~a.b\n"), ast.Invert)


# --- constants -------------------------------------------------------------------------------------
def test_constants_are_the_objects_again():
    marker = object()
    code = compiled("def f(a):\n    return (__constant_0_object, a, [__constant_0_object, __constant_1_list.copy()])\n")
    constants = calling(with_constants(code, {"__constant_0_object": marker, "__constant_1_list": [7]}), {})(3)
    assert constants == (marker, 3, [marker, [7]])


def test_constants_that_are_called():
    code = compiled("def f(a):\n    return __constant_0_type(a) + __constant_0_type('2')\n")
    assert calling(with_constants(code, {"__constant_0_type": int}), {})("40") == 42


def test_a_constant_far_back_in_the_row():
    many = ", ".join(f"{n}.5, a" for n in range(400))
    code = compiled(f"def f(a):\n    [{many}]\n    return __constant_0_object\n")
    if sys.version_info >= (3, 11):
        marker = object()
        assert calling(with_constants(code, {"__constant_0_object": marker}), {})(1) is marker
    else:  # no room: one code unit
        with pytest.raises(CannotStandIn):
            with_constants(code, {"__constant_0_object": 1})


def test_cells_as_values():
    text = """
def outer():
    free = 5
    def f(a):
        cell = [a]
        return __constant_0, __constant_1, lambda: (cell, free)
    return f
"""
    space = {}
    exec(text, space)
    function = space["outer"]()
    values = {"__constant_0": CellOf("cell"), "__constant_1": CellOf("free")}
    function.__code__ = with_constants(function.__code__, values)
    cell, free, inner = function(1)
    assert (cell.cell_contents, free.cell_contents) == ([1], 5)
    assert inner.__closure__ == (cell, free)


@pytest.mark.parametrize("text", [
    "def f():\n    def g():\n        return __constant_0\n    return g\n",
    "def f():\n    global __constant_0\n    __constant_0 = 1\n",
])
def test_constants_are_only_read_and_only_here(text):
    with pytest.raises(CannotStandIn):
        with_constants(compiled(text), {"__constant_0": 1})


def test_the_object_behind_each_name():
    marker, other = object(), [3]
    code = compiled("def f(a):\n    return ('first', a, 'second', 'first')\n")
    if "first" not in code.co_consts:
        pytest.skip("the compiler made one constant of them")
    objects = {"first": marker, "second": other}
    code = code.replace(co_consts=tuple(objects.get(c, c) for c in code.co_consts))
    assert constant_values(code) == {"__constant_0_object": marker, "__constant_1_list": other}
