"""docs/records.md names every kind of line, every record and every field of it."""

import dataclasses
import pathlib
import re

import pytest

from depyf.records import model as records
from depyf.records import run_directory, store

TEXT = (pathlib.Path(__file__).parents[2] / "docs" / "records.md").read_text(encoding="utf-8")
RECORDS = [each for each in vars(records).values()
           if isinstance(each, type) and dataclasses.is_dataclass(each)]


def section(name):
    match = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", TEXT, re.M | re.S)
    assert match, f"docs/records.md has no section on {name}"
    return match[1]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_field_is_named_in_the_section_of_its_record(record):
    text = section(record.__name__)
    if record is records.Capture:
        named = set(re.findall(r"`(\w+)`", text))
    else:
        cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
        named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert {field.name for field in dataclasses.fields(record)} == named


def test_kinds_of_lines_and_the_schema():
    kinds = set(re.findall(r"^\| `(\w+)` \|", TEXT.split("## While the run")[0], re.M))
    assert kinds - {"record"} == {"schema", "note", "end", *store._KINDS}
    assert f'{{"record":"schema","version":{run_directory.SCHEMA},' in TEXT and f"**`version`** is {run_directory.SCHEMA}" in TEXT
    assert "store.NOT_ENDED" in TEXT


def test_its_links_lead_somewhere():
    anchors = {line.lstrip("# ").lower().replace(" ", "-") for line in TEXT.splitlines() if line.startswith("#")}
    for target in re.findall(r"\]\(#([^)]*)\)", TEXT):
        assert target in anchors
