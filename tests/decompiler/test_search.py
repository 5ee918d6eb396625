"""The search for a form among candidates: which attempts are made, in which order."""

from depyf.decompiler import Fidelity, decompile_code
from depyf.decompiler.structure.search import Search


def attempts(places, size=0):
    """The choices of all attempts, where each place has the given number of candidates whatever was chosen."""
    search = Search(size)
    made = []
    while True:
        search.begin()
        made.append([search.choose(range(count)) for count in places])
        if not search.advance():
            return made


def test_attempts_differ_from_the_first_at_one_place():
    assert attempts([2, 3, 1, 2]) == [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 2, 0, 0]]


def test_without_choices_there_is_one_attempt():
    assert attempts([]) == [[]] and attempts([1, 1]) == [[0, 0]]


def test_attempts_are_bounded_and_fewer_for_a_large_body():
    assert len(attempts([2] * 100)) == 8
    assert len(attempts([2] * 100, size=10_000)) == 4
    assert len(attempts([2] * 100, size=1_000_000)) == 2


def test_a_body_that_is_written_again_is_written_as_it_was_last():
    search = Search()
    search.begin()
    assert search.choose("ab") == "a" and search.choose("cd") == "c"
    assert search.advance()
    for _ in range(2):
        search.begin()
        assert search.choose("ab") == "b" and search.choose("cd") == "c"


def test_an_attempt_may_meet_other_places_behind_the_one_where_it_differs():
    search = Search()
    search.begin()
    search.choose("ab")
    search.choose("cd")
    assert search.advance()
    search.begin()
    assert [search.choose("ab"), search.choose("x"), search.choose("y"), search.choose("z")] == ["b", "x", "y", "z"]
    assert search.advance()
    search.begin()
    assert [search.choose("ab"), search.choose("x")] == ["a", "x"], "fewer candidates than there were"


def test_after_the_last_attempt_the_first_is_made_again():
    search = Search()
    search.begin()
    search.choose("ab")
    assert search.advance() and not search.advance()
    search.begin()
    assert search.choose("ab") == "a"


def test_a_module_may_end_in_a_loop_that_is_left():
    """(3.10 writes a copy of the module's end in the place of the ``break``, on its line.)"""
    source = ("import os\nif os.name:\n    while True:\n        buf = os.read(0, 9)\n"
              "        if not buf:\n            break\n        os.write(1, buf)\n")
    found = decompile_code(compile(source, "m", "exec", dont_inherit=True))
    assert found.fidelity is Fidelity.EXACT, found.note
    assert "break" in found.text
