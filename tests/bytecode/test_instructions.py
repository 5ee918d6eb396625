"""Decoding and line tables against what the interpreter says about its own code."""

import dis
import sys

import pytest
from _shared import encode_exception_table

from depyf.bytecode.code import SUPPORTED, Code, UnsupportedVersion, decode, table
from depyf.bytecode.linetable import (
    MalformedTable,
    encode_linetable,
    parse_exception_table,
    positions,
    relocate,
)


def _long(a, b):
    total = 0
    for i in range(a):
        try:
            if i % 2 and b:
                total += i
            elif i > 5:
                continue
        except ValueError:
            total = -1
    return (
        total,
        [x for x in b
         if x],
    )


def _far():
    """A function whose jumps need EXTENDED_ARG."""
    body = "".join(f"    x{i} = a + {i}.5\n" for i in range(400))
    namespace = {}
    exec(f"def f(a):\n  while a:\n{body}  return a\n", namespace)  # noqa: S102
    return namespace["f"]


SAMPLES = [_long.__code__, _far().__code__, Code.of.__func__.__code__, relocate.__code__]


@pytest.mark.parametrize("code", SAMPLES, ids=lambda c: c.co_name)
def test_decode_agrees_with_dis(code):
    expected = [i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "CACHE")]
    lines = {}
    for start, end, line in code.co_lines():
        lines.update(dict.fromkeys(range(start, end, 2), line))
    found = decode(Code.of(code))
    assert [(i.offset, i.opname) for i in found] == [(i.offset, i.opname) for i in expected]
    assert [i.line for i in found] == [lines.get(i.offset) for i in expected]
    for mine, theirs in zip(found, expected):
        assert theirs.arg is None or mine.arg == theirs.arg
        is_jump = theirs.opcode in dis.hasjrel or theirs.opcode in dis.hasjabs
        assert (mine.target >= 0) == is_jump
        if is_jump:  # a jump to an EXTENDED_ARG goes to what it extends
            assert 0 <= found[mine.target].offset - theirs.argval <= 6


def test_tables_are_those_of_this_interpreter():
    numbers = table(sys.version_info[:2])
    real = {n: c for n, c in dis.opmap.items() if c < 256 and not n.startswith("INSTRUMENTED")}
    assert numbers.opcodes == real


@pytest.mark.parametrize("version", SUPPORTED)
def test_every_table_is_consistent(version):
    numbers = table(version)
    assert len(set(numbers.opcodes.values())) == len(numbers.opcodes)
    assert numbers.names[numbers.opcodes["LOAD_CONST"]] == "LOAD_CONST"


def test_unknown_version_is_named():
    with pytest.raises(UnsupportedVersion, match=r"Python 2\.7 is not supported"):
        table((2, 7))


@pytest.mark.parametrize("version", [(3, 10), (3, 11), (3, 12), (3, 13)])
@pytest.mark.parametrize(
    "ranges",
    [
        [(0, 4, 10), (4, 8, None), (8, 700, 5), (700, 702, 100_000)],
        [(0, 2, None), (2, 4, 1), (4, 2000, None)],
    ],
)
def test_linetable_round_trip(version, ranges):
    code = Code.of(_long.__code__)
    fields = {name: getattr(code, name) for name in code.__dataclass_fields__}
    fields |= {"version": version, "firstlineno": 7, "bytecode": bytes(ranges[-1][1])}
    fields["linetable"] = encode_linetable(version, 7, ranges)
    lines = [place and place.line for place in positions(Code(**fields))]
    assert lines == [line for start, end, line in ranges for _ in range(start, end, 2)]


def test_relocate_moves_lines_and_keeps_behaviour():
    offsets = [i.offset for i in decode(Code.of(_long.__code__))]
    lines = {offset: 1000 + 300 * n for n, offset in enumerate(offsets) if n > 3}
    moved = relocate(_long.__code__, lines, "elsewhere.py", 900)
    assert (moved.co_filename, moved.co_firstlineno) == ("elsewhere.py", 900)
    said = {}
    for start, end, line in moved.co_lines():
        said.update(dict.fromkeys(range(start, end, 2), line))
    assert {offset: said[offset] for offset in lines} == lines
    assert said[0] is None
    assert type(_long)(moved, globals())(9, [1, 0]) == _long(9, [1, 0])


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no exception tables before 3.11")
def test_exception_table_round_trip():
    data = _long.__code__.co_exceptiontable
    entries = parse_exception_table(data)
    assert entries and encode_exception_table(entries) == data


def test_cut_tables_are_reported():
    with pytest.raises(MalformedTable):
        parse_exception_table(b"\x81\x01")
