"""Each code object has a form of its own: what cannot be structured falls back alone."""


import pytest

from depyf.decompiler import Fidelity, decompile_code, pipeline
from depyf.decompiler.errors import STRUCTURE, CannotDecompile
from depyf.decompiler.scopes import CodeScope

TEXT = '''
def before(x):
    return [y for y in x if y]

def outer(xs):
    """doc"""
    def nested(a, b=2):
        """inner doc"""
        return [a for a in xs if (lambda: a + b)()]
    class C:
        def method(self):
            return nested(self)
    return nested, C

def after(x):
    return lambda: x
'''


@pytest.fixture
def without_structure(monkeypatch):
    """The given function cannot be structured."""

    def refuse(name):
        structured = CodeScope.structured

        def raises(self):
            if self.code.name == name:
                raise CannotDecompile(STRUCTURE, "refused by the test")
            return structured(self)

        monkeypatch.setattr(CodeScope, "structured", raises)

    return refuse


def parts(found):
    return {part.name.split(".")[-1]: part for part in found.parts}


def test_one_that_cannot_be_structured_falls_back_alone(without_structure):
    without_structure("outer")
    found = decompile_code(compile(TEXT, "text.py", "exec", dont_inherit=True))
    by_name = parts(found)
    assert found.fidelity is Fidelity.FALLBACK
    assert by_name["outer"].fidelity is Fidelity.FALLBACK
    assert "refused by the test" in by_name["outer"].reason
    assert "refused by the test" in found.note
    for name in ("<module>", "before", "after"):
        assert by_name[name].fidelity is Fidelity.EXACT, by_name[name]


def test_what_a_dispatch_loop_holds_is_still_proven(without_structure):
    without_structure("outer")
    found = decompile_code(compile(TEXT, "text.py", "exec", dont_inherit=True))
    by_name = parts(found)
    for name in ("nested", "method"):
        assert by_name[name].fidelity is Fidelity.EXACT, by_name[name]
    namespace = {}
    exec(found.text, namespace)
    nested, cls = namespace["outer"]([1, 2])
    assert nested(5) == [1, 2] and nested.__doc__ == "inner doc" and cls.__name__ == "C"


def test_every_part_says_where_it_is():
    code = compile(TEXT, "text.py", "exec", dont_inherit=True)
    found = decompile_code(code)
    assert found.fidelity is Fidelity.EXACT
    lines = {part.name: part.line for part in found.parts}
    assert lines["outer"] == 5 and lines["before"] == 2
    assert sum(part.units for part in found.parts) > len(code.co_code) // 2
    for part in found.parts:
        assert part.line_map, part.name


def test_without_proof_nothing_is_called_proven():
    found = decompile_code(compile(TEXT, "text.py", "exec", dont_inherit=True), verify=False)
    assert {part.fidelity for part in found.parts} == {Fidelity.UNPROVEN}


def test_without_proof_no_values_are_moved_about(without_structure):
    without_structure("before")
    found = decompile_code(compile(TEXT, "text.py", "exec", dont_inherit=True), verify=False)
    assert parts(found)["before"].fidelity is Fidelity.FALLBACK
    assert parts(found)["after"].fidelity is Fidelity.UNPROVEN


def test_no_clause_of_many_is_lost():
    clauses = "".join(f" except E{number}: h({number})\n" for number in range(1001))
    found = decompile_code(compile(f"def f():\n try: g()\n{clauses}", "many", "exec", dont_inherit=True), verify=False)
    assert found.text.count("except") == 1001


def large_class(last):
    """A module with a class of 120 functions, and the class's body, whose last function has a name that is none."""
    functions = "".join(f"    def f{number}(self): return {number}\n" for number in range(120))
    module = compile(f"def before(): pass\nclass C:\n{functions}{last}", "large.py", "exec", dont_inherit=True)
    body = next(c for c in module.co_consts if getattr(c, "co_name", "") == "C")
    broken = body.replace(co_names=tuple("a b" if name == "odd" else name for name in body.co_names))
    return module.replace(co_consts=tuple(broken if c is body else c for c in module.co_consts)), broken


@pytest.fixture
def writes(monkeypatch):
    """A list that gets longer each time when a whole is written."""
    found, written = [], pipeline._Job.written

    def counted(job):
        found.append(job)
        return written(job)

    monkeypatch.setattr(pipeline._Job, "written", counted)
    return found


def test_what_only_the_whole_shows_is_found_in_a_few_tries(writes):
    module, _ = large_class("    def odd(self): return 0\n")
    by_name = parts(decompile_code(module))
    assert {name for name, part in by_name.items() if part.fidelity is not Fidelity.EXACT} == {"C"}
    assert "'a b' is not a name" in by_name["C"].reason
    assert len(writes) < 30


def test_what_nothing_helps_against_is_given_up_after_a_few_tries(writes):
    # A class body by itself, one of whose functions sets `__class__`: no text has that variable around it.
    _, body = large_class("    def odd(self):\n        nonlocal __class__\n        __class__ = 0\n")
    with pytest.raises(pipeline.Failed, match="'a b' is not a name.*nonlocal '__class__'"):
        decompile_code(body)
    assert len(writes) < 40
