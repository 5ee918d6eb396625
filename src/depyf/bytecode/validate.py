"""Checks that a code object is one that the interpreter could run, before anything is made of it.

CPython trusts what its compiler writes and checks none of this: what is refused here would crash it, or
do something that no operation of :mod:`depyf.bytecode.operations` represents. A ``.pyc`` comes from
anywhere and ``code.replace`` lets everything through, so nothing is taken for granted: reading such code as if
it were sound would show a program that is not the one that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .code import (
    CO_ASYNC_GENERATOR,
    CO_COROUTINE,
    CO_GENERATOR,
    CO_NEWLOCALS,
    CO_VARARGS,
    CO_VARKEYWORDS,
    Instruction,
    UnsupportedBytecode,
)
from .errors import shown
from .linetable import TableEntry

if TYPE_CHECKING:
    from .code import Code

#: No program has more values than this on the stack: each one is stored for every jump target.
MAX_STACK = 1 << 16
_STOP_ITERATION, _ASYNC_GEN_WRAP = 3, 4  # of CALL_INTRINSIC_1
_SUSPENDS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_YIELDS = frozenset({"YIELD_VALUE", "YIELD_FROM", "SEND", "RETURN_GENERATOR"})
#: What CPython does once, before the body; a jump back to it would do it again.
_ONCE = frozenset({"COPY_FREE_VARS", "RETURN_GENERATOR", "GEN_START"})
_PREFIX = frozenset({"COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "POP_TOP", "GEN_START"})
#: What the compiler leaves outside of the outermost handler of a generator, as it raises nothing. (These are
#: instructions: a LOAD_FAST of 3.12 cannot raise, as there is LOAD_FAST_CHECK; the operation that both become can.)
_RAISES_NOTHING = _PREFIX | {
    "NOP", "RESUME", "PUSH_EXC_INFO", "END_SEND", "END_FOR", "LOAD_CONST", "LOAD_FAST", "STORE_FAST", "COPY", "SWAP",
    "RETURN_CONST", "RETURN_VALUE", "LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST",
    "PUSH_NULL", "POP_EXCEPT", "LOAD_FAST_AND_CLEAR", "BUILD_TUPLE", "BUILD_LIST", "NOT_TAKEN", "LOAD_FAST_BORROW",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT",
}
_IN_CELLS = frozenset({
    "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLASSDEREF", "LOAD_CLOSURE", "MAKE_CELL",
    "LOAD_FROM_DICT_OR_DEREF",
})

#: Arguments that mean something, where not all do; others are read in ways that only the C code says.
_ARGUMENTS: dict[str, range] = {
    **dict.fromkeys((
        "COPY", "SWAP", "ROT_N", "LIST_APPEND", "SET_ADD", "MAP_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE",
        "DICT_MERGE"), range(1, 1 << 31)),
    "RAISE_VARARGS": range(3), "BUILD_SLICE": range(2, 4), "IS_OP": range(2), "CONTAINS_OP": range(2),
    "UNPACK_SEQUENCE": range(MAX_STACK + 1), "UNPACK_EX": range(MAX_STACK + 1 << 8), "FORMAT_VALUE": range(8),
    "CONVERT_VALUE": range(1, 4), "CALL_FUNCTION_EX": range(2), "RERAISE": range(3),
}


def problem_of_head(code: Code) -> str:
    """Return what is wrong with what a code object says of itself; an empty text if nothing is."""
    if min(code.argcount, code.posonlyargcount, code.kwonlyargcount, code.stacksize, code.flags) < 0:
        return "a count is negative"
    if code.posonlyargcount > code.argcount:
        return "more positional-only parameters than parameters"
    parameters = code.argcount + code.kwonlyargcount
    parameters += bool(code.flags & CO_VARARGS) + bool(code.flags & CO_VARKEYWORDS)
    if parameters > len(code.varnames):
        return f"{parameters} parameters, but {len(code.varnames)} local variables"
    for what, names in (("local", code.varnames), ("cell", code.cellvars), ("free", code.freevars)):
        if len(names) > 1 and len(set(names)) != len(names):
            twice = next(name for place, name in enumerate(names) if name in names[:place])
            return f"two {what} variables are called {shown(twice)}"
    if len(code.bytecode) % 2:
        return "the bytecode ends in the middle of an instruction"
    return ""


def check_instructions(code: Code, instructions: Sequence[Instruction], targets: set[int]) -> None:
    """Check arguments, and the instructions that are valid in certain places only."""
    _Checker(code, instructions, targets).run()


class _Checker:
    """Looks at the instructions of a code object, each by the checks for its name.

    Attributes:
        suspends: the flags that make it a generator or coroutine.
        body: index of the first instruction that is not what CPython does once, before the body.
        started: a generator or coroutine has been made.
    """

    def __init__(self, code: Code, instructions: Sequence[Instruction], targets: set[int]) -> None:
        self.code = code
        self.instructions = instructions
        self.suspends = code.flags & _SUSPENDS
        self.body = 0
        while self.body < len(instructions) and instructions[self.body].opname in _PREFIX:
            self.body += 1
        self.targets = targets
        self.cells = frozenset(code.cellvars + code.freevars)
        self.started = False

    def run(self) -> None:
        for index, i in [(index, i) for index, i in enumerate(self.instructions) if i.opname in _CHECKS]:
            for check in _CHECKS[i.opname]:
                check(self, index, i)
        if self.body and min(self.targets, default=self.body) < self.body:
            for i in self.instructions:  # (by such a jump what CPython does once would be done again)
                skipped = self.instructions[i.target : self.body] if 0 <= i.target < self.body else ()
                self.refuse(i, any(other.opname in _ONCE or other.opname == "MAKE_CELL" for other in skipped),
                            "jumps back to before the body")
        if self.code.version < (3, 11) or not self.instructions:
            return
        first = self.instructions[0]
        self.refuse(first, bool(self.suspends) and not self.started,
                    "the flags say generator or coroutine, but none is made")
        self.refuse(first, bool(self.code.freevars) and first.opname != "COPY_FREE_VARS",
                    "free variables are not copied into the frame")

    def refuse(self, i: Instruction, is_wrong: bool, message: str) -> None:
        if is_wrong:
            raise UnsupportedBytecode(message, self.code, i.opname, i.offset)

    # --- the checks ---------------------------------------------------------------------------------
    def argument(self, index: int, i: Instruction) -> None:
        is_argument = i.opname != "RERAISE" or self.code.version >= (3, 10)
        self.refuse(i, is_argument and i.arg not in _ARGUMENTS[i.opname], f"argument {i.arg} means nothing")

    def start(self, index: int, i: Instruction) -> None:
        self.started = True
        following = [after.opname for after in self.instructions[index + 1 : index + 2]]
        self.refuse(i, following != ["POP_TOP"], "is not followed by POP_TOP")

    def yields(self, index: int, i: Instruction) -> None:
        """Refuse what a coroutine yields itself, and an asynchronous generator unwrapped: no source says it."""
        wraps = self.suspends & CO_ASYNC_GENERATOR
        if self.suspends & CO_GENERATOR or wraps and self.code.version < (3, 11):
            return
        before = self.instructions[index - 1] if index and index not in self.targets else i
        self.refuse(i, before.opname != "SEND" and not (wraps and (
            before.opname == "ASYNC_GEN_WRAP" or before.opname == "CALL_INTRINSIC_1" and before.arg == _ASYNC_GEN_WRAP
        )), "yields past the coroutine or asynchronous generator")

    def free_variables(self, index: int, i: Instruction) -> None:
        """Check that the closure is copied at the beginning, and all of it.

        (Dynamo's resume functions begin twice. The rule of ``COPY_FREE_VARS`` looks at the second beginning, if it
        runs: one that does not may have another number, as cells became free variables.)
        """
        self.refuse(i, index < self.body and (i.arg != len(self.code.freevars) or index > 0),
                    f"argument {i.arg} where there are {len(self.code.freevars)} free variables")

    def cell(self, index: int, i: Instruction) -> None:
        names = self.code.variables
        self.refuse(i, self.code.version >= (3, 11) and (i.arg >= len(names) or names[i.arg] not in self.cells),
                    f"argument {i.arg} is not the number of a cell")

    def before_call(self, index: int, i: Instruction) -> None:
        following = self.instructions[index + 1] if index + 1 < len(self.instructions) else i
        calls = ("CALL",) if i.opname == "PRECALL" else ("PRECALL", "CALL")
        self.refuse(i, following is i or following.opname not in calls or index + 1 in self.targets
                    or i.opname == "PRECALL" and following.arg != i.arg, "is not followed by its call")


#: The checks of each instruction of which something is asked, in order.
_CHECKS: dict[str, list[Callable[[_Checker, int, Instruction], None]]] = {}
for _names, _check in (
    (_ARGUMENTS, _Checker.argument),
    (_YIELDS, lambda checker, index, i: checker.refuse(
        i, not checker.suspends, "in a function that is no generator and no coroutine")),
    (("RETURN_GENERATOR",), _Checker.start),
    (("YIELD_VALUE",), _Checker.yields),
    (_ONCE - {"COPY_FREE_VARS"}, lambda checker, index, i: checker.refuse(
        i, index >= checker.body, "in the middle of the code")),
    (("COPY_FREE_VARS",), _Checker.free_variables),
    (_IN_CELLS, _Checker.cell),
    (("KW_NAMES", "PRECALL"), _Checker.before_call),
):
    for _name in _names:
        _CHECKS.setdefault(_name, []).append(_check)


def check_table(code: Code, entries: Sequence[TableEntry], border: Callable[[int], bool]) -> None:
    """Check that the exception table is in order, without overlaps, and goes from instruction to instruction.

    CPython searches it by bisection and takes the first entry that fits, so in any other table what
    counts depends on how it searches.
    """
    size = len(code.bytecode)
    before = 0
    for entry in entries:
        is_inside = 0 <= entry.start < entry.end <= size and 0 <= entry.target < size
        problem = (
            "overlaps the one before it" if entry.start < before else
            "covers what is outside of the code, or has its handler there" if not is_inside else
            "starts, ends or has its handler in the middle of an instruction"
            if not all(map(border, (entry.start, entry.end, entry.target))) else
            "keeps more values than a stack holds" if entry.depth > MAX_STACK else "")
        if problem:
            where = f"exception table entry for offsets {entry.start} to {entry.end}"
            raise UnsupportedBytecode(f"{where} {problem}", code, "code object", min(max(entry.start, 0), size))
        before = entry.end


def check_wrapper(code: Code, instructions: Sequence[Instruction], entries: Sequence[TableEntry]) -> None:
    """Check that everything in a generator or coroutine is under some handler (3.12 and later).

    The outermost turns ``StopIteration`` into ``RuntimeError``; recompiled text has it, so the code must. (The compiler
    wraps no lambda, and no module with ``await`` outside of functions.)
    """
    if code.version < (3, 12) or not code.flags & _SUSPENDS or code.name == "<lambda>" or not code.flags & CO_NEWLOCALS:
        return
    covered = bytearray(len(code.bytecode) + 2)
    for entry in entries:
        covered[entry.start : entry.end] = b"\1" * (entry.end - entry.start)
    for index, i in enumerate(instructions):
        if covered[i.start] or i.opname in _RAISES_NOTHING or "JUMP" in i.opname:
            continue
        wrapper = i.opname == "CALL_INTRINSIC_1" and i.arg == _STOP_ITERATION
        if wrapper or i.opname == "RERAISE" and index and instructions[index - 1].arg == _STOP_ITERATION:
            continue
        raise UnsupportedBytecode("a StopIteration would leave the generator here", code, i.opname, i.offset)
