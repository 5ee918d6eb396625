"""Files and code objects that no compiler made: source or one clear error, soon, and nothing of it runs."""

import ast
import dataclasses
import importlib.util
import marshal
import os
import subprocess
import sys
from pathlib import Path

import pytest
from _shared import encode_exception_table

from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import Code, table
from depyf.bytecode.errors import Unreadable
from depyf.bytecode.linetable import TableEntry
from depyf.bytecode.pyc import load_pyc
from depyf.decompiler import Fidelity, decompile_code

HOST = sys.version_info[:2]
HEADER = importlib.util.MAGIC_NUMBER + bytes(12)
ROOT = Path(__file__).resolve().parents[2]
OPCODES = table(HOST).opcodes


def function(text="def f(a):\n return a"):
    module = Code.of(compile(text, "sample.py", "exec"))
    return next(c for c in module.consts if isinstance(c, Code))


def changed(code=None, **changes):
    return dataclasses.replace(code or function(), origin=None, **changes)


def refused(code, said):
    with pytest.raises(Unreadable, match=said) as caught:
        decompile_code(code)
    assert "\n" not in str(caught.value)
    assert caught.value.filename == "sample.py"
    assert caught.value.offset >= 0


def units(*pairs):
    return b"".join(bytes((OPCODES[name], arg)) for name, arg in pairs)


# --- the code object itself -------------------------------------------------------------------------
@pytest.mark.parametrize(("changes", "said"), [
    ({"argcount": -1}, "negative"),
    ({"argcount": 2**31 - 1}, "2147483647 parameters, but 1 local"),
    ({"posonlyargcount": 2}, "more positional-only"),
    ({"varnames": ("a", "a")}, "two local variables are called 'a'"),
    ({"bytecode": b"\x09"}, "ends in the middle"),
], ids=lambda value: next(iter(value)) if isinstance(value, dict) else "")
def test_what_the_code_object_says_of_itself(changes, said):
    refused(changed(**changes), said)


@pytest.mark.parametrize("name", ["a b", "class", "None", "x): import os #", "ﬁ", "", "a\n", "__debug__"])
def test_names_that_would_be_read_as_something_else(name):
    """As an argument, as a global, as an attribute: never written as it is (``test_renamed`` runs what is)."""
    quoted = "variables whose names cannot be written", "globals()[", "setattr"
    argument = changed(varnames=(name,))
    is_global = changed(function("def f():\n global g\n g = 1"), names=(name,))
    attribute = changed(function("def f(a):\n a.g = 1"), names=(name,))
    of_a_global = Fidelity.EQUIVALENT if name not in ("", "__debug__") else Fidelity.FALLBACK
    fidelities = Fidelity.FALLBACK, of_a_global, Fidelity.FALLBACK
    for code, said, fidelity in zip((argument, is_global, attribute), quoted, fidelities):
        found = decompile_code(code)
        assert found.fidelity is fidelity
        assert said in found.text + found.note
        compile(found.text, "text", "exec")
        assert "os" not in [name.name for node in ast.walk(found.tree) if isinstance(node, ast.Import)
                            for name in node.names]


def test_a_name_in_the_code_object_cannot_break_out():
    text = decompile_code(changed(name="f():\n import os\ndef g", qualname="\n", filename="\n\n")).text
    assert [line.split("(")[0] for line in text.splitlines()] == ["def f_____import_os_def_g", "    return a"]


# --- instructions -----------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "arg"), [("RAISE_VARARGS", 3), ("BUILD_SLICE", 5), ("CALL_FUNCTION_EX", 2)])
def test_arguments_that_mean_nothing(name, arg):
    raw = function().bytecode
    refused(changed(bytecode=raw[:2] + units((name, arg)) + raw[2:]), f"argument {arg} means nothing")


def test_a_jump_into_the_middle_of_an_instruction():
    extended = units(("EXTENDED_ARG", 0))
    code = function("def f(a):\n while a: a()")
    raw = code.bytecode
    broken = 0
    for at in range(0, len(raw), 2):
        # an EXTENDED_ARG put before a jump's target makes the target the middle of an instruction
        candidate = changed(code, bytecode=raw[:at] + extended + raw[at:])
        try:
            canonicalise(candidate)
        except Unreadable as error:
            broken += "middle of an instruction" in str(error)
    assert broken


@pytest.mark.skipif(HOST < (3, 11), reason="exception tables are of 3.11")
@pytest.mark.parametrize("entries", [
    [TableEntry(0, 4, 9998, 0, False)],
    [TableEntry(0, 9998, 0, 0, False)],
    [TableEntry(0, 4, 0, 0, False), TableEntry(2, 6, 0, 0, False)],
    [TableEntry(4, 6, 0, 0, False), TableEntry(0, 2, 0, 0, False)],
    [TableEntry(0, 2, 0, 1 << 20, False)],
], ids=["handler outside", "range outside", "overlap", "order", "depth"])
def test_exception_tables_into_nowhere(entries):
    code = function("def f(a):\n a = 1; b = 2; return a")
    refused(changed(code, exceptiontable=encode_exception_table(entries)), "exception table entry")


def test_wrong_line_tables_change_no_program():
    code = function("def f(a):\n return a + 1")
    for wrong in (b"\xff" * 7, b"\x80", b"", b"\xf0" + b"\xff" * 100_000):
        assert decompile_code(changed(code, linetable=wrong)).fidelity is Fidelity.EXACT


@pytest.mark.parametrize("flag", [0x20, 0x80, 0x200])
@pytest.mark.skipif(HOST < (3, 11), reason="flags alone make a generator before 3.11")
def test_flags_of_a_generator_without_one(flag):
    code = function()
    refused(changed(code, flags=code.flags | flag), "generator or coroutine")


def test_a_yield_without_the_flags():
    code = function("def f():\n yield 1")
    refused(changed(code, flags=code.flags & ~0x20), "no generator")


def test_a_stack_of_a_billion_values():
    load = function().bytecode[-4:-2]
    raw = function().bytecode[:-4] + load + units(*[("EXTENDED_ARG", 59)] * 3, ("UNPACK_SEQUENCE", 255)) + bytes(20)
    refused(changed(bytecode=raw), "means nothing")


def test_arguments_are_not_endless():
    refused(changed(bytecode=units(*[("EXTENDED_ARG", 255)] * 100_000)), "too large")


@pytest.mark.skipif(HOST < (3, 11), reason="caches are of 3.11")
def test_an_instruction_whose_caches_are_cut_off():
    """``co_code`` itself writes beyond its end here, which takes the process down now and then."""
    code = compile("def f(a):\n return a.b", "sample.py", "exec").co_consts[0]
    at = next(at for at in range(0, len(code.co_code), 2) if code.co_code[at] == OPCODES["LOAD_ATTR"])
    refused(Code.of(code.replace(co_code=code.co_code[: at + 2])), "cut off in its caches")


# --- constants --------------------------------------------------------------------------------------
def constant(value):
    code = function("def f():\n return 'marker'")
    return changed(code, consts=tuple(value if c == "marker" else c for c in code.consts))


def test_sharing_does_not_explode():
    value = ("a",)
    for _ in range(100):
        value = (value, value)
    refused(constant(value), "enormous text|parts of constants")


@pytest.mark.skipif(HOST >= (3, 14), reason="keys are no longer one constant")
def test_sharing_in_keys_does_not_explode():
    value = ("a",)
    for _ in range(100):
        value = (value, value)
    code = function("def f(a):\n return {'k': a, 'l': a}")
    refused(changed(code, consts=tuple(value if type(c) is tuple else c for c in code.consts)), "enormous text|parts of constants")


@pytest.mark.skipif(not (3, 11) <= HOST < (3, 13), reason="a jump has as many units as what it replaces")
# --- budgets: what costs much more than its size ----------------------------------------------------
def older(version, bytecode):
    return changed(function("def f():\n return None"), version=version, bytecode=bytecode, linetable=b"",
                   exceptiontable=b"", names=("a",))


@pytest.mark.parametrize("version", [(3, 7), (3, 8)])
@pytest.mark.parametrize("count", [3, 30, 3000])
def test_bodies_of_finally_that_lead_into_each_other(version, count):
    known = table(version).opcodes
    enter = (known["BEGIN_FINALLY"], 0) if version == (3, 8) else (known["LOAD_CONST"], 0)
    body = bytes((known["SETUP_FINALLY"], 2, known["POP_BLOCK"], 0, *enter)) * count
    refused(older(version, body + bytes((known["JUMP_ABSOLUTE"], 0))), "finally bodies|meet at|takes")


@pytest.mark.parametrize("version", [(3, 7), (3, 8)])
def test_keywords_of_no_mappings(version):
    """Found by ``make fuzz``: a loop over parts wrote the first of no mappings."""
    known = table(version).opcodes
    raw = bytes((known["LOAD_FAST"], 0)) * 2 + b"".join(bytes((known[name], arg)) for name, arg in (
        ("BUILD_TUPLE", 0), ("BUILD_MAP_UNPACK_WITH_CALL", 0), ("CALL_FUNCTION_EX", 1), ("RETURN_VALUE", 0)))
    found = decompile_code(changed(version=version, bytecode=raw, linetable=b"", exceptiontable=b""))
    assert "internal error" not in found.note + found.text and "{}" in found.text


def test_code_that_stands_in_two_functions():
    """Found by ``make fuzz``: of code that two hold, the one that comes later was not known yet."""
    from depyf.decompiler.result import Tiers

    root = Code.of(compile("def g():\n def f(): pass\ndef h():\n def f(): pass", "sample.py", "exec"))
    first, second = (c for c in root.consts if isinstance(c, Code))
    second = changed(second, consts=first.consts)
    root = changed(root, consts=tuple(second if c != first and isinstance(c, Code) else c for c in root.consts))
    tiers = Tiers(root)
    assert all(root in tiers.around(code) for code in tiers.names if code is not root)


def test_an_annotation_that_is_no_source():
    """Found by ``make fuzz``: half of a surrogate pair, where annotations are texts."""
    code = Code.of(compile("from __future__ import annotations\nx: int = 1", "sample.py", "exec"))
    found = decompile_code(changed(code, consts=tuple("\ud800" if c == "int" else c for c in code.consts)))
    assert "internal error" not in found.note and "\\ud800" in found.text


def test_a_value_is_dropped_where_there_is_none():
    """Found by ``make fuzz``: a handler that pops what is below its region's stack."""
    from depyf.bytecode.operations import POP, Op
    from depyf.decompiler.errors import CannotDecompile
    from depyf.decompiler.fallback.rules import SlotExecutor
    from depyf.decompiler.lift.stack import State
    from depyf.decompiler.result import Options, Tiers
    from depyf.decompiler.scopes import CodeScope

    code = function()
    with pytest.raises(CannotDecompile):
        SlotExecutor(CodeScope(code, Options(Tiers(code))), "_", []).run(State(), [Op(POP, None)])


def test_what_stands_for_a_value_is_never_written():
    """Found by ``make fuzz``: a copy of a value was left in the tree."""
    from depyf.decompiler.emit import text
    from depyf.decompiler.errors import CannotDecompile
    from depyf.decompiler.lift.stack import Duplicate

    name = ast.Name("a", ast.Load())
    with pytest.raises(CannotDecompile, match="a Duplicate is left in the tree"):
        text.check(ast.Expr(ast.Subscript(Duplicate(name), name, ast.Load())))


def test_a_million_constants():
    refused(constant((None,) * 1_000_000), "parts of constants in one code object: 1,000,0.*DEPYF_BUDGET=")
    refused(constant(((1, 2),) * 150_000), "parts of constants")


def test_half_a_million_instructions():
    load = units(("LOAD_FAST", 0), ("POP_TOP", 0))
    refused(changed(bytecode=load * 250_000 + function().bytecode[-4:]), "500,00.*instructions|instructions.*500,00")


def test_a_budget_can_be_raised(monkeypatch):
    from depyf import budgets

    monkeypatch.setattr(budgets, "INSTRUCTIONS", dataclasses.replace(budgets.INSTRUCTIONS, most=1))
    refused(changed(), r"more than the budget of 1 \(DEPYF_BUDGET=[23] in the environment takes it on\)")
    monkeypatch.setenv("DEPYF_BUDGET", "3")
    assert decompile_code(changed()).fidelity is Fidelity.EXACT
    monkeypatch.setenv("DEPYF_BUDGET", "many")
    refused(changed(), "DEPYF_BUDGET=[23]")


def test_a_loop_over_too_many_parts_is_not_written(monkeypatch):
    from depyf import budgets
    from depyf.decompiler.pipeline import Failed

    looping = function("def f(a):\n while a:\n  a = a(a)\n while a.b:\n  a = a(a)\n return a")
    monkeypatch.setattr(budgets, "JUMPS", dataclasses.replace(budgets.JUMPS, most=1))
    assert decompile_code(changed(looping)).fidelity is Fidelity.FALLBACK
    monkeypatch.setattr(budgets, "DISPATCHED", dataclasses.replace(budgets.DISPATCHED, most=3))
    with pytest.raises(Failed, match="only a loop over its parts can say"):
        decompile_code(changed(looping))


def test_a_line_table_for_code_that_is_not_there():
    long = changed(version=(3, 8), bytecode=b"d\0S\0", linetable=b"\xf0\x01" * 100_000, exceptiontable=b"")
    from depyf.bytecode.linetable import positions

    assert len(positions(long)) == 2


def test_a_with_whose_handler_never_ends():
    code = function("def f(a):\n with a: return a")
    jump = "POP_JUMP_FORWARD_IF_TRUE" if HOST == (3, 11) else "POP_JUMP_IF_TRUE"
    before, after, rest = code.bytecode.rpartition(units(("POP_TOP", 0), ("POP_EXCEPT", 0)))
    assert after
    there = len(before) // 2 + 2 if HOST < (3, 11) else 0
    assert decompile_code(changed(code, bytecode=before + units(("POP_TOP", 0), (jump, there)) + rest)).text


def test_nesting_does_not_overflow():
    value = ()
    for _ in range(100_000):
        value = (value,)
    refused(constant(value), "nests too deeply")
    while value:  # the interpreter would take it down recursively
        value = value[0]


def test_functions_that_are_made_everywhere():
    inner = function("def f():\n def g(): pass\n" + " def g(): pass\n" * 40)
    code = inner
    for _ in range(12):
        code = changed(inner, consts=tuple(code if isinstance(c, Code) else c for c in inner.consts))
    refused(code, "enormous text|parts of constants")


@pytest.mark.parametrize("value", [1 << 100_000, -(1 << 20_000), 10**5000], ids=["large", "negative", "decimal"])
def test_large_numbers(value):
    assert decompile_code(constant(value)).fidelity is Fidelity.EXACT


def test_references_in_a_file_do_not_explode():
    data = b"\xa9\x01N"  # a tuple, kept as reference 0
    for number in range(60):
        data = b"\xa9\x02" + b"N" + data if number == 0 else b"\xa9\x01" + data
    with pytest.raises(Unreadable):
        load_pyc(HEADER + data, "sample.pyc")


def test_a_large_number_takes_linear_time():
    digits = 1_000_000
    with pytest.raises(Unreadable, match="contains a int"):
        load_pyc(HEADER + b"l" + digits.to_bytes(4, "little") + b"\xff\x7f" * digits, "sample.pyc")


@pytest.mark.skipif(HOST < (3, 11), reason="kinds of local variables are of 3.11")
def test_local_variables_in_another_order():
    code = compile("def f(a, b):\n def g(): return a\n return b", "sample.py", "exec")
    data = marshal.dumps(code, 2)
    kinds = bytes(s for s in next(c for c in code.co_consts if hasattr(c, "co_code")).co_varnames and (0x60, 0x20, 0x20))
    assert kinds in data
    with pytest.raises(Unreadable, match="in an order or of a kind"):
        load_pyc(HEADER + data.replace(kinds, bytes((0x80, 0x20, 0x20))), "sample.pyc")


# --- the file that the code says it comes from --------------------------------------------------------
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_the_file_named_in_the_code_is_not_opened(tmp_path):
    """An error or a warning of the compiler would read a line of it, and wait for a pipe for ever."""
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    program = (
        "import dataclasses, sys\nfrom depyf.bytecode.code import Code\nfrom depyf.decompiler import decompile_code\n"
        "code = Code.of(compile('def f(a):\\n return a is 1', 'x', 'exec')).consts[0]\n"
        "print(decompile_code(dataclasses.replace(code, filename=sys.argv[1])).fidelity)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(pipe)], capture_output=True, timeout=60, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
    assert done.returncode == 0, done.stderr


# --- all of it ----------------------------------------------------------------------------------------
@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_a_short_run_of_the_fuzzer():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "fuzz_pyc.py"), "--runs", "150", "--seed", "3", "--time-limit", "120"],
        capture_output=True, text=True, timeout=500, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

SAMPLE = HEADER + marshal.dumps(compile(
    "def f(a, *b, c=1):\n try:\n  for x in b: yield a.x[x]\n except E as e: g(e, k=c)\n finally: a()\n", "s.py", "exec"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(16, len(SAMPLE) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_bytes_changed_anywhere(changes):
    data = bytearray(SAMPLE)
    for at, value in changes:
        data[at] = value
    try:
        found = decompile_code(load_pyc(bytes(data), "sample.pyc"))
    except Unreadable as error:
        assert len(str(error)) < 2000
    else:
        assert found.fidelity in tuple(Fidelity)
