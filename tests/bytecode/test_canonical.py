"""Canonical programs: golden samples that hold on every version, and odd code that Dynamo makes."""

import dis
import random
import sys
import textwrap
from dataclasses import replace
from types import CodeType

import pytest
from graph_invariants import check

from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import Code, UnsupportedBytecode
from depyf.cfg.graph import build, entry_depths

VERSION = sys.version_info[:2]


def first_function(source):
    module = compile(textwrap.dedent(source), "sample", "exec")
    return next(c for c in module.co_consts if isinstance(c, CodeType))


def program(source):
    result = canonicalise(Code.of(first_function(source)))
    check(build(result))
    return result


def text(program):
    """Operations in graph order, jumps by the operation they lead to; straight jumps left out."""
    ops = program.ops

    def through(index):
        while ops[index].kind == "JUMP" and ops[index].target != index:
            index = ops[index].target
        return index

    numbers = {}
    lines = []
    for index, op in enumerate(ops):
        if op.kind == "JUMP" and through(index) == through(min(index + 1, len(ops) - 1)):
            continue
        numbers[index] = len(lines)
        lines.append(op)
    return [
        (op.kind if op.arg is None and op.kind != "CONST" else f"{op.kind} {op.arg!r}")
        + (f" -> {numbers[through(op.target)]}" if op.target >= 0 else "")
        for op in lines
    ]


GOLDEN = {
    "call with keywords": (
        "def f(g, a): return g(a, 1, k=2)",
        ["LOAD_FAST 'g'", "LOAD_FAST 'a'", "CONST 1", "CONST 2", "CALL (2, ('k',))", "RETURN"],
    ),
    "method call": (
        "def f(a): return a.b(1).c()",
        ["LOAD_FAST 'a'", "LOAD_ATTR 'b'", "CONST 1", "CALL (1, ())", "LOAD_ATTR 'c'", "CALL (0, ())", "RETURN"],
    ),
    "global call with star": (
        "def f(a, k): return g(*a, **k)",
        ["LOAD_GLOBAL 'g'", "LOAD_FAST 'a'", "BUILD_MAP 0", "LOAD_FAST 'k'", "DICT_MERGE 1", "CALL_EX True",
         "RETURN"],
    ),
    "slices": (
        "def f(a, i): return a[i:2]",
        ["LOAD_FAST 'a'", "LOAD_FAST 'i'", "CONST 2", "BUILD_SLICE 2", "GETITEM", "RETURN"],
    ),
    "store into slice": (
        "def f(a, i, v): a[i:i] = v; return a",
        ["LOAD_FAST 'v'", "LOAD_FAST 'a'", "LOAD_FAST 'i'", "LOAD_FAST 'i'", "BUILD_SLICE 2", "SETITEM",
         "LOAD_FAST 'a'", "RETURN"],
    ),
    "branch": (
        "def f(a, b):\n if a < b: return 1\n return 2",
        ["LOAD_FAST 'a'", "LOAD_FAST 'b'", "COMPARE '<'", "BRANCH False -> 6", "CONST 1", "RETURN", "CONST 2",
         "RETURN"],
    ),
    "not": (
        "def f(a): return not a",
        ["LOAD_FAST 'a'", "UNARY 'not'", "RETURN"],
    ),
    "is None": (
        "def f(a):\n if a is not None: return 1\n return 2",
        ["LOAD_FAST 'a'", "CONST None", "IS False", "BRANCH True -> 6", "CONST 1", "RETURN", "CONST 2", "RETURN"],
    ),
    "and": (
        "def f(a, b): return a and b",
        ["LOAD_FAST 'a'", "COPY 1", "BRANCH False -> 5", "POP", "LOAD_FAST 'b'", "RETURN"],
    ),
    "format": (
        "def f(a, b): return f'{a!r}{b:>3}'",
        ["LOAD_FAST 'a'", "FORMAT ('r', False)", "LOAD_FAST 'b'", "CONST '>3'", "FORMAT ('', True)",
         "BUILD_STRING 2", "RETURN"],
    ),
    "lambda with default and closure": (
        "def f(a): return lambda b=1: a",
        ["CONST (1,)", "LOAD_CLOSURE 'a'", "BUILD_TUPLE 1", "CONST <code>", "MAKE_FUNCTION 9", "RETURN"],
    ),
    "await": (
        "async def f(a): return await a",
        ["LOAD_FAST 'a'", "AWAIT", "RETURN"],
    ),
    "yield from": (
        "def f(a): return (yield from a)",
        ["LOAD_FAST 'a'", "YIELD_FROM", "RETURN"],
    ),
    "generator": (
        "def f(a): return (yield a)",
        ["LOAD_FAST 'a'", "YIELD", "RETURN"],
    ),
    "operators": (
        "def f(a, b): a @= b; return a // -b",
        ["LOAD_FAST 'a'", "LOAD_FAST 'b'", "INPLACE '@'", "STORE_FAST 'a'", "LOAD_FAST 'a'", "LOAD_FAST 'b'",
         "UNARY '-'", "BINARY '//'", "RETURN"],
    ),
    "unpacking": (
        "def f(a):\n (b, *c), d = a\n return c",
        ["LOAD_FAST 'a'", "UNPACK 2", "UNPACK_EX (1, 0)", "STORE_FAST 'b'", "STORE_FAST 'c'", "STORE_FAST 'd'",
         "LOAD_FAST 'c'", "RETURN"],
    ),
    "membership": (
        "def f(a, b): return a not in b",
        ["LOAD_FAST 'a'", "LOAD_FAST 'b'", "IN True", "RETURN"],
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_same_program_on_every_version(name):
    source, expected = GOLDEN[name]
    found = program(source)
    for op in found.ops:
        if isinstance(op.arg, Code):
            op.arg = _Shown("<code>")
    assert text(found) == expected


class _Shown(str):
    __slots__ = ()

    def __repr__(self):
        return str(self)


def test_try_except_as_like_3_11():
    """The six-value protocol and block stack of 3.10 become what 3.11 compiles."""
    found = program(
        """
        def f(g):
            try:
                g()
            except ValueError as e:
                g(e)
        """
    )
    handlers = {h.target: h for h in found.handlers}
    starts = sorted(" ".join(map(str, (found.ops[t].kind, h.depth, h.lasti))) for t, h in handlers.items())
    assert starts == ["CONST 1 True", "COPY 1 True", "PUSH_EXC_INFO 0 False"]
    main = next(h for h in found.handlers if not h.lasti)
    after = [op.kind for op in found.ops[main.target : main.target + 5]]
    assert after == ["PUSH_EXC_INFO", "LOAD_GLOBAL", "CHECK_EXC_MATCH", "BRANCH", "STORE_FAST"]
    cleanup = next(h for h in found.handlers if found.ops[h.target].kind == "COPY")
    three = found.ops[cleanup.target : cleanup.target + 3]
    assert [(op.kind, op.arg) for op in three] == [("COPY", 3), ("POP_EXCEPT", None), ("RERAISE", 1)]


def test_with_like_3_11():
    found = program(
        """
        def f(m):
            with m as x:
                x()
            return 1
        """
    )
    main = next(h for h in found.handlers if found.ops[h.target].kind == "PUSH_EXC_INFO")
    assert (main.depth, main.lasti) == (1, True)
    after = [(op.kind, op.arg) for op in found.ops[main.target : main.target + 4]]
    assert after == [("PUSH_EXC_INFO", None), ("WITH_EXCEPT_START", None), ("BRANCH", True), ("RERAISE", 2)]
    suppressed = found.ops[found.ops[main.target + 2].target :][:4]
    assert [op.kind for op in suppressed] == ["POP", "POP_EXCEPT", "POP", "POP"]
    calls = [found.ops[i - 3 : i + 1] for i, op in enumerate(found.ops) if op.kind == "CALL" and op.arg == (3, ())]
    assert [[op.kind for op in call] for call in calls] == [["CONST", "CONST", "CONST", "CALL"]]


CHECKED = [
    "async def f(a):\n async with a as b:\n  async for c in b: yield c",
    "async def f(a): return [x async for x in a if await x]",
    "def f(a):\n try:\n  return a()\n finally:\n  for x in a: print(x)",
    "def f(a):\n for x in a:\n  try:\n   if x: continue\n   break\n  except (A, B) as e:\n   return e\n  else:\n   x()\n  finally:\n   y()",
    "def f(a):\n while True:\n  with a, a as b:\n   if b: return 3\n",
    "def f(a):\n match a:\n  case {'x': 1, **r}: return r\n  case [1, *z]: return z\n  case P(x=1, y=q): return q\n  case _: pass",
    "def f(a):\n class C(a, k=1):\n  x: int = a\n  def m(self): return super().m()\n return C",
    "def f(a):\n return [lambda: x for x in a], {x: y for x, y in a}, {z for z in a}",
    "def f(a, b, c): return a < b < c",
    "def f():\n global q\n import a.b as c\n from d import e\n del q\n assert e, c",
    "def f(a):\n raise a from None",
]


@pytest.mark.parametrize("source", CHECKED, ids=range(len(CHECKED)))
def test_graph_is_sound(source):
    pending = [first_function(source)]
    while pending:
        code = pending.pop()
        check(build(canonicalise(Code.of(code))))
        pending += [c for c in code.co_consts if isinstance(c, CodeType)]


def assemble(*instructions, consts=(None,), names=("f",), varnames=("a", "b")):
    """A code object of this version from ``(name, argument)`` pairs, caches put in."""
    from depyf.bytecode.code import table

    numbers = table(VERSION)
    raw = bytearray()
    for name, arg in instructions:
        opcode = numbers.opcodes[name]
        raw += bytes((opcode, arg)) + bytes(2 * numbers.caches[opcode])
    base = (lambda a, b: None).__code__
    return Code.of(base.replace(
        co_code=bytes(raw), co_consts=consts, co_names=names, co_varnames=varnames, co_nlocals=len(varnames),
        co_stacksize=20,
    ))


def ops_of(code):
    result = canonicalise(code)
    check(build(result))
    return [(op.kind, op.arg) for op in result.ops]


@pytest.mark.skipif(VERSION < (3, 11), reason="cells are made by instructions")
@pytest.mark.parametrize("runs, number, allowed", [
    (False, 1, True), (False, 2, True), (True, 2, True), (True, 1, False)])
def test_the_second_beginning_of_a_resume_function(runs, number, allowed):
    """A cell that has become a free variable leaves another number there, where nothing leads."""
    over = [] if runs else [("JUMP_FORWARD", 1)]
    code = replace(assemble(
        ("COPY_FREE_VARS", 2), ("RESUME", 0), *over, ("COPY_FREE_VARS", number), ("LOAD_CONST", 0),
        ("RETURN_VALUE", 0)), freevars=("x", "y"))
    if allowed:
        assert ops_of(code)[-2:] == [("CONST", None), ("RETURN", None)]
    else:
        with pytest.raises(UnsupportedBytecode, match="argument 1 where there are 2 free variables"):
            ops_of(code)


@pytest.mark.skipif(VERSION not in ((3, 11), (3, 12)), reason="NULL below the callable")
def test_null_put_in_place_by_swaps():
    """Dynamo pushes the NULL late; counts of SWAP and COPY include it."""
    code = assemble(
        ("LOAD_GLOBAL", 0), ("LOAD_FAST", 0), ("PUSH_NULL", 0), ("SWAP", 3), ("COPY", 2), ("SWAP", 2),
        ("SWAP", 3), ("POP_TOP", 0), ("BUILD_TUPLE", 1), ("CALL_FUNCTION_EX", 0), ("RETURN_VALUE", 0),
    )
    # stack: f a N -> N a f -> N a f a -> N a a f -> N f a a -> N f a -> N f (a,)
    assert ops_of(code) == [
        ("LOAD_GLOBAL", "f"), ("LOAD_FAST", "a"), ("SWAP", 2), ("COPY", 2), ("SWAP", 2), ("SWAP", 3), ("POP", None),
        ("BUILD_TUPLE", 1), ("CALL_EX", False), ("RETURN", None),
    ]


@pytest.mark.skipif(VERSION < (3, 13), reason="NULL above the callable")
def test_null_above_callable_and_names_from_afar():
    code = assemble(
        ("LOAD_CONST", 1), ("LOAD_GLOBAL", 1), ("LOAD_FAST", 0), ("SWAP", 4), ("SWAP", 2), ("SWAP", 3),
        ("SWAP", 2), ("SWAP", 4), ("CALL_KW", 1), ("RETURN_VALUE", 0), consts=(None, ("k",)),
    )
    with pytest.raises(UnsupportedBytecode):
        ops_of(code)  # the names end up below: not a call that could run
    code = assemble(
        ("LOAD_GLOBAL", 1), ("LOAD_CONST", 1), ("LOAD_FAST", 0), ("SWAP", 2), ("CALL_KW", 1), ("RETURN_VALUE", 0),
        consts=(None, ("k",)),
    )
    assert ops_of(code) == [
        ("LOAD_GLOBAL", "f"), ("CONST", ("k",)), ("LOAD_FAST", "a"), ("SWAP", 2), ("POP", None),
        ("CALL", (0, ("k",))), ("RETURN", None),
    ]


def test_unknown_instruction_is_named():
    code = assemble(("LOAD_FAST", 0), ("RETURN_VALUE", 0))
    fields = {name: getattr(code, name) for name in code.__dataclass_fields__}
    unused = next(n for n in range(20, 255) if dis.opname[n] == f"<{n}>")
    fields["bytecode"] = code.bytecode[:2] + bytes((unused, 0)) + code.bytecode[2:]
    with pytest.raises(UnsupportedBytecode, match=rf"<{unused}> at offset 2 of .* \(Python 3\.{VERSION[1]}\)"):
        canonicalise(Code(**fields))


def test_stack_underflow_is_reported():
    with pytest.raises(UnsupportedBytecode):
        canonicalise(assemble(("RETURN_VALUE", 0)))


@pytest.mark.parametrize("sample", [0, 3, 4, 5, 6])
def test_random_bytes_are_refused_or_sound(sample):
    """Whatever is in a code object: a sound graph, or an error that says where."""
    chance = random.Random(3)
    original = Code.of(first_function(CHECKED[sample]))
    outcomes = set()
    for _ in range(500):
        raw = bytearray(original.bytecode)
        for _ in range(chance.randrange(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        try:
            graph = build(canonicalise(replace(original, bytecode=bytes(raw))))
        except UnsupportedBytecode:
            outcomes.add("refused")
        else:
            entry_depths(graph)
            outcomes.add("sound")
    assert outcomes == {"refused", "sound"}
