"""Code objects as text: what comes back is the same code; constants that are objects are described, hostile text refused."""

import array
import base64
import dataclasses
import marshal
import sys

import pytest

from depyf.bytecode.code import Code
from depyf.bytecode.errors import Unreadable
from depyf.bytecode.packed import ObjectConstant, PackedCode, packed, unpacked

VERSION = sys.version_info[:2]


def outer(a, *, b=(1, 2.5, b"c", None, ..., 3j, frozenset({"x"}))):
    def inner():
        return a, b
    return inner


def with_constants(*values):
    code = compile("f(" + ", ".join(f"'c{number}'" for number in range(len(values))) + ")", "a.py", "eval")
    return code.replace(co_consts=tuple(
        values[int(each[1:])] if type(each) is str else each for each in code.co_consts))


def constants(packed_code):
    return [each for each in unpacked(packed_code, VERSION).consts if each is not None]


def same(one, other):
    for field in dataclasses.fields(Code):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if field.name == "consts":
            assert len(ours) == len(theirs)
            for this, that in zip(ours, theirs):
                same(this, that) if isinstance(this, Code) else None
                assert type(this) is type(that) and (isinstance(this, Code) or this == that)
        elif field.name != "origin":
            assert ours == theirs, field.name


def test_the_same_code_comes_back():
    code = packed(outer.__code__)
    assert code.prefix == "" and code.objects == ()
    same(unpacked(code, VERSION), Code.of(outer.__code__))


def test_objects_are_described_each_once():
    thing, space = object(), {"__builtins__": {}, "__name__": "m"}
    code = packed(with_constants(thing, space, thing, (thing, 1), "plain"))
    assert code.objects == (("object", "an object of type object", ""), ("globals", "the globals of module m", ""))
    first, named, again, pair, plain = constants(code)
    assert isinstance(first, ObjectConstant) and first is again and pair == (first, 1)
    assert named.kind == "globals" and plain == "plain"


def test_what_is_a_buffer_stays_an_object():
    """``marshal`` would write its bytes."""
    assert [each[0] for each in packed(with_constants(array.array("i", [1]), bytearray(b"x"))).objects] == [
        "array", "bytearray"]


def test_strings_that_look_like_objects_are_strings():
    code = packed(with_constants(object(), "object 0", "an object 0"))
    assert code.prefix == "an an object "
    assert [type(each) for each in constants(code)] == [ObjectConstant, str, str]


@pytest.mark.parametrize("code", [
    PackedCode("no base64 at all"),
    PackedCode(base64.b64encode(b"\xff\x00").decode()),
    PackedCode(base64.b64encode(marshal.dumps([1])).decode()),
    dataclasses.replace(packed(with_constants(object())), objects=()),
], ids=["no base64", "no marshal", "no code", "no such object"])
def test_what_is_no_code_is_refused(code):
    with pytest.raises(Unreadable):
        unpacked(code, VERSION)


def test_slices_of_literals_are_slices_again():
    code = (lambda: None).__code__
    code = code.replace(co_consts=(*code.co_consts, slice(None, 2, None), slice(object(), None, None), slice(-1, "a", ())))
    *_, first, second, third = unpacked(packed(code), sys.version_info[:2]).consts
    assert (first, third) == (slice(None, 2, None), slice(-1, "a", ()))
    assert isinstance(second, ObjectConstant) and second.kind == "slice"


def test_what_stands_for_no_slice_is_an_object():
    code = (lambda: None).__code__
    whole = packed(code.replace(co_consts=(*code.co_consts, slice(None, 2, None))))
    for text in ("slice(1)", "slice(*(1, 2, 3))", "slice(f(), 1, 2)", "nothing", "slice(1, 2, 3", "slice({[]: 1}, 1, 2)"):
        *_, last = unpacked(dataclasses.replace(whole, objects=(("slice", text, ""),)), sys.version_info[:2]).consts
        assert isinstance(last, ObjectConstant)
