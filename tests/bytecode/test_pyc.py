"""The .pyc reader against the host's own marshal, and against files that are broken."""

import importlib.util
import marshal
import random
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from depyf.bytecode import pyc
from depyf.bytecode.code import Code
from depyf.bytecode.pyc import PycError, load_pyc, loads, read_pyc

VERSION = sys.version_info[:2]
HEADER = importlib.util.MAGIC_NUMBER + bytes(12)
SOURCE = Path(pyc.__file__).read_text(encoding="utf-8")


def same(left, right):
    if isinstance(left, Code):
        return isinstance(right, Code) and all(
            same(getattr(left, f.name), getattr(right, f.name)) for f in fields(Code) if f.name != "origin"
        )
    if isinstance(left, tuple):
        return isinstance(right, tuple) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and (left == right or left != left)  # noqa: PLR0124  (NaN)


@pytest.mark.parametrize("source", [
    SOURCE,
    "x = (1, -2**70, 2.5, float, 1j, 'ä\\ud800', b'\\0', ..., None, True)\nif x in {1, 'a'}: pass",
    "async def f(a, /, b, *, c, **k):\n class C:\n  def g(self): return __class__, a\n return lambda: (C, k)",
])
def test_agrees_with_marshal(source, tmp_path):
    code = compile(source, "sample.py", "exec")
    path = tmp_path / "sample.pyc"
    path.write_bytes(HEADER + marshal.dumps(code))
    found = read_pyc(path)
    assert found.version == VERSION
    assert same(Code.of(code), found)


@pytest.mark.parametrize("value", [
    None, 0, -1, 2**31, -(2**64), 1.5, -0.0, 3 - 4j, "a", "ä" * 300, b"x" * 300, (), (1, (2, "b")),
    frozenset({"x"}), ..., True, tuple(range(300)),
], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("version", range(2, 5))
def test_every_type(value, version):
    assert loads(marshal.dumps(value, version), VERSION) == value


def test_cut_and_changed_files_give_one_kind_of_error():
    data = HEADER + marshal.dumps(compile(SOURCE, "sample.py", "exec"))
    chance = random.Random(7)
    errors = 0
    for attempt in range(400):
        broken = bytearray(data)
        if attempt % 2:
            del broken[chance.randrange(len(broken)) :]
        else:
            for _ in range(3):
                broken[chance.randrange(16, len(broken))] = chance.randrange(256)
        try:
            load_pyc(bytes(broken), "broken.pyc")
        except PycError as error:
            errors += 1
            assert str(error).startswith(f"broken.pyc, byte {error.offset}: ")
    assert errors > 200


@pytest.mark.parametrize(("data", "said"), [
    (b"", "is not a .pyc file"),
    (b"\x00\x00\r\n" + bytes(12), "magic number 0 belongs to no released Python"),
    ((62211).to_bytes(2, "little") + b"\r\n" + bytes(12), "magic number 62211 is of Python 2.7, which is not supported"),
    (HEADER + b"N", "contains a NoneType, not a code object"),
    (HEADER + b")\x02N", "ends too early"),
    (HEADER + b"(\xff\xff\xff\x7f", "larger than the file"),
    (HEADER + b"r\x05\0\0\0", "reference 5 to nothing"),
    (HEADER + b"\xa9\x01r\0\0\0\0", "an object that contains it"),
    (HEADER + b"?", "unknown type '?'"),
    (HEADER + b")\x01" * 100_000 + b"N", "nested too deeply"),
])
def test_what_is_wrong_is_said(data, said):
    with pytest.raises(PycError, match=said):
        load_pyc(data)
