"""What torch met at a graph break, by its id and its heading."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from depyf.records.model import CompileId, GraphBreak
from depyf.torch_text.met import KINDS, met

REGISTRY = Path(torch.__file__).parent / "_dynamo" / "graph_break_registry.json"


@pytest.mark.skipif(not REGISTRY.exists(), reason="this torch has no registry of graph breaks")
def test_ids_and_headings_are_those_of_torchs_registry():
    registry = json.loads(REGISTRY.read_text(encoding="utf-8"))
    other = [(number, of.headings) for of in KINDS.values() for number in of.ids.split() if number in registry
             and not any(entry["Gb_type"].startswith(of.headings) for entry in registry[number])]
    assert not other


@pytest.mark.parametrize(("reason", "number", "kind", "event"), [
    ("Data-dependent branching", "", "branch", "branch"),
    ("Data-dependent something", "", "data", ""),
    ("", "GB0124", "item", "item"),
    ("Attempted to inline function marked as skipped (SkipFunctionVariable)", "GB0009", "skipped", ""),
    ("Could not guard on data-dependent expression u0 > 1 (unhinted: u0 > 1)", "", "undecided", "symbol"),
    ("Could not guard on data-dependent expression u0 (unhinted: u0)", "", "value", "symbol"),
    ("Something new", "GB9999", "", ""),
])
def test_a_kind_is_known_by_its_id_or_its_heading(reason, number, kind, event):
    found = met(GraphBreak(CompileId(0, 0), reason, registry_id=number))
    assert (found.kind, found.event) == (kind, event)
