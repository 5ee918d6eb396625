"""What no decompiler can know: two sources with one bytecode and one line table. The document shows each pair."""

import pathlib
import sys

import pytest

HERE = sys.version_info[:2]
DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "measured" / "natural.md"
#: What is lost in all versions, and two bodies of ``def f(x, y):``.
LOST = [
    ("comments", "return x  # the first", "return x"),
    ("the kind of quotes, escapes", r"return '\x61'", r'return "\141"'),
    ("the base of numbers", "return 0x10", "return 0o20"),
    ("constants that are computed", "return 'a'+'bc'", "return 'a' 'bc'"),
    ("parentheses that change nothing", "y = (x)", "y =  x"),
    ("a last comma", "x(y,)", "x(y )"),
    ("a list or a tuple that is searched or looped over", "return x in [1, 2]", "return x in (1, 2)"),
    ("the order of a set of three constants or more", "return {1, 2, 3}", "return {3, 2, 1}"),
    ("brackets of targets", "[x, y] = y", "(x, y) = y"),
    ("annotations of a function's variables", "x: int = y", "x      = y"),
    ("`global` for what is only read", "global g; return g", "          return g"),
    ("what comes after `return` and `raise`", "return x; return y", "return x"),
]
#: The same where only lines are known (before 3.11).
LOST_WITHOUT_COLUMNS = [
    ("`return None` that is not the last", "if x: return None\ny()", "if x: return\ny()"),
    ("grouped operands", "if x and (y and x): y()", "if x and y and x: y()"),
    ("`not` before a comparison", "return not x in y", "return x not in y"),
    ("`del` of several on one line", "del x, y", "del x; del y"),
    ("a second `if` of a comprehension", "return [i for i in x if i and y]", "return [i for i in x if i if y]"),
    ("an `else` on the line of its statement", "if x: return y\nelse: return x", "if x: return y\nreturn x"),
]


def facts(body, columns=True):
    """Return all that a code object and those in it hold."""
    indented = "".join(f"\n    {line}" for line in body.splitlines())
    work = [compile(f"def f(x, y):{indented}\n", "sample.py", "exec").co_consts[0]]
    found = []
    for code in work:  # (it grows)
        work += [const for const in code.co_consts if hasattr(const, "co_code")]
        places = list(code.co_positions()) if hasattr(code, "co_positions") and columns else list(code.co_lines())
        consts = [repr(type(const)) if hasattr(const, "co_code") else const for const in code.co_consts]
        found.append((code.co_code, consts, code.co_names, code.co_varnames, places,
                      getattr(code, "co_exceptiontable", b"")))
    return found


@pytest.mark.parametrize("what, one, other", LOST)
def test_two_sources_are_one_code_object(what, one, other):
    assert one != other
    assert facts(one) == facts(other)


@pytest.mark.parametrize("what, one, other", LOST_WITHOUT_COLUMNS)
def test_columns_tell_some_apart(what, one, other):
    assert (facts(one) == facts(other)) == (HERE < (3, 11))


@pytest.mark.skipif(not DOCUMENT.exists(), reason="without the documents")
@pytest.mark.parametrize("what, one, other", [*LOST, *LOST_WITHOUT_COLUMNS])
def test_the_document_shows_it(what, one, other):
    row = " | ".join([what, *(f"`{body}`".replace("\n", "`, `") for body in (one, other))])
    assert f"| {row} |" in DOCUMENT.read_text(encoding="utf-8")
