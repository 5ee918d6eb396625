"""Notes on a decompilation, which a semicolon takes apart."""

import pytest

from depyf.decompiler import pipeline
from depyf.views.formatting import notes_of


@pytest.mark.parametrize("name", ["_SIMPLIFIED", "_SPILLED", "_MADE_AGAIN"])
def test_each_form_is_one_note(name):
    note = getattr(pipeline, name)
    assert notes_of(note) == [note]
