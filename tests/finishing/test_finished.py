"""Functions made of records: what an error of ours, or a foreign record, costs."""

import dataclasses
import platform

import pytest

from depyf.bytecode.packed import packed
from depyf.finishing.functions import finished
from depyf.guarded import guarded_call
from depyf.records.model import (
    Bytecode,
    Capture,
    CodeObject,
    CompileId,
    EndOfRecording,
    GuardsOfEntry,
    MeantFunction,
    OrderOfEntries,
    ResumeOfBytecode,
    Unwritten,
)


def work(x):
    return __compiled_fn_1_c9(x) + 1  # noqa: F821


CODE = packed(work.__code__)


def bytecode(number=0, **changes):
    made = Bytecode(
        CompileId(0, number), "work", f"__transformed_code_{number}_for_work", f"{number}.py", 0,
        MeantFunction("work", 0), CODE, {"__compiled_fn_1_c9": "__compiled_fn_1"}, ("__compiled_fn_1",))
    return dataclasses.replace(made, **changes)


def made_of(*bytecodes, errors=None, **parts):
    environment = {"python": platform.python_version()}
    unwritten = Unwritten((CodeObject(0, CODE),), bytecodes, recorded=EndOfRecording({}), **parts)
    seen = [] if errors is None else errors
    capture = finished(Capture(environment=environment, unwritten=unwritten),
                       lambda action, otherwise: guarded_call(action, otherwise, seen.append))
    assert capture.unwritten is None
    assert errors is not None or not seen
    return capture.functions


def test_versions_stand_in_the_order_in_which_torch_tried_them():
    first, second = CompileId(0, 0), CompileId(0, 1)
    guards = GuardsOfEntry(second, "| +- GuardManager: source=L['x'], accessed_by=x, type=<class 'int'>\n"
                                   "| | +- EQUALS_MATCH: L['x'] == 3\n")
    function, = made_of(bytecode(0), bytecode(1), guards=(guards,),
                        orders=(OrderOfEntries(0, ((first, 1), (second, 0)), True),))
    entries = function.frames[0].entries
    assert [(each.compile_id, each.tried) for each in entries] == [(second, 0), (first, 1)]
    assert [guard.source for guard in entries[0].guards] == ["L['x']"]
    assert entries[0].transformed.source.text == (
        "def __transformed_code_1_for_work(x):\n    return __compiled_fn_1(x) + 1\n")
    assert function.frames[0].original_is_user_text and "__compiled_fn_1_c9" in function.frames[0].original.text


def test_facts_that_cannot_be_read_cost_what_they_would_say():
    errors = []
    function, = made_of(bytecode(facts="no json"), errors=errors)
    assert function.frames[0].entries[0].transformed.known and len(errors) == 1


@pytest.mark.parametrize("changes", [
    {"text_name": "f():\n    import os\ndef g"}, {"shown": {"__compiled_fn_1_c9": "exit() or f"}},
    {"resumes": (ResumeOfBytecode("__resume_at_2_1", "a b", 7, ("x",), "work"),)}, {"original": 5},
], ids=["text", "shown", "resume", "no such code"])
def test_a_foreign_record_costs_its_function(changes):
    errors = []
    assert made_of(bytecode(**changes), errors=errors) == ()
    assert [type(error) for error in errors] == [ValueError]
