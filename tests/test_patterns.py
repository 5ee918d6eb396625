"""Expressions that are compiled when they are used, and matches found by the literal that they begin with."""

import re
import subprocess
import sys

import pytest

from depyf.patterns import pattern, replaced_from


def test_an_expression_is_compiled_when_it_is_used():
    done = subprocess.run([sys.executable, "-c", (
        "import re; from depyf.patterns import pattern\n"
        "compiled = []; plain = re.compile\n"
        "re.compile = lambda *given: compiled.append(given) or plain(*given)\n"
        "word = pattern('a+', re.I); print(len(compiled))\n"
        "print(word.fullmatch('aA')[0], word.sub('b', 'cAc'), len(word.findall('a b a')))")],
        capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "aA", "cbc", "2"]


def test_an_expression_that_is_none_fails_where_it_is_used():
    wrong = pattern("(")
    with pytest.raises(re.error):
        wrong.match("")


@pytest.mark.parametrize("text", [
    "", "id", "id(1)", "id(1)id(2) id(x) id(3)", "idid(1)", "id(id(1))", "no\nid(12)\nid(", "((id(5)",
])
def test_replaced_from_does_what_sub_does(text):
    expression = re.compile(r"id\((\d+)\)")

    def new(match: re.Match[str]) -> str:
        return f"<{match[1]}>"

    assert replaced_from("id(", expression, new, text) == expression.sub(new, text)
