"""Facts of the source text that a line table holds."""

import inspect
import sys
import textwrap

import pytest
from as_written.stripped import stripped

from depyf.bytecode.code import Code
from depyf.bytecode.linetable import Position, positions
from depyf.decompiler import decompile_code
from depyf.decompiler.structure.evidence import Evidence

COLUMNS = pytest.mark.skipif(sys.version_info < (3, 11), reason="positions came with 3.11")


def code_of(source):
    space = {}
    exec(compile(source, "test", "exec"), space)
    return Code.of(space["f"].__code__)


LOOP = """\
def f(xs):
    for x in xs:
        if not x:
            continue
        if x > 9:
            x.close()
            break
        try:
            x.go()
        except ValueError:
            pass
    return
"""


@COLUMNS
@pytest.mark.parametrize("function", [inspect.getsource, textwrap.wrap, textwrap.TextWrapper._wrap_chunks])
def test_positions_are_those_of_the_interpreter(function):
    code = function.__code__
    expected = [Position(*each) if each[0] is not None else None for each in code.co_positions()]
    assert positions(Code.of(code)) == expected


@COLUMNS
def test_one_word_statements():
    found = {(each.line, each.column, each.kind) for each in Evidence(code_of(LOOP)).exits}
    assert {(4, 12, "continue"), (7, 12, "break"), (11, 12, "pass")} <= found


def test_lines_alone_say_where_but_not_which():
    bare = code_of(LOOP)
    if sys.version_info >= (3, 11):
        bare = Code.of(bare.origin.replace(co_linetable=_lines_only(bare.origin)))
    evidence = Evidence(bare)
    assert not evidence.has_columns and evidence.has_lines
    assert 4 in {each.line for each in evidence.exits} and {each.kind for each in evidence.exits} == {""}


def _lines_only(code):
    from depyf.bytecode.linetable import encode_linetable

    return encode_linetable(sys.version_info[:2], code.co_firstlineno, list(code.co_lines()))


@COLUMNS
def test_what_the_compiler_adds_is_no_statement():
    evidence = Evidence(code_of("def f(x):\n    if x:\n        x.go()\n    else:\n        x.run()\n"))
    assert not evidence.exits


WITHOUT_POSITIONS = """\
def of(kind):
    if isinstance(kind, str):
        return kind.upper()
    else:
        return kind.name()

def guarded(kind):
    if not kind:
        return None
    kind.check()
    kind.open()
    return kind.name

def show(prof, file):
    if file is not None:
        prof.dump(file)
    else:
        prof.show()

def long_end(text):
    if text.plain:
        text.escape()
        return text.join(text.first, text.last)
    text.parse()
    return text.join(text.first, text.last)

def escape(text):
    if isinstance(text, bytes):
        text = text.replace(b'&', b'and')
    else:
        text = text.replace('&', 'and')
    return text
"""


@pytest.mark.parametrize("mode", ["lines", "none"])
def test_where_nothing_tells_no_else_follows_what_leaves(mode):
    expected = WITHOUT_POSITIONS
    if mode == "none":  # (Lines tell that there is one for the ``else``.)
        expected = expected.replace("    else:\n        return kind.name()", "    return kind.name()")
    code = compile(WITHOUT_POSITIONS, "test", "exec")
    assert decompile_code(Code.of(stripped(code, mode))).text.rstrip() == expected.rstrip()


def test_loop_without_positions():
    """The test of a loop of one block is the end of that block, too."""
    source = "def f(a):\n    while a.more():\n        a.next()\n"
    found = decompile_code(Code.of(stripped(compile(source, "test", "exec"), "none")))
    assert found.text.strip() == source.strip() and found.fidelity.value == "exact"


@COLUMNS
def test_none_among_operands_is_no_pass():
    evidence = Evidence(code_of("def f(x):\n    if None in x:\n        x.go(None)\n    return x\n"))
    assert [each.kind for each in evidence.exits] == []


def test_many_constant_arguments():
    source = f"f({', '.join(map(repr, range(31)))})"
    assert decompile_code(compile(source, "test", "exec")).text == f"{source}\n"


def test_what_a_function_declares_global_is_global_in_its_module_too():
    source = "import a\ncached = None\n\ndef f():\n    global cached\n    cached = a.new()\nprint(cached)\n"
    assert decompile_code(compile(source, "test", "exec")).text == source
