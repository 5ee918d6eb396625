"""Functions in the text of a file, found by the lines that begin them."""

import ast

from depyf.provenance.definitions import only_parts, parts

TEXT = """import torch

def first(x):
    return x

class Model(Base):
    \"\"\"A model.\"\"\"
    size = 3

    @property
    def second(self):
        return self.size

    def third(self):
        def inside():
            return 3
        return inside

class Fields:
    x: int = 1

def last():
    pass
"""


def line_of(text):
    return [line.strip() for line in TEXT.split("\n")].index(text) + 1


def texts_of(*wanted):
    texts = TEXT.split("\n")
    return [texts[part.begin].strip() for part in parts(texts, sorted(map(line_of, wanted)))]


def test_functions_and_methods_that_hold_lines():
    assert texts_of("return x") == ["def first(x):"]
    assert texts_of("return self.size", "pass") == ["class Model(Base):", "@property", "def last():"]
    assert texts_of("return 3") == ["class Model(Base):", "def third(self):"]
    assert texts_of("import torch") == ["import torch"]
    assert texts_of("x: int = 1") == []


def test_a_text_of_parts_has_their_lines_at_their_places():
    wanted = line_of("return self.size")
    text = only_parts(TEXT, [wanted])
    ast.parse(text)
    lines, whole = text.split("\n"), TEXT.split("\n")
    assert len(lines) == len(whole) and lines[wanted - 1] == whole[wanted - 1]
    begin, end = line_of("class Model(Base):") - 1, line_of("def third(self):") - 1
    assert lines[begin:end] == whole[begin:end]
    assert [line for line in lines[:begin] if line] == [f"# ... (lines 1 to {begin}: nothing of them was traced)"]
    assert [line for line in lines[end:] if line] == [
        f"# ... (lines {end + 1} to {len(whole)}: nothing of them was traced)"]
