"""Facts are asked once, and answered from memory when the live objects are gone."""

import gc
import pickle
import weakref

import pytest

from depyf.decompiler.dynamo.facts import ALWAYS, NoFacts, RememberedFacts

X, Y = (("global", "x"),), (("global", "y"),)


class Live(NoFacts):
    def __init__(self):
        self.asked = []

    def reading(self, path):
        self.asked.append(path)
        return ALWAYS

    def length(self, path):
        raise ZeroDivisionError("ours")

    def refusals(self):
        return [("x.y", f"asked {len(self.asked)} times")]


class Attempts:
    def __init__(self):
        self.errors = []

    def __call__(self, action, otherwise):
        try:
            return action()
        except Exception as error:
            self.errors.append(error)
            return otherwise


@pytest.fixture
def live():
    return Live()


@pytest.fixture
def attempts():
    return Attempts()


@pytest.fixture
def facts(live, attempts):
    return RememberedFacts(live, attempts)


def test_a_question_is_asked_once(facts, live):
    assert [facts.reading(X), facts.reading(X), facts.reading(Y)] == [ALWAYS] * 3
    assert live.asked == [X, Y]


def test_what_was_refused_is_not_remembered_too_early(facts):
    facts.reading(X)
    assert facts.refusals() == [("x.y", "asked 1 times")]
    facts.reading(Y)
    assert facts.refusals() == [("x.y", "asked 2 times")]


def test_released_facts_answer_from_memory(facts, live):
    facts.reading(X)
    facts.refusals()
    facts.release()
    assert facts.reading(X) == ALWAYS
    assert facts.reading(Y) == ""
    assert facts.refusals() == [("x.y", "asked 1 times")]
    assert live.asked == [X]


def test_pickled_facts_answer_from_memory(facts):
    facts.reading(X)
    again = pickle.loads(pickle.dumps(facts))
    assert again.reading(X) == ALWAYS
    assert again.reading(Y) == ""


def test_an_error_means_no(facts, attempts):
    assert facts.length(X) == 0
    assert facts.length(X) == 0
    assert [type(error) for error in attempts.errors] == [ZeroDivisionError]


def test_a_key_that_cannot_be_looked_up_means_no(facts):
    assert facts.reading((("global", "x"), ("item", []))) == ""


def test_facts_are_let_go_of_at_once(live, attempts):
    gc.disable()
    try:
        facts = RememberedFacts(live, attempts)
        facts.reading(X)
        gone = weakref.ref(facts)
        del facts
        assert gone() is None
    finally:
        gc.enable()
