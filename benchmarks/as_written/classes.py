"""The kind of the first difference of two trees, in a few stable words.

``difference`` walks both trees side by side, in the order of the text. At each pair of statements and expressions that
differ it asks, before it goes into them, whether the pair is one of the known kinds (an ``if`` turned round, an early
return in place of an ``else``); where none of them is, the innermost pair of nodes names the class. The source's form
is named first.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .normalise import OPPOSITE, TryStar, never_completes

_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_TRIES = (ast.Try, TryStar)


def difference(source: ast.AST, ours: ast.AST) -> str:
    """The class of the first difference; empty if there is none."""
    if same(source, ours):
        return ""
    if isinstance(source, ast.stmt) and isinstance(ours, ast.stmt):
        return block_difference([source], [ours])
    if isinstance(source, ast.expr) and isinstance(ours, ast.expr):
        known = _of_expressions(source, ours)
        if known:
            return known
    if type(source) is not type(ours):
        return f"other: {_kind(source)} vs {_kind(ours)}"
    return _inside(source, ours)


def _inside(source: ast.AST, ours: ast.AST) -> str:
    """The class of the first difference of two nodes of one type."""
    for name in source._fields:
        left, right = getattr(source, name, None), getattr(ours, name, None)
        if isinstance(left, list) and isinstance(right, list):
            if _are_statements(left) or _are_statements(right):
                found = block_difference(left, right)
            else:
                found = next(filter(None, map(_of_values, left, right)), "")
                if not found and len(left) != len(right):
                    found = f"other: {_kind(source)}.{name} of another length"
        else:
            found = _of_values(left, right)
            if found == "value":
                found = f"other: {_kind(source)}.{name} differs"
        if found:
            return found
    return ""


def _of_values(left: object, right: object) -> str:
    if isinstance(left, ast.AST) and isinstance(right, ast.AST):
        return difference(left, right)
    if isinstance(left, ast.AST) or isinstance(right, ast.AST):
        return f"other: {_kind(left)} vs {_kind(right)}"
    return "" if type(left) is type(right) and repr(left) == repr(right) else "value"


def _are_statements(block: list[object]) -> bool:
    return bool(block) and isinstance(block[0], ast.stmt)


def _kind(node: object) -> str:
    return "nothing" if node is None else type(node).__name__


# --- statements -----------------------------------------------------------------------------------
def block_difference(source: Sequence[ast.stmt], ours: Sequence[ast.stmt]) -> str:
    """The class of the first difference of two blocks."""
    at = 0
    while at < min(len(source), len(ours)) and same(source[at], ours[at]):
        at += 1
    left, right = list(source[at:]), list(ours[at:])
    if not left and not right:
        return ""
    if not left:
        return f"added: {_name(right[0])}"
    if not right:
        return f"left out: {_name(left[0])}"
    return _of_rests(left, right)


def _of_rests(left: list[ast.stmt], right: list[ast.stmt]) -> str:
    """The class of two rests of blocks that differ from their first statements on."""
    first, other = left[0], right[0]
    if isinstance(first, ast.If) and isinstance(other, ast.If):
        return _of_ifs(first, other, left[1:], right[1:])
    if isinstance(first, ast.While) and isinstance(other, ast.While):
        return _of_whiles(first, other)
    if isinstance(first, _TRIES) and isinstance(other, _TRIES):
        return _of_tries(first, other, left[1:], right[1:])
    if isinstance(first, ast.With | ast.AsyncWith) and type(first) is type(other):
        if len(first.items) != len(other.items):
            return "with of one vs of several" if len(first.items) < len(other.items) else "with of several vs nested"
    if isinstance(first, ast.For | ast.AsyncFor) and type(first) is type(other):
        found = _of_loop_ends(first, other)
        if found:
            return found
    if type(first) is type(other):
        if isinstance(first, ast.Return):
            return _of_returns(first, other)
        if isinstance(first, ast.Import | ast.ImportFrom | ast.Delete):
            count, ours = (len(getattr(node, "names", getattr(node, "targets", []))) for node in (first, other))
            if count != ours:
                return f"{_name(first)} of {'several vs one each' if count > ours else 'one each vs several'}"
        return _inside(first, other)
    return _of_statements(first, other)


def _of_statements(first: ast.stmt, other: ast.stmt) -> str:
    """The class of two statements of different types."""
    if isinstance(first, ast.If):
        if isinstance(other, _EXITS):
            return f"if vs {_name(other)}: an expression for the statement" if _has_choice(other) else \
                f"if vs {_name(other)}"
        if _has_choice(other):
            return f"if vs {_kind(other)} of a choice"
    if isinstance(other, ast.If):
        if _has_choice(first):
            return f"{_name(first)} of a choice vs if"
        return f"{_name(first)} vs if"
    if isinstance(first, _EXITS) and isinstance(other, _EXITS):
        return f"exit: {_name(first)} vs {_name(other)}"
    return f"statement: {_name(first)} vs {_name(other)}"


def _has_choice(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.IfExp | ast.BoolOp) for node in ast.walk(statement))


def _name(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Return):
        return "return" if statement.value is None else "return of a value"
    return _kind(statement).lower()


def _of_returns(first: ast.Return, other: ast.stmt) -> str:
    assert isinstance(other, ast.Return)
    if first.value is None or other.value is None:
        values = [value for value in (first.value, other.value) if value is not None]
        if all(isinstance(value, ast.Constant) and value.value is None for value in values):
            return "return vs return None" if first.value is None else "return None vs return"
        return f"exit: {_name(first)} vs {_name(other)}"
    return difference(first.value, other.value)


def _of_ifs(first: ast.If, other: ast.If, rest: list[ast.stmt], other_rest: list[ast.stmt]) -> str:
    if same(first.test, other.test):
        return _of_branches(first, other, rest, other_rest)
    if same(_opposite(first.test), _plain(other.test)):
        return "if turned: " + _turned(first, other, rest)
    found = _split_test(first, other)
    if found:
        return found
    return difference(first.test, other.test)


def _turned(first: ast.If, other: ast.If, rest: list[ast.stmt]) -> str:
    """How an ``if`` looks whose test was turned round."""
    if _is_pass(other.body):
        return "pass in the branch"
    if _is_pass(first.body):
        return "author's pass in the branch"
    exits, our_exits = never_completes(first.body), never_completes(other.body)
    if not first.orelse and exits and not other.orelse:
        guard = _name(first.body[-1])
        return f"guard ({guard}) vs {'guard of the rest' if our_exits else 'the rest nested'}"
    if not first.orelse and exits:
        return f"guard ({_name(first.body[-1])}) vs if/else"
    if not first.orelse and not other.orelse:
        return f"nested vs guard ({_name(other.body[-1])})" if our_exits else "nested vs nested"
    if not first.orelse:
        return "if vs if/else"
    if not other.orelse:
        return f"if/else vs guard ({_name(other.body[-1])})" if our_exits else "if/else vs if"
    if blocks_same(first.body, other.orelse) and blocks_same(first.orelse, other.body):
        return "branches swapped"
    return "branches swapped, and more"


def _of_branches(first: ast.If, other: ast.If, rest: list[ast.stmt], other_rest: list[ast.stmt]) -> str:
    """The class of two ``if`` with one test."""
    if blocks_same(first.body, other.body):
        exits = never_completes(first.body)
        if not first.orelse and other.orelse:
            if not exits:
                return "if vs if/else"
            chain = "elif chain" if len(other.orelse) == 1 and isinstance(other.orelse[0], ast.If) else "else"
            return f"guard ({_name(first.body[-1])}) vs {chain}"
        if first.orelse and not other.orelse:
            if not exits:
                return "if/else vs if"
            chain = "elif chain" if len(first.orelse) == 1 and isinstance(first.orelse[0], ast.If) else "else"
            return f"{chain} vs guard ({_name(first.body[-1])})"
        if first.orelse and _is_pass(other.orelse):
            return "else vs else: pass"
        return block_difference(first.orelse, other.orelse)
    return _of_ends(first.body, other.body, "branch") or block_difference(first.body, other.body)


def _of_ends(body: Sequence[ast.stmt], other: Sequence[ast.stmt], where: str) -> str:
    """The class of two blocks of which one has more at its end."""
    if _is_pass(body) and len(other) == 1 and isinstance(other[0], _EXITS):
        return f"{where}: pass vs {_name(other[0])}"
    if _is_pass(other) and len(body) == 1 and isinstance(body[0], _EXITS):
        return f"{where}: {_name(body[0])} vs pass"
    shared = min(len(body), len(other))
    if len(body) == len(other) or not blocks_same(body[:shared], other[:shared]):
        return ""
    if len(other) == shared + 1 and isinstance(other[-1], _EXITS):
        return f"{where} ends in a {_name(other[-1])} that nobody wrote"
    if len(body) == shared + 1 and isinstance(body[-1], _EXITS):
        return f"{where} lost its {_name(body[-1])}"
    return f"{where} took in what follows" if len(other) > shared else f"end of the {where} moved out"


def _split_test(first: ast.If, other: ast.If) -> str:
    """``if a and b`` and ``if a: if b``, in both directions, and with tests turned."""
    for opposite, turned in ((_plain, ""), (_opposite, ", turned")):
        for op, name, split in ((ast.And, "and", "nested if"), (ast.Or, "or", "two ifs")):
            ours, theirs = _values(_plain(other.test), op), _values(opposite(first.test), op)
            if len(ours) < len(theirs) and blocks_same(ours, theirs[:len(ours)]):
                return f"if {name} vs {split}{turned}"
            if len(theirs) < len(ours) and blocks_same(theirs, ours[:len(theirs)]):
                return f"{split} vs if {name}{turned}"
    return ""


def _values(test: ast.expr, op: type[ast.boolop]) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, op) else [test]


def _of_whiles(first: ast.While, other: ast.While) -> str:
    endless, our_endless = _is_true(first.test), _is_true(other.test)
    if endless != our_endless:
        return "while True vs while test" if endless else "while test vs while True"
    if not same(first.test, other.test):
        return _choice_in_test(first.test, other.test) or difference(first.test, other.test)
    return _of_loop_ends(first, other) or _inside(first, other)


def _choice_in_test(first: ast.expr, other: ast.expr) -> str:
    if isinstance(first, ast.BoolOp) and same(first.values[0], other):
        return "while and vs while if"
    if isinstance(other, ast.BoolOp) and same(other.values[0], first):
        return "while if vs while and"
    return ""


def _of_loop_ends(first: ast.stmt, other: ast.stmt) -> str:
    assert isinstance(first, _LOOPS) and isinstance(other, _LOOPS)
    if not isinstance(first, ast.While) and not (
            same(first.target, other.target) and same(first.iter, other.iter)):  # type: ignore[union-attr]
        return ""
    if blocks_same(first.body, other.body):
        if not first.orelse and other.orelse:
            return "loop vs loop with else"
        if first.orelse and not other.orelse:
            return "loop with else vs loop"
        return ""
    return _of_ends(first.body, other.body, "loop")


def _of_tries(first: ast.stmt, other: ast.stmt, rest: list[ast.stmt], other_rest: list[ast.stmt]) -> str:
    assert isinstance(first, ast.Try) and isinstance(other, ast.Try)
    if bool(first.finalbody) != bool(other.finalbody):
        return "try with finally vs without" if first.finalbody else "try without finally vs with"
    if bool(first.handlers) != bool(other.handlers):
        return "try with except vs without" if first.handlers else "try without except vs with"
    if not blocks_same(first.body, other.body):
        found = _of_ends(first.body, other.body, "try body")
        if found and bool(first.orelse) != bool(other.orelse):
            return "try else vs try body" if first.orelse else "try body vs try else"
        return found or block_difference(first.body, other.body)
    for handler, ours in zip(first.handlers, other.handlers):
        if not same(handler, ours):
            if _same_field(handler.type, ours.type) and handler.name == ours.name:
                return _of_ends(handler.body, ours.body, "handler") or block_difference(handler.body, ours.body)
            return _inside(handler, ours)
    if len(first.handlers) != len(other.handlers):
        return "try: number of handlers"
    if bool(first.orelse) != bool(other.orelse):
        return "try else vs what follows" if first.orelse else "what follows vs try else"
    return _of_ends(first.orelse, other.orelse, "try else") or block_difference(first.orelse, other.orelse) or \
        _of_ends(first.finalbody, other.finalbody, "finally") or block_difference(first.finalbody, other.finalbody)


# --- expressions ----------------------------------------------------------------------------------
def _of_expressions(source: ast.expr, ours: ast.expr) -> str:
    """The class of two expressions that differ, if they are of a known kind."""
    if isinstance(ours, ast.JoinedStr) and isinstance(source, ast.BinOp) and isinstance(source.op, ast.Mod):
        return "% vs f-string"
    if isinstance(source, ast.JoinedStr) and isinstance(ours, ast.BinOp):
        return "f-string vs %"
    if isinstance(source, ast.IfExp) and isinstance(ours, ast.IfExp):
        if same(_opposite(source.test), _plain(ours.test)) and same(source.body, ours.orelse):
            return "conditional expression turned"
    if isinstance(source, ast.Compare) and isinstance(ours, ast.UnaryOp) or \
            isinstance(source, ast.UnaryOp) and isinstance(ours, ast.Compare):
        if same(_plain(source), _plain(ours)):
            return f"{_kind(source)} vs {_kind(ours)}: not"
    if any(isinstance(node, ast.BoolOp | ast.UnaryOp | ast.IfExp) for node in (source, ours)):
        if same(_plain(source), _plain(ours)):
            grouped = same(_plain(source, inwards=False), _plain(ours, inwards=False))
            return "and/or grouped otherwise" if grouped else "test said otherwise: not and De Morgan"
        if isinstance(source, ast.BoolOp) and isinstance(ours, ast.IfExp):
            return "and/or vs conditional expression"
        if isinstance(source, ast.IfExp) and isinstance(ours, ast.BoolOp):
            return "conditional expression vs and/or"
        if isinstance(source, ast.BoolOp) and isinstance(ours, ast.BoolOp) and ast.dump(source.op) != ast.dump(ours.op):
            return "and vs or"
    if isinstance(source, ast.Call) and isinstance(ours, ast.Call) and _stars(source) != _stars(ours):
        return "call: stars"
    if isinstance(source, ast.Compare) and isinstance(ours, ast.BoolOp):
        return "chained comparison vs and"
    if isinstance(source, ast.BoolOp) and isinstance(ours, ast.Compare):
        return "and vs chained comparison"
    return ""


def _stars(call: ast.Call) -> tuple[int, int, int]:
    starred = [argument for argument in call.args if isinstance(argument, ast.Starred)]
    shown = sum(isinstance(argument.value, ast.Tuple | ast.List | ast.Constant) for argument in starred)
    return len(starred), shown, sum(keyword.arg is None for keyword in call.keywords)


def _plain(test: ast.expr, negated: bool = False, inwards: bool = True) -> ast.expr:
    """A test with each ``not`` moved inwards as far as it goes (if it shall), and ``and`` in ``and`` made one."""
    if inwards and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _plain(test.operand, not negated)
    if isinstance(test, ast.BoolOp):
        op: ast.boolop = test.op
        if negated:
            op = ast.Or() if isinstance(op, ast.And) else ast.And()
        values: list[ast.expr] = []
        for value in test.values:
            values += _values(_plain(value, negated, inwards), type(op))
        return ast.BoolOp(op, values)
    if not negated:
        return test
    match test:
        case ast.Compare(_, [ast.Is() | ast.IsNot() | ast.In() | ast.NotIn() as op], _):
            return ast.Compare(test.left, [OPPOSITE[type(op)]()], test.comparators)
    return ast.UnaryOp(ast.Not(), test)


def _opposite(test: ast.expr) -> ast.expr:
    return _plain(test, True)


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _is_pass(block: Sequence[ast.stmt]) -> bool:
    return len(block) == 1 and isinstance(block[0], ast.Pass)


def same(left: ast.AST, right: ast.AST) -> bool:
    """Whether two trees are equal, apart from where they stand."""
    return ast.dump(left) == ast.dump(right)


def _same_field(left: ast.AST | None, right: ast.AST | None) -> bool:
    return left is right if left is None or right is None else same(left, right)


def blocks_same(left: Sequence[ast.AST], right: Sequence[ast.AST]) -> bool:
    """Whether two blocks (or lists of values) are equal."""
    return len(left) == len(right) and all(map(same, left, right))
