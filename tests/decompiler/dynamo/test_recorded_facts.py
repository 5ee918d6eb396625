"""Facts as text: what is not of the form is refused, what does not stand there is not known."""

import json

import pytest

from depyf.decompiler.dynamo.facts import Facts

SELF = (("local", "self"),)
LAYERS = (*SELF, ("attr", "_modules"), ("item", "layers"))


def facts(*nodes, shared=(), stored=()):
    return Facts(json.dumps([nodes, shared, stored]))


def test_an_object_is_found_by_its_path():
    known = facts([-1, "local", "self", {"reading": "plain"}], [0, "attr", "_modules", {}],
                  [1, "item", "layers", {"reading": "modules", "unshadowed": True, "length": 2,
                                         "element": [[0, "_modules", "0"]]}])
    assert known.reading(SELF) == "plain" and known.reading(LAYERS) == "modules" and known.reading(LAYERS[:2]) == ""
    assert known.unshadowed(LAYERS) and known.length(LAYERS) == 2
    assert known.element(LAYERS, 0) == (*LAYERS, ("attr", "_modules"), ("item", "0"))
    assert known.element(LAYERS, False) is None and known.element(LAYERS, 1) is None
    assert known.refusals() == []


def test_refusals_are_those_that_were_asked_for():
    known = facts([-1, "local", "self", {}], [0, "attr", "_modules", {}], [1, "item", "layers", {"refused": "why"}])
    assert known.refusals() == []
    assert not known.unshadowed(LAYERS)
    assert known.refusals() == [("self._modules['layers']", "why")]


def test_classes_are_shared_and_names_that_are_not_stored_are_not_known():
    known = facts([-1, "local", "self", {}], [0, "class", "", 0], shared=[{"stores": [True, ["step"]]}],
                  stored=["step", "count"])
    cls = known.class_path(SELF)
    assert cls == (*SELF, ("class", "")) and known.class_path(LAYERS) is None
    assert known.stores_plainly(cls, "count", True) and known.stores_plainly(cls, "count", False)
    assert not known.stores_plainly(cls, "step", False) and not known.stores_plainly(cls, "other", False)


def test_an_answer_of_another_type_is_none():
    known = facts([-1, "local", "self", {"reading": 3, "length": "x", "element": 5, "allocates": "object", "imported": 1,
                                         "stores": {}, "ancestor": [[1]], "container": ["dict"]}])
    nothing = Facts()
    for question, *arguments in (("reading",), ("length",), ("element", 0), ("allocates",), ("imported",),
                                 ("stores_plainly", "x", True), ("ancestor", 1), ("builtin_method", "get")):
        assert getattr(known, question)(SELF, *arguments) == getattr(nothing, question)(SELF, *arguments)


@pytest.mark.parametrize("text", [
    "no json", "[]", "3", "[[], [], 3]", "[[[0, 'local', 'x', {}]], [], []]", '[[[0, "local", "x", {}]], [], []]',
    '[[[-1, "somewhere", "x", {}]], [], []]', '[[[-1, "local", [], {}]], [], []]', '[[[-1, "local", "x", 0]], [], []]',
    '[[[-1, "local", "x"]], [], []]', "[" * 100_000])
def test_what_is_no_record_of_facts_is_refused(text):
    with pytest.raises(ValueError):
        Facts(text)
