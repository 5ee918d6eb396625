"""The files of cases are in the format, and accepting a text changes what it must."""

import case_files
import pytest
from case_files import HERE, BadCase, read, written

FILES = sorted(HERE.rglob("*.test"))
TEXT = """\
# About the file.

[case first]
# Why.
[in]
def f():
    return [1]

[case second]
# Why.
[python 3.12+]
[in]
x = 1
[out]
x = 2
[out 3.13 3.14]
x = 3
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_a_file_is_written_as_it_is_read(path):
    assert written(*read(path)) == path.read_text(encoding="utf-8")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.test").write_text(TEXT)
    return tmp_path / "a.test"


def test_what_a_file_says(path, monkeypatch):
    head, (first, second) = read(path)
    assert (head, first.name, first.line, first.comment) == ("# About the file.", "first", 3, "# Why.")
    assert first.expected() == first["in"] == "def f():\n    return [1]"
    assert [version for version in [(3, 11), (3, 12), (3, 13)] if second.is_for(version)] == [(3, 12), (3, 13)]
    for version, expected in {(3, 12): "x = 2", (3, 13): "x = 3", (3, 15): "x = 2"}.items():
        monkeypatch.setattr(case_files, "VERSION", version)
        assert second.expected() == expected


@pytest.mark.parametrize("version, text, expected", [
    ((3, 12), "x = 5", "[out]\nx = 5\n[out 3.13 3.14]\nx = 3"),
    ((3, 12), "x = 1", "[out 3.13 3.14]\nx = 3"),
    ((3, 12), "x = 3", "[out]\nx = 3"),
    ((3, 13), "x = 2", "[out]\nx = 2\n[out 3.14]\nx = 3"),
    ((3, 13), "x = 4", "[out]\nx = 2\n[out 3.13]\nx = 4\n[out 3.14]\nx = 3"),
    ((3, 15), "x = 3", "[out]\nx = 2\n[out 3.13 3.14 3.15]\nx = 3")])
def test_a_text_is_accepted_for_its_version(version, text, expected, path, monkeypatch):
    monkeypatch.setattr(case_files, "VERSION", version)
    monkeypatch.setenv("DEPYF_UPDATE_GOLDEN", "1")
    case_files.check(read(path)[1][1], text)
    assert path.read_text().partition("[in]\nx = 1\n")[2].strip() == expected


def test_a_difference_says_where_and_what(path, monkeypatch):
    monkeypatch.delenv("DEPYF_UPDATE_GOLDEN", raising=False)
    with pytest.raises(AssertionError, match=r"(?s)a\.test:3: case first.*-    return \[1\]\n\+    return 2"):
        case_files.check(read(path)[1][0], "def f():\n    return 2\n")


@pytest.mark.parametrize("text, message", [
    ("[in]\nx\n", "a.test:1: .* before the first"), ("[case a]\n[in]\nx\n", "a.test:1: .* comment"),
    ("[case a]\n# Why.\n[in]\n\n[case a]\n# Why.\n", "a.test:5: .* name"), ("[case]\n", "a.test:1: .* name")])
def test_what_is_not_in_the_format(text, message, tmp_path):
    (tmp_path / "a.test").write_text(text)
    with pytest.raises(BadCase, match=message):
        read(tmp_path / "a.test")
