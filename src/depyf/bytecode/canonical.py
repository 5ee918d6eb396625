"""A version's instructions -> canonical operations (:mod:`depyf.bytecode.operations`).

How it works: every instruction is looked at once, along the control flow, together with what is on the
operand stack at that point. Of the stack only one thing is known: for each slot whether it exists in the
canonical program (1) or is bookkeeping of the version (0): a ``NULL`` below a callable, or the traceback and
type that 3.10 pushes beside an exception. Positions on the stack (``SWAP 3``, ``LIST_APPEND 2``, the depth of
a handler) are counted over the visible slots only, so bookkeeping disappears wherever it is.

The translations of instructions are in ``rules/``: most are one line of data, the rest small functions
``rule(translator, instruction)``. The rules of a version are a dictionary by instruction name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import operations as o
from .code import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, UnsupportedBytecode, decode, jump_targets
from .errors import shown
from .linetable import MalformedTable, parse_exception_table
from .operations import FIXED_EFFECTS, KEEPS, NO_FALL_THROUGH, Handler, Op, Program, effect
from .rules import UNFOLDED_NUMBERS, blocks, rules_for
from .rules.common import Known, nothing
from .unfold import unfold
from .validate import MAX_STACK, check_instructions, check_table, check_wrapper, problem_of_head

if TYPE_CHECKING:
    from .code import Code

#: What a folded loop waits in; its other instructions raise nothing, and are where the compiler likes.
_INTERRUPTIBLE = frozenset({"SEND", "YIELD_VALUE", "YIELD_FROM"})
#: Stack slots that all states which are stored and compared may have together.
_MAX_COMPARED = 1 << 25


def canonicalise(code: Code) -> Program:
    """Return the canonical program of a code object, whose operations are cached on that; do not modify them.

    (Not the program, which refers to the code object: the two would wait for the garbage collector.)
    """
    known: tuple[list[o.Op], list[o.Handler]] | None = code.__dict__.get("_operations")
    if known is None:
        program = _translate(code)
        code.__dict__["_operations"] = program.ops, program.handlers
        return program
    return Program(code, *known)


def _translate(code: Code) -> Program:
    try:
        translator = Translator(code)
    except (IndexError, MalformedTable) as error:
        raise UnsupportedBytecode(f"malformed tables ({error})", code, "start", 0) from error
    try:
        program = translator.run()
        kinds = {op.kind for op in program.ops}
        if o.LOAD_FAST_AND_CLEAR in kinds:
            _load_variables_set_aside(program.ops)
        return _with_stores_in_order(program) if o.SWAP in kinds and code.version >= (3, 11) else program
    except (IndexError, RecursionError) as error:
        raise translator.unsupported("argument or stack out of range") from error


def _load_variables_set_aside(ops: list[Op]) -> None:
    """Make ``LOAD_CLOSURE`` of a variable that was set aside a ``LOAD_FAST``, in place, unless it builds a closure.

    An inlined comprehension (3.12 and later) sets aside the content of its variable's slot, which may be the cell of a
    variable of that name, and puts plain values there. It reads them by the instruction that elsewhere loads a cell to
    build a closure with.
    """
    set_aside = {op.arg for op in ops if op.kind is o.LOAD_FAST_AND_CLEAR}
    for index in range(len(ops) - 1, -1, -1):
        op = ops[index]
        if op.kind is o.LOAD_CLOSURE and op.arg in set_aside and not builds_closure(ops, index):
            ops[index] = Op(o.LOAD_FAST, op.arg, op.offset, op.line, op.target, op.handler)


def _with_stores_in_order(program: Program) -> Program:
    """Put stores of variables that follow exchanges of values in the order of the values, without the exchanges.

    The compiler does so where all stores are on one line (``apply_static_swaps`` in compile.c, flowgraph.c): code would
    depend on how the text is broken into lines.
    """
    ops = program.ops
    set_aside = {op.arg for op in ops if op.kind is o.LOAD_FAST_AND_CLEAR}  # (Their stores end a comprehension.)
    jumps: list[Op | Handler] = [*(op for op in ops if op.target >= 0), *program.handlers]
    targets = {jump.target for jump in jumps}
    result: list[Op] = []
    moved: dict[int, int] = {}
    start = 0
    while start < len(ops):
        moved[start] = len(result)
        end = start + 1
        if ops[start].kind is o.SWAP:
            while end < len(ops) and ops[end].kind in _ORDERED and end not in targets and not (
                    ops[end].kind is o.STORE_FAST and ops[end].arg in set_aside):
                end += 1
        result += _in_order(ops[start:end]) if end > start + 1 else ops[start:end]
        start = end
    for jump in jumps if len(result) < len(ops) else ():
        jump.target = moved[jump.target]
    return Program(program.code, result, program.handlers)


#: Exchanges, and what takes one value without using it.
_ORDERED = frozenset({o.SWAP, o.POP, o.STORE_FAST})


def _in_order(run: list[Op]) -> list[Op]:
    """Return exchanges and the stores after them without the exchanges that another order of the stores spares.

    From the last exchange on, as the compiler does it, up to one of values that are not all taken here, or are stored
    in one variable. (A value that is dropped below one which is dropped, too, is the end of ``a < b < c``.)
    """
    for at in range(len(run) - 1, -1, -1):
        if run[at].kind is o.SWAP:
            one, other = at + 1, at + run[at].arg
            stored = [op.arg if op.kind is o.STORE_FAST else None for op in run[one:other + 1]]
            names = [name for name in (stored[0], stored[-1]) if name is not None] if other < len(run) else []
            if not names or any(stored.count(name) > 1 for name in names):
                break
            run[one], run[other] = run[other], run[one]
            del run[at]
    return run


def builds_closure(ops: Sequence[Op], index: int) -> bool:
    """Return whether the cell loaded there goes into the closure of a function made next."""
    while index < len(ops) and ops[index].kind is o.LOAD_CLOSURE:
        index += 1
    return [op.kind for op in ops[index : index + 3]] == [o.BUILD_TUPLE, o.CONST, o.MAKE_FUNCTION]


class Translator:
    """One translation. Rules read and change ``stack`` and call ``emit``.

    Attributes:
        targets: indexes of instructions that jumps lead to.
        at: index of the current instruction.
        next: index of the instruction that follows in control flow, -1 for none; rules may change it.
        stack: one number per physical slot: 1 visible in the canonical program, 0 not.
        ops: operations of the current run of instructions (rules may look back and take back).
        fence: operations before this index must not be taken back: they are before a merge point.
        handler: index of the canonical handler that covers the current instruction, or -1.
        blocks: the block stack (3.10 and before), innermost last; see ``rules/blocks.py``.
        keywords: names of the keyword arguments of the next call (``KW_NAMES``).
        null_is_above: whether the ``NULL`` beside a callable is above it (from 3.13 on).
    """

    def __init__(self, code: Code) -> None:
        self.code = code
        if problem := problem_of_head(code):
            raise UnsupportedBytecode(problem, code, "code object", 0)
        self.instructions = decode(code)
        self.targets = jump_targets(self.instructions)
        check_instructions(code, self.instructions, self.targets)
        self.names = code.names
        self.consts = code.consts
        if code.version < (3, 9):
            self.instructions, self.consts = unfold(code, self.instructions, UNFOLDED_NUMBERS)
            self.targets = jump_targets(self.instructions)
        cells = code.cellvars + code.freevars
        is_one_array = code.version >= (3, 11)
        self.locals = code.variables if is_one_array else code.varnames
        self.cells = code.variables if is_one_array else cells
        self.cell_names = frozenset(cells)
        self.rules = rules_for(code.version, bool(cells))
        self.pools: tuple[Any, ...] = (None, self.names, self.locals, self.cells, self.consts, range(1 << 31))
        self.stack: list[int] = []
        self.ops: list[Op] = []
        self.fence = 0
        self.at = 0
        self.next = 0
        self.handler = -1
        self.blocks: tuple[Any, ...] = ()
        self.keywords: tuple[str, ...] = ()
        self.null_is_above = code.version >= (3, 13)
        self.handlers: list[Handler] = []
        #: The operations that have targets.
        self._jumps: list[Op] = []
        self._handler_ids: dict[tuple[Any, ...], int] = {}
        self._entry_states: dict[int, tuple[tuple[int, ...], tuple[Any, ...]]] = {}
        #: For each instruction whether it may be a merge point: jumps lead to it, or a state is known.
        self._is_entry = bytearray(len(self.instructions) + 1)
        self._pending: list[int] = []
        self._compared = 0
        #: Instructions at which a handler starts whose PUSH_EXC_INFO the version does implicitly (3.10).
        self.handler_starts: set[int] = set()
        #: Handlers that the version has implicitly (3.10): handler number -> handler of its operations.
        self.cleanups: dict[int, int] = {}
        #: ``(first instruction, instruction it falls into or -1, operations)`` for each run.
        self._runs: list[tuple[int, int, list[Op]]] = []
        self._run_of = [-1] * len(self.instructions)
        #: Where an instruction's operations start in its run; -1 before it was looked at.
        self._position = [-1] * len(self.instructions)
        self._exception_entries: list[tuple[int, int, bool]] = []
        self._entry_numbers: list[int] = self._cover()

    # --- what rules call ---------------------------------------------------------------------------
    def emit(self, kind: str, arg: Any = None, target: int = -1) -> Op:
        """Append an operation; ``target`` is an index of an *instruction* until the end."""
        instruction = self.instructions[self.at]
        op = Op(kind, arg, instruction.offset, instruction.line, target, self.handler)
        self.ops.append(op)
        if target >= 0:
            self._jumps.append(op)
        return op

    def apply(self, kind: str, arg: Any = None, target: int = -1) -> None:
        """Append an operation, and do to the stack and to control what its row says."""
        op = self.emit(kind, arg, target)
        popped, pushed = FIXED_EFFECTS.get(kind) or effect(op)
        kept = KEEPS.get(kind, 0)
        stack = self.stack
        if popped:
            if popped > len(stack) or 0 in stack[-popped:]:
                raise self.unsupported("operand is missing or not a value")
            if popped > kept:
                del stack[kept - popped:]
        if pushed > kept:
            stack += (1,) * (pushed - kept)
        if target >= 0:
            self.enter(target, tuple(stack), self.blocks)
        if kind in NO_FALL_THROUGH:
            self.next = -1

    def unsupported(self, message: str) -> UnsupportedBytecode:
        """Return the error that says what is wrong with the current instruction."""
        instruction = self.instructions[self.at]
        return UnsupportedBytecode(message, self.code, instruction.opname, instruction.offset)

    def pop(self, count: int) -> None:
        """Take ``count`` visible values off the stack."""
        if count:
            self.need(count)
            del self.stack[-count:]

    def need(self, count: int) -> None:
        """Make sure that there are ``count`` visible values on top of the stack."""
        if count > len(self.stack) or 0 in self.stack[len(self.stack) - count :]:
            raise self.unsupported("operand is missing or not a value")

    def visible(self, count: int) -> int:
        """Count those of the ``count`` topmost physical slots that exist in the canonical program."""
        if count > len(self.stack):
            raise self.unsupported("reaches below the stack")
        return sum(self.stack[-count:]) if count else 0

    def enter(self, target: int, stack: tuple[int, ...], blocks: tuple[Any, ...]) -> None:
        """Control can come to the instruction ``target`` in this state."""
        self._compared += len(stack)
        if self._compared > _MAX_COMPARED:
            raise self.unsupported("its stack is too deep for its many jumps")
        state = self._entry_states.get(target)
        if state is None:
            if not 0 <= target < len(self.instructions):
                raise self.unsupported("control leaves the code")
            self._is_entry[target] = 1
            self._entry_states[target] = (stack, blocks)
            self._pending.append(target)
        elif state != (stack, blocks):
            there = self.instructions[target].offset
            if state[0] == stack:
                raise self.unsupported(f"different block stacks meet at offset {there}")
            raise self.unsupported(f"stacks {shown(state[0])} and {shown(stack)} meet at offset {there}")

    def peek(self, ahead: int) -> str:
        """Return the name of the instruction ``ahead`` places further on (``""`` past the end)."""
        index = self.at + ahead
        return self.instructions[index].opname if index < len(self.instructions) else ""

    def recent(self, count: int) -> list[str]:
        """Return the kinds of the last ``count`` operations, as far as control came through all of them."""
        return [op.kind for op in self.ops[max(self.fence, len(self.ops) - count) :]]

    def entry_of(self, index: int) -> tuple[int, int, bool] | None:
        """Return ``(instruction, depth, lasti)`` of the exception table's handler for an instruction (from 3.11)."""
        number = self._entry_numbers[index]
        return self._exception_entries[number] if number >= 0 else None

    def take_const(self, what: str) -> Any:
        """Return the constant on top of the stack, taken off it (and its ``CONST`` taken back if that came last)."""
        if self.recent(1) == ["CONST"]:
            self.pop(1)
            return self.ops.pop().arg
        top = self.stack[-1] if self.stack else 0
        if isinstance(top, Known):
            self.pop(1)
            self.emit("POP")
            return top.value
        raise self.unsupported(f"{what} is not a constant")

    def handler_id(self, target: int, depth: int, lasti: bool, outer: int = -1) -> int:
        """Return the number of the canonical handler at instruction ``target`` (``outer``: see ``cleanups``)."""
        key = (target, depth, lasti, outer)
        if key not in self._handler_ids:
            self._handler_ids[key] = len(self.handlers)
            self.handlers.append(Handler(target, depth, lasti))
        return self._handler_ids[key]

    # --- exception table (3.11 and later) ----------------------------------------------------------
    def _cover(self) -> list[int]:
        """For each instruction the number of the table entry that covers it, -1 for none."""
        covered = [-1] * len(self.instructions)
        if not self.code.exceptiontable:
            check_wrapper(self.code, self.instructions, [])
            return covered
        entries = self._exception_entries
        index_at = {instruction.start: index for index, instruction in enumerate(self.instructions)}
        index_at[len(self.code.bytecode)] = len(self.instructions)
        table = parse_exception_table(self.code.exceptiontable)
        check_table(self.code, table, index_at.__contains__)
        for start, end, target, depth, lasti in table:
            goal = index_at[target]
            pair = self.instructions[goal : goal + 2]
            if self.code.version >= (3, 12) and pair[0].arg == 3 and [each.opname for each in pair] == [
                    "CALL_INTRINSIC_1", "RERAISE"]:
                continue  # (what turns a ``StopIteration`` that leaves a generator into a ``RuntimeError``)
            first, after = index_at[start], index_at[end]
            covered[first:after] = [len(entries)] * (after - first)
            entries.append((goal, depth, lasti))
        if self.code.version >= (3, 13):
            # A conditional jump tests what TO_BOOL or a comparison has made and cannot raise; those at the end of a
            # loop are outside the region around them. A canonical BRANCH represents the TO_BOOL.
            for index, instruction in enumerate(self.instructions):
                if index and instruction.opname.startswith("POP_JUMP_IF"):
                    covered[index] = covered[index - 1]
        check_wrapper(self.code, self.instructions, table)
        return covered

    def fold(self, first: int, after: int, helpers: str = "") -> None:
        """Refuse to make ``[first, after)`` and this instruction one operation if a handler covers only some."""
        own = self.entry_of(self.at)
        for index in range(first, after):
            entry = self.entry_of(index)
            if entry != own and self.instructions[index].opname in _INTERRUPTIBLE and (
                entry is None or self.instructions[entry[0]].opname != helpers
            ):
                raise self.unsupported("a handler covers only a part of what belongs together")

    def _handler_of_entry(self, number: int) -> int:
        target, depth, lasti = self._exception_entries[number]
        stack = self.stack
        if depth > len(stack):
            raise self.unsupported("handler keeps more than there is on the stack")
        kept = tuple(stack[:depth])
        self.enter(target, kept + ((1, 1) if lasti else (1,)), ())
        return self.handler_id(target, sum(kept), lasti)

    # --- the walk ----------------------------------------------------------------------------------
    def run(self) -> Program:
        """Follow control from the entry, run by run, and put the runs together."""
        if not self.instructions:
            return Program(self.code, [], [])
        for target in self.targets:
            self._is_entry[target] = 1
        is_generator = self.code.flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)
        # In 3.10 the value that starts a generator is on the stack; ``GEN_START`` pops it.
        self.enter(0, (0,) if is_generator and self.code.version == (3, 10) else (), ())
        pending, position = self._pending, self._position
        while pending:
            first = pending.pop()
            if position[first] >= 0:
                continue
            self.ops = []
            self.fence = 0
            self.at = first
            kept, self.blocks = self._entry_states[first]
            self.stack = list(kept)
            self.handler = blocks.handler_of(self, self.blocks) if self.blocks else -1
            if first in self.handler_starts:
                self.emit("PUSH_EXC_INFO")
            falls = self._run_from(first)
            position[first] = 0
            if falls >= 0:
                self.enter(falls, tuple(self.stack), self.blocks)
            self._runs.append((first, falls, self.ops))
        return self._assemble()

    def _run_from(self, index: int) -> int:
        """Translate instructions until control leaves; return the known one that it falls into, or -1."""
        instructions, position, is_entry = self.instructions, self._position, self._is_entry
        entry_of, run_of, number = self._entry_numbers, self._run_of, len(self._runs)
        count = len(instructions)
        stack, ops, rules, pools = self.stack, self.ops, self.rules, self.pools
        handled = bool(self._exception_entries)
        current = -2
        while index >= 0:
            if index >= count:
                raise self.unsupported("control falls off the end")
            if position[index] >= 0:
                return index
            if is_entry[index]:
                self.enter(index, tuple(stack), self.blocks)
                self.fence = len(ops)
                stack[:] = map(int, stack)  # the known content of a slot is not known here
            self.at = index
            if handled and entry_of[index] != current:
                current = entry_of[index]
                self.handler = -1 if current < 0 else self._handler_of_entry(current)
            position[index] = len(ops)
            run_of[index] = number
            instruction = instructions[index]
            index += 1
            rule = rules[instruction.opcode]
            if isinstance(rule, tuple):
                kind, pool, pops, pushes, arg = rule
                if pool:
                    arg = pools[pool][instruction.arg]
                if pops < 0:
                    pops = instruction.arg
                if pops:
                    if pops > len(stack) or 0 in stack[-pops:]:
                        raise self.unsupported("operand is missing or not a value")
                    del stack[-pops:]
                stack += pushes
                ops.append(Op(kind, arg, instruction.offset, instruction.line, -1, self.handler))
            elif rule is None:
                raise self.unsupported("no rule for this instruction")
            elif rule is not nothing:
                self.next = index
                rule(self, instruction)
                if len(stack) > MAX_STACK:
                    raise self.unsupported("more values on the stack than any program has")
                index = self.next
        return -1

    def _assemble(self) -> Program:
        """Return the program: the runs in code order, with indexes of operations as targets."""
        runs = self._runs
        order = sorted(range(len(runs)), key=lambda number: runs[number][0])
        ops: list[Op] = []
        base = [0] * len(runs)
        for place, number in enumerate(order):
            _, falls, run = runs[number]
            if falls >= 0 and (place + 1 == len(order) or runs[order[place + 1]][0] != falls):
                last = run[-1] if run else Op("JUMP")
                run.append(Op("JUMP", None, last.offset, last.line, falls, last.handler))
                self._jumps.append(run[-1])
            base[number] = len(ops)
            ops += run
        position, run_of = self._position, self._run_of
        for op in self._jumps:
            op.target = base[run_of[op.target]] + position[op.target]
        for number, handler in enumerate(self.handlers):
            if number not in self.cleanups:
                handler.target = base[run_of[handler.target]] + position[handler.target]
        if self.cleanups:
            blocks.add_cleanups(self, ops)
        return Program(self.code, ops, self.handlers)
