"""records.jsonl: what is written comes back; what is damaged is refused by name, what is cut off is used."""

import dataclasses
import json
import platform

import pytest
from sample_records import COMPILATION, GRAPH, WHOLE

from depyf.bytecode.packed import packed
from depyf.finishing.frames import read_records
from depyf.records import run_directory, store
from depyf.records.model import Bytecode, CodeObject, CompileId, EndOfRecording, MeantFunction, ResumeOfBytecode


def write(tmp_path, text):
    path = tmp_path / store.FILE
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_comes_back(tmp_path):
    write(tmp_path, "".join(store.lines(WHOLE)))
    assert store.read(str(tmp_path)) == WHOLE
    assert store.read(str(tmp_path / store.FILE)) == WHOLE


def test_every_field_of_every_record_is_in_the_sample():
    """Otherwise the test above proves less than it says."""
    def has_default(record):
        if dataclasses.is_dataclass(record):
            for field in dataclasses.fields(record):
                value = getattr(record, field.name)
                if field.default is not dataclasses.MISSING and value == field.default:
                    yield f"{type(record).__name__}.{field.name}"
                yield from has_default(value)
        elif isinstance(record, tuple):
            for item in record:
                yield from has_default(item)
    assert set(has_default(WHOLE)) <= {
        "CompileId.attempt", "CompileId.resets", "Guard.cause", "Frame.signature", "GraphStage.internal", "Failure.location",
        "SymbolDecision.reason", "CodeText.note", "GraphStage.modules", "ModuleCall.outer", "TransformedCode.file",
        "Capture.unwritten"}


def killed(*records):
    python = platform.python_version()
    return run_directory.first_line({"torch": "2.13", "python": python}) + "".join(map(store.line, records))


def loop(x):
    return __compiled_fn_1(x)  # noqa: F821


def torch_dynamo_resume_in_loop_at_3(x):
    return x + 1


def test_a_run_that_was_killed_has_what_was_complete(tmp_path):
    codes = [packed(each.__code__) for each in (loop, torch_dynamo_resume_in_loop_at_3)]
    resume = ResumeOfBytecode("__resume_at_2_3", "__resume_at_2_3", 1, ("x",), "loop")
    known = dict(shown={}, facts="", traced=None)
    text = killed(
        COMPILATION, dataclasses.replace(GRAPH, kernels=()), GRAPH,
        CodeObject(0, codes[0]), CodeObject(1, codes[1]),
        Bytecode(CompileId(0, 0), "loop", "__transformed_code_0_for_loop", "a.py", 0, MeantFunction("loop", 0),
                 codes[0], graph_names=("__compiled_fn_1",), resumes=(resume,), **known),
        Bytecode(CompileId(1, 0), "__resume_at_2_3", "__transformed_code_0_for___resume_at_2_3", "b.py", 1,
                 MeantFunction("loop", 1), codes[1], graph_names=(), **known))
    write(tmp_path, text + '{"record":"graph","na')
    capture = read_records(str(tmp_path))
    assert capture.compilations == (COMPILATION,)
    assert capture.graphs == (GRAPH,), "the last line of a graph counts"
    function, = capture.functions
    assert [frame.name for frame in function.frames] == ["loop", "__resume_at_2_3"]
    assert function.frames[0].entries[0].transformed.source.text == (
        "def __transformed_code_0_for_loop(x):\n    return __compiled_fn_1(x)\n")
    assert "return __compiled_fn_1(x)" in function.frames[0].original.text
    assert "killed" in capture.notes[-1] and capture.unwritten is None


@pytest.mark.parametrize("number, code", [(7, None), (0, "AAAA"), (0, "no base64")])
def test_a_code_object_that_is_none_costs_its_function(tmp_path, number, code):
    good = packed(loop.__code__)
    text = run_directory.first_line({"torch": "2.13", "python": "3.11.0"}) + "".join(map(store.line, [
        CodeObject(number, good if code is None else dataclasses.replace(good, data=code)),
        Bytecode(CompileId(0, 0), "loop", "__transformed_code_0_for_loop", "a.py", 0, MeantFunction("loop", 0), good,
                 {}, ())]))
    write(tmp_path, text)
    with pytest.warns(RuntimeWarning, match="that part of the run is missing"):
        assert read_records(str(tmp_path)).functions == ()


@pytest.mark.parametrize("text, named", [
    ("", "empty"),
    ("not json\n", ":1 "),
    ('{"record":"schema","version":99}\n', "schema 99"),
    ('{"record":"schema","version":1}\nbroken\n{"record":"end"}\n', ":2 "),
    ('{"record":"schema","version":1}\n[]\n{"record":"end"}\n', ":2 "),
    ('{"record":"schema","version":1}\n{"record":"graph","name":3}\n', ":2"),
    ('{"record":"schema","version":1}\n{"record":"compilation"}\n', ":2"),
])
def test_damage_is_named(tmp_path, text, named):
    path = write(tmp_path, text)
    with pytest.raises(store.RecordsError) as caught:
        store.read(str(path))
    assert named in str(caught.value) and str(path) in str(caught.value)


def test_no_file(tmp_path):
    with pytest.raises(store.RecordsError, match="prepare_debug"):
        store.read(str(tmp_path / "nothing"))


def test_a_later_version_may_add_fields_and_kinds(tmp_path):
    lines = list(store.lines(WHOLE))
    value = json.loads(lines[1])
    value["colour"] = "red"
    lines[1] = json.dumps(value) + "\n"
    lines.insert(2, '{"record":"weather","sun":true}\n')
    write(tmp_path, "".join(lines))
    assert store.read(str(tmp_path)) == WHOLE


def test_a_run_in_which_torch_cut_the_paths_of_many_files_is_still_to_be_written(tmp_path):
    """They are in the last line, which is longer than what is read of the file at once."""
    ended = EndOfRecording({f"ckage_{number}/module.py": f"/home/me/package_{number}/module.py" for number in range(5000)})
    path = tmp_path / "records.jsonl"
    path.write_text(store.line(COMPILATION) + store.line(ended))
    assert store.is_unwritten(str(tmp_path))
    path.write_text(store.line(ended) + store.line(COMPILATION))
    assert not store.is_unwritten(str(tmp_path))
