"""Unreachable code that the compilers of 3.9 and before leave: it shows ``else`` and ``continue``.

They write the jump over an ``else`` after a branch that never reaches it, the end of a handler after a ``continue``,
and ``return None`` at the end of a function that returned before. Only code directly after a ``return`` is removed
(``PyCode_Optimize`` in peephole.c). From 3.10 on none of it is left.

Example: ``if a: raise B`` / ``else: return c`` has a jump after the ``raise``. Without the ``else`` there is none.
"""

from __future__ import annotations

from ...bytecode.code import Instruction

#: Control never goes on after these.
_LEAVES = frozenset({"JUMP_FORWARD", "JUMP_ABSOLUTE", "RETURN_VALUE", "RAISE_VARARGS", "BREAK_LOOP", "CONTINUE_LOOP",
                     "RERAISE"})
_JUMPS = frozenset({"JUMP_FORWARD", "JUMP_ABSOLUTE"})
#: These end the handlers of a statement.
_ENDS = frozenset({"END_FINALLY", "RERAISE", "WITH_CLEANUP_FINISH"})
_TESTS = frozenset({"POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE"})
#: The end of a statement of one word, and operations that may precede it.
_EXITS = frozenset({*_JUMPS, "RETURN_VALUE", "BREAK_LOOP", "CONTINUE_LOOP"})
_UNWINDING = frozenset({
    "LOAD_CONST", "POP_TOP", "POP_BLOCK", "POP_EXCEPT", "BEGIN_FINALLY", "WITH_CLEANUP_START", "WITH_CLEANUP_FINISH",
    "POP_FINALLY", "DUP_TOP", "CALL_FUNCTION", "ROT_FOUR",
})
_WORDS = {"BREAK_LOOP": "break", "CONTINUE_LOOP": "continue", "JUMP_FORWARD": "pass", "RETURN_VALUE": "return"}


class Leftovers:
    """The unreachable code left in one code object.

    Attributes:
        last: byte offset of its last instruction.
    """

    def __init__(self, instructions: list[Instruction]) -> None:
        self._instructions = instructions
        self._index = {each.offset: at for at, each in enumerate(self._instructions)}
        self._unreached = self._find()
        self.last = self._instructions[-1].offset if self._instructions else -1

    def _find(self) -> set[int]:
        """Return the indices of the instructions that nothing leads to."""
        unreached = set(range(len(self._instructions)))
        work = [0] if unreached else []
        while work:
            at = work.pop()
            if at not in unreached:
                continue
            unreached.remove(at)
            each = self._instructions[at]
            if each.target >= 0:
                work.append(each.target)
            if each.opname not in _LEAVES:
                work.append(at + 1)
        return unreached

    def jump_after(self, offset: int, is_jump: bool, end: int) -> int | None:
        """Return the target of the jump that is left after a suite which control never falls out of.

        Args:
            offset: of the last instruction that is known of the suite.
            is_jump: whether a ``break`` or ``continue`` follows it.
            end: the offset before which the suite ends.

        Returns:
            a byte offset; ``None`` where no jump is left.
        """
        found: int | None = None
        for at in range(self._index.get(offset, len(self._instructions)) + 1, self._index.get(end, 0)):
            each = self._instructions[at]
            if at in self._unreached:
                if each.line != self._instructions[at - 1].line:  # (a ``break`` that a test leads past)
                    break
                if each.opname in _JUMPS:
                    found = self._instructions[each.target].offset
            elif each.opname in _ENDS:
                found = None
            elif is_jump and each.opname in _UNWINDING:
                continue
            elif is_jump and each.opname in _EXITS:
                is_jump = False
            elif each.opname in _LEAVES:  # (There is something else between: the jump is of a statement around.)
                return None
            elif found is None:
                return None
        return found

    def ends_by_itself(self, offset: int) -> bool:
        """Return whether the ``return None`` at a byte offset is the compiler's own, at the end of the function.

        It begins no line, where a statement does.
        """
        if offset != self.last or len(self._instructions) < 3:
            return False
        before, value = self._instructions[-3:-1]
        return value.line == before.line

    def words(self) -> dict[int, str]:
        """Return the lines that end in a jump or ``return``, and the one-word statement that this is there.

        ``pass`` is the jump over an ``else``, or the end of a handler; after a ``continue`` in it that is left. It is
        empty where it may be several.
        """
        result: dict[int, str] = {}
        for at, each in enumerate(self._instructions):
            if each.opname in _EXITS and at not in self._unreached and each.line is not None:
                word = _WORDS.get(each.opname, "")
                if each.opname == "JUMP_ABSOLUTE" and at + 1 in self._unreached:
                    word = "continue" if each.target < at else ""
                elif each.opname == "JUMP_ABSOLUTE":
                    word = "pass" if at and self._instructions[at - 1].opname == "POP_EXCEPT" else ""
                result.setdefault(each.line, word)
        return result


def one_line_guards(instructions: list[Instruction]) -> dict[int, str]:
    """Return the lines on which a test is followed by an exit that it jumps over, as in ``if a: return``.

    Args:
        instructions: of code of 3.10 and before: blocks are in the order of the source.

    Returns:
        ``{line: the statement of one word, or ""}``.
    """
    found: dict[int, str] = {}
    for at, each in enumerate(instructions):
        if each.opname not in _TESTS or each.line is None or each.target <= at + 1:
            continue
        following = instructions[at + 1:each.target]
        if following[-1].opname in _EXITS and all(
            one.line == each.line and (one.opname in _UNWINDING or one is following[-1]) for one in following
        ) and _leaves_nothing([one.opname for one in following]):
            found[each.line] = _WORDS.get(following[-1].opname, "")
    return found


def _leaves_nothing(names: list[str]) -> bool:
    """Return whether instructions change the stack only by what they return: they are no operand of ``x if a``."""
    if names[-1] == "RETURN_VALUE":
        return names[-2:-1] == ["LOAD_CONST"]
    return "LOAD_CONST" not in names or "POP_BLOCK" in names
