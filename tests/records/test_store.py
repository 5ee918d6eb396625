"""records.jsonl: what is written comes back; what is damaged is refused by name, what is cut off is used."""

import dataclasses
import json

import pytest
from sample_records import CODE, COMPILATION, GRAPH, PLACE, WHOLE

from depyf.records import plain_lines, store
from depyf.records.model import CompiledCode, CompileId
from depyf.torch_text.recorded import read_records


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
        "Capture.codes"}


def killed(*records):
    return plain_lines.first_line({"torch": "2.13"}) + "".join(map(store.line, records))


def test_a_run_that_was_killed_has_what_was_complete(tmp_path):
    resume = dataclasses.replace(CODE, compile_id=CompileId(1, 0), function_name="__resume_at_2_3")
    text = killed(
        COMPILATION, dataclasses.replace(GRAPH, kernels=()), GRAPH,
        CompiledCode("f", "f", PLACE, CODE, ("__compiled_fn_1",), ("__resume_at_2_3",)),
        CompiledCode("__resume_at_2_3", "torch_dynamo_resume_in_f_at_3", PLACE, resume, (), ()))
    write(tmp_path, text + '{"record":"graph","na')
    capture = read_records(str(tmp_path))
    assert capture.compilations == (COMPILATION,)
    assert capture.graphs == (GRAPH,), "the last line of a graph counts"
    assert [[frame.name for frame in function.frames] for function in capture.functions] == [["f", "__resume_at_2_3"]]
    assert capture.functions[0].frames[0].entries[0].transformed == CODE
    assert "killed" in capture.notes[-1]


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
