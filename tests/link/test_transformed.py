"""Stand-ins for Dynamo's code: same behaviour, lines of the text, and all that torch asserts."""

import ast
import dis
import sys
import textwrap
from types import SimpleNamespace

import pytest

from depyf.link.linker import Linker
from depyf.link.transformed import linked_code


def compiled(text, name="f"):
    """The code of function ``name`` in the text, however deep."""
    level = [compile(textwrap.dedent(text), "<dynamo>", "exec", dont_inherit=True)]
    while level:
        for code in level:
            if code.co_name == name:
                return code
        level = [c for code in level for c in code.co_consts if hasattr(c, "co_code")]
    raise AssertionError(name)


def decompiled(text, fidelity="exact", line_map=None):
    text = textwrap.dedent(text)
    return SimpleNamespace(
        text=text, tree=ast.parse(text), fidelity=fidelity, note="", line_map=line_map or {}, runs=None
    )


PARAMETERS = [
    ("def f(a, b):\n return a, b", None),
    ("def f(a, /, b=1, *c, d=2, **e):\n return a, b, c, d, e", None),
    ("def outer():\n y = x = 1\n def f(a):\n  return x, a\n y\n", "def f(a):\n return x, a"),
    ("def outer():\n z = x = 1\n def f(a):\n  nonlocal x\n  x = a\n  return z\n",
     "def f(a):\n nonlocal x\n x = a\n return z"),
    ("def f(a, b):\n return lambda: (b, a)", None),
    ("def f(a):\n 'doc'\n yield a\n", None),
    ("async def f(a):\n return a\n", None),
]


@pytest.mark.parametrize("text, shown", PARAMETERS)
def test_what_torch_asserts_holds(text, shown):
    original = compiled(text)
    code, lacking = linked_code(original, original, decompiled(shown or text), "dump.py", 11)
    assert not lacking
    assert code.co_filename == "dump.py"
    assert code.co_firstlineno == 11
    for name in ("co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_kwonlyargcount",
                 "co_posonlyargcount", "co_name"):
        assert getattr(code, name) == getattr(original, name), name
    assert code.co_flags & 0x2AC == original.co_flags & 0x2AC


def test_variables_that_the_text_does_not_use_are_kept():
    original = compiled("def outer():\n p = q = 1\n def f(a, b):\n  def g(): return a, p, q\n  return g\n")
    code, lacking = linked_code(original, original, decompiled("def f(a, b):\n    return b\n"), "d.py")
    assert not lacking
    assert code.co_freevars == ("p", "q")
    assert code.co_cellvars == ("a",)
    names = {i.opname for i in dis.get_instructions(code)}
    assert not names & {"LOAD_CLOSURE", "MAKE_FUNCTION", "STORE_DEREF"}, "the declarations never run"


def test_shown_names_are_real_again_when_it_runs():
    text = "def f(x):\n    return __compiled_fn_1_ab12_cd(x)[0]\n"
    shown = "def f(x):\n    return __compiled_fn_1(x)[0]\n"
    original = compiled(text)
    rename = {"__compiled_fn_1_ab12_cd": "__compiled_fn_1", "__compiled_fn_2_zz": "__compiled_fn_2"}
    code, lacking = linked_code(original, original, decompiled(shown), "d.py", rename=rename)
    assert not lacking
    assert code.co_names == ("__compiled_fn_1_ab12_cd",)


def test_two_real_names_behind_one_shown_name_are_refused():
    original = compiled("def f(x):\n    return g_1(x), g_2(x)\n")
    _, lacking = linked_code(
        original, original, decompiled("def f(x):\n    return g(x), g(x)\n", line_map={0: 2}), "d.py",
        rename={"g_1": "g", "g_2": "g"},
    )
    assert lacking.startswith("runs Dynamo's own bytecode, relocated")


@pytest.mark.parametrize("shown", [
    "def f(a, c):\n    return a\n",
    "def f(a, *b):\n    return a\n",
    "def f(a, b):\n    yield a\n",
    "def f(a, b):\n    return lambda: a\n",
    "f = 1\n",
])
def test_a_text_of_another_shape_only_gives_lines(shown):
    original = compiled("def f(a, b):\n    return a\n")
    code, lacking = linked_code(original, original, decompiled(shown, line_map={0: 1, 2: 2}), "d.py", 5)
    assert lacking.startswith("runs Dynamo's own bytecode, relocated")
    assert code.co_code == original.co_code
    assert code.co_filename == "d.py"


def test_unproven_source_never_runs():
    original = compiled("def f(a):\n    return a\n")
    code, lacking = linked_code(
        original, original, decompiled("def f(a):\n    return -a\n", "fallback", {0: 2}), "d.py"
    )
    assert lacking.startswith("runs Dynamo's own bytecode, relocated")
    assert code.co_code == original.co_code


def test_every_line_of_the_text_is_visited(tmp_path):
    text = textwrap.dedent("""\
        def f(a, b):
            x = [a]
            for i in b:
                if i > 1:
                    x += [i]
                else:
                    x = x + [0]
            return x
        """)
    path = str(tmp_path / "t.py")
    code, lacking = linked_code(compiled(text), compiled(text), decompiled(text), path, 21)
    assert not lacking
    space = {}
    exec("def f(a, b): pass", space)
    space["f"].__code__ = code
    visited = set()

    def trace(frame, event, arg):
        if frame.f_code.co_filename == path:
            if event == "line":
                visited.add(frame.f_lineno)
            return trace
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert space["f"](7, [1, 2]) == [7, 0, 2]
    finally:
        sys.settrace(before)
    assert visited == {22, 23, 24, 25, 27, 28}


def test_no_lines_and_no_proof_leaves_torchs_code():
    original = compiled("def f(a):\n    return a\n")
    shown = decompiled("def f(a):\n    return a\n", "fallback")
    linker = Linker()
    assert linker.link_transformed(original, original, shown, ("d.py", 3, "")) is None
    assert "not proven" in linker.notes[0]
    assert not linker.files
