import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depyf.records.naming import LONGEST, FileNames, Numbers, function_identifier, legal_identifier


@given(st.text(max_size=400))
def test_any_name_becomes_a_legal_short_identifier(name):
    identifier = legal_identifier(name)
    assert identifier.isidentifier() and not keyword.iskeyword(identifier)
    assert len(identifier.encode()) <= LONGEST
    assert " " not in identifier


@pytest.mark.parametrize("name, identifier", [
    ("toy_example", "toy_example"), ("<lambda>", "lambda"[:6] + "_"), ("__resume_at_102_2", "__resume_at_102_2"),
    ("class", "class_"), ("3d", "_3d"),
])
def test_known_names(name, identifier):
    assert legal_identifier(name) == identifier


@pytest.mark.parametrize("name, identifier", [
    ("toy_example", "toy_example"), ("LlamaModel.forward", "LlamaModel_forward"),
    ("_Hidden.__init__", "_Hidden___init__"), ("lambda at line 12", "lambda_at_line_12"),
])
def test_names_of_functions(name, identifier):
    assert function_identifier(name) == identifier


def test_functions_of_one_name_are_numbered():
    numbers = Numbers()
    assert [numbers.next(name) for name in ("f", "F", "g")] == ["f_0", "F_1", "g_0"]


def test_long_names_stay_distinct():
    assert legal_identifier("f" * 300) != legal_identifier("f" * 299 + "g")


def test_clashes_are_numbered_and_letter_case_does_not_count():
    names = FileNames()
    assert names.give("a", "f.py") == "f.py"
    assert names.give("b", "F.py") == "F_2.py"
    assert names.give("a", "f.py") == "f.py"
