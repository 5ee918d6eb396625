import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depyf.records.model import CompileId
from depyf.records.naming import LONGEST, FileNames, FunctionNames, function_identifier, legal_identifier


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


def test_files_of_functions_of_one_name():
    """Numbered, so that none clashes (letter case does not count); the first class has the name alone."""
    names = FunctionNames()
    functions = ["f", "F", "Llama.forward", "Norm.forward", "Llama.forward", "Norm.forward", "Outer.Norm.forward",
                 "torch_dynamo_resume_in_f_at_8", "torch_dynamo_resume_in_f_at_8"]
    assert [names.transformed(each) for each in functions] == [
        "__transformed_code_0_for_f", "__transformed_code_1_for_F", "__transformed_code_0_for_forward",
        "__transformed_code_0_of_Norm_for_forward", "__transformed_code_1_for_forward",
        "__transformed_code_1_of_Norm_for_forward", "__transformed_code_0_of_Outer_Norm_for_forward",
        "__transformed_code_0_for_torch_dynamo_resume_in_f_at_8",
        "__transformed_code_1_for_torch_dynamo_resume_in_f_at_8"]
    assert [names.full_code(each) for each in functions[:4]] == [
        "full_code_for_f_0", "full_code_for_F_1", "full_code_for_forward_0", "full_code_for_forward_of_Norm_0"]


@given(st.lists(st.text(max_size=300), max_size=8))
def test_any_names_of_functions_make_distinct_file_names(functions):
    names, files = FunctionNames(), FileNames()
    made = [files.transformed_file(names.transformed(each), CompileId(0, number), each)
            for number, each in enumerate(functions)] + [names.full_code(each) + ".py" for each in functions]
    assert len({each.lower() for each in made}) == len(made)
    assert all(len(each.encode()) < 240 and "/" not in each for each in made)


def test_long_names_stay_distinct():
    assert legal_identifier("f" * 300) != legal_identifier("f" * 299 + "g")


def test_clashes_are_numbered_and_letter_case_does_not_count():
    names = FileNames()
    assert names.give("a", "f.py") == "f.py"
    assert names.give("b", "F.py") == "F_2.py"
    assert names.give("a", "f.py") == "f.py"
