"""What the lines of the program's files do, as advice on recompiles takes it."""

import pytest

from depyf.records.model import SourceFile, SourceLocation
from depyf.views.circumstances.program_files import ProgramFiles
from depyf.views.user_source import UserSource

TEXT = """\
class Net:
    def __init__(self, norm):
        self.norm = norm
        self.calls = 0

    def forward(self, x, seen):
        self.calls += 1
        seen["a"] = x.shape[0]
        if self.norm == "max":
            x = x / x.max()
        y = x if len(x) > 4 else -x
        if x.ndim > 2: y = y.flatten()
        return y
"""


def files(*others):
    return ProgramFiles(UserSource([SourceFile("m.py", TEXT), *others]))


@pytest.mark.parametrize(("line", "branches", "only_tests"), [
    (9, True, True), (10, False, False), (11, True, False), (12, True, False)])
def test_lines_by_which_the_program_branches(line, branches, only_tests):
    place = SourceLocation("m.py", line)
    assert files().branches_at(place) == branches
    assert files().only_tests_at(place) == only_tests


def test_what_is_not_known_does_nothing():
    unread = files(SourceFile("other.py", "def f(:"))
    assert not unread.branches_at(None) and not unread.only_tests_at(None)
    for filename in ("other.py", "missing.py"):
        lines = unread.lines_of(filename)
        assert not unread.branches_at(SourceLocation(filename, 1))
        assert (lines.tested_values, lines.filled) == ([], frozenset())


def test_what_lines_test_and_fill():
    lines = files().lines_of("m.py")
    assert ("self.norm", ".norm") in [(each.text, each.last_part) for each in lines.tested_values]
    assert lines.filled == {"seen"}


@pytest.mark.parametrize(("path", "text", "once"), [
    ("other.py", "net.norm = 'rms'\n", set()), ("other.py", "setattr(net, name, 1)\n", set()),
    ("other.py", "net.eps = 1\n", {"norm"}),
    ("/usr/lib/python3/dist-packages/other.py", "net.norm = 'rms'\n", {"norm"})])
def test_attributes_that_only_init_sets(path, text, once):
    """Another file can set them, too, unless it is none of the program's."""
    assert files(SourceFile(path, text)).set_once == once
