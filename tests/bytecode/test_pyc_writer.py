"""Files that scripts/pyc_writer.py writes, for the fuzzer, hold the code objects that it was given."""

import py_compile
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from depyf.bytecode.code import Code
from depyf.bytecode.pyc import load_pyc, loads

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests" / "foreign").rglob("compiled/*.pyc"))


@pytest.fixture
def pyc_writer(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import pyc_writer

    yield pyc_writer
    del sys.modules["pyc_writer"]


def fields_of(value):
    """Constants as tuples that tell types, and NaN, apart."""
    if isinstance(value, Code):
        return [fields_of(getattr(value, each.name)) for each in fields(Code) if each.name != "origin"]
    if isinstance(value, tuple):
        return [tuple, *map(fields_of, value)]
    return type(value), repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_written_is_read_as_it_was(path, pyc_writer):
    code = load_pyc(path.read_bytes(), path.name)
    assert fields_of(load_pyc(pyc_writer.written(code), path.name)) == fields_of(code)


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "bytecode").glob("test_*.py")), ids=lambda path: path.name)
def test_files_of_this_version(path, pyc_writer, tmp_path):
    data = Path(py_compile.compile(str(path), str(tmp_path / "module.pyc"))).read_bytes()
    code = load_pyc(data, path.name)
    assert fields_of(load_pyc(pyc_writer.written(code), path.name)) == fields_of(code)


def test_a_tuple_that_doubles_with_each_level_is_refused(pyc_writer):
    value = ("text" * 100,)
    for _ in range(40):
        value = (value, value)
    with pytest.raises(pyc_writer.CannotWriteError, match="more than"):
        pyc_writer.marshalled(value)


@pytest.mark.parametrize("value", [0, -1, 2**31, -(2**31), -(2**31) - 1, 2**100, -(2**100), 1.5, 2j, "\udc80", b"", ...])
def test_constants(value, pyc_writer):
    assert fields_of(loads(pyc_writer.marshalled(value), (3, 11))) == fields_of(value)
