"""3.7 and 3.8 -> the instructions of 3.9: ``finally`` bodies are subroutines there.

Up to 3.8 the body of a ``finally`` (and the exit of a ``with``, and what unbinds the name of ``except E as
name``) is there once, and the code that enters it says how to go on: 3.8 pushes a return address (``CALL_FINALLY``)
or a NULL (``BEGIN_FINALLY``) and returns at ``END_FINALLY``; 3.7 pushes ``None`` or, when ``return``,
``break`` or ``continue`` unwinds the block stack at run time, a code that ``END_FINALLY`` reads to go on
unwinding. 3.9 copies the body to each place of entry. :func:`unfold` does that to code of 3.7 and 3.8: it
follows control together with the entries of the block stack (the *context*), and each instruction is
written once for every context it runs in. Where a block stack says statically what the interpreter would
do, the result says so explicitly, with the instructions of 3.9.

What becomes of the rest: ``SETUP_LOOP`` disappears (``break`` pops the iterator and jumps),
``COMPARE_OP exception match`` becomes ``JUMP_IF_NOT_EXC_MATCH``, ``is`` and ``in`` get instructions of their
own, 3.7's ``async for`` becomes that of 3.8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import budgets
from .code import Instruction, UnsupportedBytecode

if TYPE_CHECKING:
    from .code import Code


class Entry(NamedTuple):
    """One thing on the block stack, or a value that the interpreter would unwind with it.

    ``kind`` is one of the constants below, which say what ``at`` is; ``site`` is where a copy was entered.
    """

    kind: str
    at: int = -1
    site: tuple[int, ...] = ()
    why: Any = None


# blocks; ``at`` is the handler
EXCEPT, FINALLY, NAMED, WITH, ANEXT = "except", "finally", "named", "with", "anext"
LOOP = "loop"  # 3.7; ``at``: where break leads
ITERATOR = "iterator"  # 3.7; ``at``: the FOR_ITER (or head of an async for) that it belongs to
HANDLING = "handling"  # a running handler whose exception has been taken off the stack
RAISED = "raised"  # a running handler of a ``finally`` (the exception is on the stack)
PLACEHOLDER = "placeholder"  # 3.8: a None below a ``finally`` that contains break, continue or return
STORING = "storing"  # 3.7: the rest of what ``async for`` protects; 3.8 and later do not protect it
EXHAUSTED = "exhausted"  # 3.7: the handler of an ``async for``; ``at``: its clean-up
# the reason for which a copy of a ``finally`` body was entered
NORMAL = "normal"
CALLED = "called"  # ``at``: where it returns to
LEAVING = "leaving"  # 3.7; ``why`` is a Leave

_BLOCKS = frozenset({EXCEPT, FINALLY, NAMED, WITH})
_ENTERED = frozenset({NORMAL, CALLED, LEAVING})
_RUNNING = frozenset({HANDLING, RAISED})

Context = tuple[Entry, ...]


class Leave(NamedTuple):
    """The reason for which a 3.7 unwinds the block stack: ``return``, ``break`` or ``continue`` (to ``target``).

    ``value``: number of the constant to return, -1 for the value on the stack.
    """

    kind: str
    value: int = -1
    target: int = -1

    @property
    def keeps(self) -> bool:
        """Return whether there is a value on the stack that must survive."""
        return self.kind == "return" and self.value < 0


class Key(NamedTuple):
    """An instruction in a context. ``part`` 1 goes on after a ``with`` has swallowed an exception."""

    at: int
    context: Context
    part: int = 0


class _Item(NamedTuple):
    opname: str
    arg: int
    target: Key | None
    source: Instruction


@dataclass(eq=False, slots=True)
class _Node:
    place: tuple[int, ...]
    items: list[_Item] = field(default_factory=list)
    next: Key | None = None
    position: int = 0


#: Opcode number of an instruction that no rule is for (``YIELD_FROM``: the instruction before it takes it).
UNKNOWN = 255
#: Copies of copies grow fast; so many instructions more are free.
_ALLOWANCE = 5_000
#: The entries of the block stack with the copies that are running: 8 at most in these libraries. CPython allows 20
#: blocks inside each other (``CO_MAXBLOCKS``), of which a loop, an iterator and a copy make three entries.
_MAX_CONTEXT = 60

_COMPARISONS = {6: ("CONTAINS_OP", 0), 7: ("CONTAINS_OP", 1), 8: ("IS_OP", 0), 9: ("IS_OP", 1)}
_EXCEPTION_MATCH = 10
_FINALS = ("SETUP_FINALLY", "SETUP_WITH", "SETUP_ASYNC_WITH")
_TESTS = ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE")


def unfold(
    code: Code, instructions: list[Instruction], numbers: Mapping[str, int]
) -> tuple[list[Instruction], tuple[Any, ...]]:
    """Rewrite the instructions of 3.7 or 3.8 in those of 3.9; return them with the constants that they index."""
    unfolder = _Unfolder(code, instructions)
    return unfolder.run(numbers), unfolder.consts


class _Unfolder:
    def __init__(self, code: Code, instructions: list[Instruction]) -> None:
        self.code = code
        self.old = code.version < (3, 8)
        self.instructions = instructions
        self.consts = code.consts
        none = next((n for n, const in enumerate(code.consts) if const is None), -1)
        if none < 0:
            none, self.consts = len(code.consts), (*code.consts, None)
        self.none = none
        self.nodes: dict[Key, _Node] = {}
        self.pending: list[Key] = []
        self.node = _Node(())
        self.at = 0
        self.targets = {i.target for i in instructions if i.target >= 0}
        self.finals = {i.target for i in instructions if i.opname in _FINALS}
        self.named = {i.target for n, i in enumerate(instructions) if self._is_named(n)}
        self.steps: dict[str, Callable[[Instruction, Context], None]] = {
            name[3:]: getattr(self, name) for name in dir(self) if name.startswith("do_")
        }

    # --- the walk ---------------------------------------------------------------------------------
    def run(self, numbers: Mapping[str, int]) -> list[Instruction]:
        if not self.instructions:
            return []
        entry = self.key(0, ())
        self.visit(entry)
        while self.pending:
            key = self.pending.pop()
            self.node = self.nodes[key]
            self.at = key.at
            instruction = self.instructions[key.at]
            if key.part:
                for opname in ("POP_TOP", "POP_TOP", "POP_TOP", "POP_EXCEPT", "POP_TOP"):
                    self.emit(opname)
                self.go(self.at + 1, (*key.context[:-1], Entry(NORMAL, -1, self.node.place)))
            elif key.context and key.context[-1].kind == EXHAUSTED:
                self.emit("END_ASYNC_FOR")
                self.go(key.context[-1].at, key.context[:-1])
            else:
                step = self.steps.get(instruction.opname, self.copy)
                step(instruction, key.context)
            if len(self.nodes) > _ALLOWANCE:
                too_many = budgets.COPIES.exceeded(100 * (len(self.nodes) - _ALLOWANCE) // len(self.instructions))
                if too_many:
                    raise self.unsupported(f"the copies of finally bodies grow without end: {too_many}")
        return self.assemble(entry, numbers)

    def unsupported(self, message: str) -> UnsupportedBytecode:
        instruction = self.instructions[min(self.at, len(self.instructions) - 1)]
        return UnsupportedBytecode(message, self.code, instruction.opname, instruction.offset)

    def key(self, index: int, context: Context, part: int = 0) -> Key:
        """Return the key of an instruction in a context; a loop's lacks the iterator that its body has below it."""
        if context and context[-1].kind == ITERATOR and context[-1].at == index:
            context = context[:-1]
        return Key(index, context, part)

    def visit(self, key: Key) -> Key:
        if key not in self.nodes:
            if not 0 <= key.at < len(self.instructions):
                raise self.unsupported("control leaves the code")
            if len(key.context) > _MAX_CONTEXT:
                raise self.unsupported("blocks and finally bodies nest too deeply")
            site = next((e.site for e in reversed(key.context) if e.kind in _ENTERED), ())
            self.nodes[key] = _Node((*site, key.at, key.part))
            self.pending.append(key)
        return key

    def emit(self, opname: str, arg: int = 0, target: Key | None = None) -> None:
        if target is not None:
            self.visit(target)
        self.node.items.append(_Item(opname, arg, target, self.instructions[self.at]))

    def go(self, index: int, context: Context) -> None:
        """Control goes on there."""
        self.node.next = self.visit(self.key(index, context))

    def jump(self, index: int, context: Context) -> None:
        self.emit("JUMP_ABSOLUTE", 0, self.key(index, context))

    def assemble(self, entry: Key, numbers: Mapping[str, int]) -> list[Instruction]:
        """Lay the nodes out in the order of the original, copies where they are entered."""
        keys = sorted(self.nodes, key=lambda key: self.nodes[key].place)
        keys.remove(entry)
        keys.insert(0, entry)
        items: list[_Item] = []
        for number, key in enumerate(keys):
            node = self.nodes[key]
            node.position = len(items)
            items += node.items
            if node.next is not None and (number + 1 == len(keys) or keys[number + 1] != node.next):
                source = node.items[-1].source if node.items else self.instructions[key.at]
                items.append(_Item("JUMP_ABSOLUTE", 0, node.next, source))
        result: list[Instruction] = []
        for item in items:
            source = item.source
            opcode = numbers.get(item.opname, UNKNOWN)
            instruction = Instruction(source.offset, opcode, item.opname, item.arg, source.line, source.start)
            if item.target is not None:
                instruction.target = self.nodes[item.target].position
            result.append(instruction)
        return result

    # --- helpers ----------------------------------------------------------------------------------
    def name_at(self, index: int) -> str:
        return self.instructions[index].opname if 0 <= index < len(self.instructions) else ""

    def _is_none(self, index: int) -> bool:
        return self.name_at(index) == "LOAD_CONST" and self.consts[self.instructions[index].arg] is None

    def _is_named(self, index: int) -> bool:
        """Return whether the SETUP_FINALLY at ``index`` protects the body of ``except E as name``."""
        if self.name_at(index) != "SETUP_FINALLY" or self.name_at(index - 1) != "POP_TOP" or index < 3:
            return False
        bound = self.instructions[index - 2]
        at = self.instructions[index].target
        if not (bound.opname.startswith("STORE_") and self.name_at(index - 3) == "POP_TOP" and self._is_none(at)):
            return False
        names = [self.name_at(at + n) for n in (1, 2, 3)]
        return (
            names == [bound.opname, bound.opname.replace("STORE_", "DELETE_"), "END_FINALLY"]
            and self.instructions[at + 1].arg == self.instructions[at + 2].arg == bound.arg
        )

    def top(self, context: Context, *kinds: str) -> Entry:
        if not context or context[-1].kind not in kinds:
            raise self.unsupported(f"expected {' or '.join(kinds)}, found {context[-1].kind if context else 'nothing'}")
        return context[-1]

    # --- instructions -----------------------------------------------------------------------------
    def copy(self, i: Instruction, context: Context) -> None:
        """Keep an instruction that 3.9 has, too."""
        self.emit(i.opname, i.arg, self.key(i.target, context) if i.target >= 0 else None)
        self.go(self.at + 1, context)

    def do_JUMP_ABSOLUTE(self, i: Instruction, context: Context) -> None:
        self.jump(i.target, context)

    do_JUMP_FORWARD = do_JUMP_ABSOLUTE

    def do_RAISE_VARARGS(self, i: Instruction, context: Context) -> None:
        self.emit(i.opname, i.arg)

    def do_FOR_ITER(self, i: Instruction, context: Context) -> None:
        self.emit(i.opname, i.arg, self.key(i.target, context))
        inner = (*context, Entry(ITERATOR, self.at)) if self.old else context
        self.go(self.at + 1, inner)

    def do_MAP_ADD(self, i: Instruction, context: Context) -> None:
        if self.old:  # the value was pushed first
            self.emit("ROT_TWO")
        self.copy(i, context)

    def do_LOAD_GLOBAL(self, i: Instruction, context: Context) -> None:
        if self.code.names[i.arg] == "AssertionError" and self._asserts():
            self.emit("LOAD_ASSERTION_ERROR")
            self.go(self.at + 1, context)
        else:
            self.copy(i, context)

    def _asserts(self) -> bool:
        """Return whether the AssertionError loaded here is what a test leads to and is raised (``assert``)."""
        test = self.name_at(self.at - 1)
        if test not in _TESTS:
            return False
        compared = self.instructions[self.at - 2] if self.at > 1 else None
        if test == "POP_JUMP_IF_FALSE" and compared is not None and compared.opname == "COMPARE_OP" and (
            compared.arg in _COMPARISONS
        ):
            return False  # ``assert not a in b`` is compiled as ``assert a not in b``
        for index in range(self.at + 1, len(self.instructions)):
            name = self.instructions[index].opname
            if name == "RAISE_VARARGS":
                if self.instructions[index].arg != 1:
                    return False
                last = self.instructions[index - 1]
                return index == self.at + 1 or (last.opname == "CALL_FUNCTION" and last.arg == 1)
            if name.startswith(("STORE_", "RETURN_", "SETUP_", "DELETE_")) or name == "POP_TOP":
                return False
        return False

    def do_COMPARE_OP(self, i: Instruction, context: Context) -> None:
        if i.arg == _EXCEPTION_MATCH:
            test = self.instructions[self.at + 1]
            if test.opname != "POP_JUMP_IF_FALSE":
                raise self.unsupported("an exception match that is not tested")
            self.emit("JUMP_IF_NOT_EXC_MATCH", 0, self.key(test.target, context))
            self.go(self.at + 2, context)
            return
        self.emit(*_COMPARISONS.get(i.arg, (i.opname, i.arg)))
        self.go(self.at + 1, context)

    def do_LOAD_CONST(self, i: Instruction, context: Context) -> None:
        following = self.at + 1
        if not self.old:
            if self._is_none(self.at) and self.name_at(following) == "SETUP_FINALLY":
                self.go(following, (*context, Entry(PLACEHOLDER)))
                return
        elif self._is_none(self.at) and following in self.finals and self.name_at(self.at - 1) == "POP_BLOCK":
            self.enter_normally(following, context)
            return
        elif self.name_at(following) == "RETURN_VALUE" and following not in self.targets and context:
            self.leave(context, Leave("return", i.arg))
            return
        self.copy(i, context)

    # --- the block stack --------------------------------------------------------------------------
    def setup(self, opname: str, kind: str, i: Instruction, context: Context) -> None:
        handler = Entry(HANDLING if kind == EXCEPT else RAISED)
        self.emit(opname, 0, self.key(i.target, (*context, handler)))
        self.go(self.at + 1, (*context, Entry(kind, i.target)))

    def do_SETUP_FINALLY(self, i: Instruction, context: Context) -> None:
        self.setup("SETUP_FINALLY", NAMED if i.target in self.named else FINALLY, i, context)

    def do_SETUP_WITH(self, i: Instruction, context: Context) -> None:
        self.setup(i.opname, WITH, i, context)

    do_SETUP_ASYNC_WITH = do_SETUP_WITH

    def do_SETUP_EXCEPT(self, i: Instruction, context: Context) -> None:
        if self.name_at(self.at + 1) == "GET_ANEXT":
            cleanup = self._exhausted(i.target)
            self.emit("SETUP_FINALLY", 0, self.key(i.target, (*context, Entry(EXHAUSTED, cleanup))))
            self.go(self.at + 1, (*context, Entry(ITERATOR, self.at), Entry(ANEXT, i.target)))
        else:
            self.setup("SETUP_FINALLY", EXCEPT, i, context)

    def _exhausted(self, handler: int) -> int:
        """Return where 3.7's ``async for`` goes on when its iterator is exhausted (its clean-up done)."""
        at = self.instructions[handler + 3].target if handler + 3 < len(self.instructions) else -1
        names = [self.name_at(n) for n in range(handler, handler + 5)]
        cleanup = [self.name_at(n) for n in range(at, at + 5)]
        if names != ["DUP_TOP", "LOAD_GLOBAL", "COMPARE_OP", "POP_JUMP_IF_TRUE", "END_FINALLY"] or cleanup != [
            "POP_TOP", "POP_TOP", "POP_TOP", "POP_EXCEPT", "POP_TOP"
        ]:
            raise self.unsupported("an asynchronous loop without its handler")
        return at + 5

    def do_END_ASYNC_FOR(self, i: Instruction, context: Context) -> None:
        self.top(context, RAISED)
        self.emit("END_ASYNC_FOR")
        self.go(self.at + 1, context[:-1])

    def do_YIELD_FROM(self, i: Instruction, context: Context) -> None:
        if context and context[-1].kind == ANEXT:
            self.emit("YIELD_FROM")
            self.emit("POP_BLOCK")
            self.go(self.at + 1, (*context[:-1], Entry(STORING)))
        else:
            self.copy(i, context)

    def do_SETUP_LOOP(self, i: Instruction, context: Context) -> None:
        self.go(self.at + 1, (*context, Entry(LOOP, i.target)))

    def do_POP_BLOCK(self, i: Instruction, context: Context) -> None:
        if self.top(context, LOOP, STORING, *_BLOCKS).kind in _BLOCKS:
            self.emit("POP_BLOCK")
        self.go(self.at + 1, context[:-1])

    def do_POP_EXCEPT(self, i: Instruction, context: Context) -> None:
        self.top(context, *_RUNNING)
        self.emit("POP_EXCEPT")
        self.go(self.at + 1, context[:-1])

    def do_POP_TOP(self, i: Instruction, context: Context) -> None:
        if context and context[-1].kind == PLACEHOLDER:
            self.go(self.at + 1, context[:-1])
        else:
            self.copy(i, context)

    def do_ROT_TWO(self, i: Instruction, context: Context) -> None:
        if context and context[-1].kind == PLACEHOLDER:
            if self.name_at(self.at + 1) != "POP_TOP":
                raise self.unsupported("a placeholder is used")
            self.go(self.at + 2, context[:-1])
        else:
            self.copy(i, context)

    # --- finally ----------------------------------------------------------------------------------
    def enter_normally(self, index: int, context: Context) -> None:
        """Into a ``finally`` body from the end of what it protects."""
        site = self.node.place
        if index in self.named:
            # the name is unbound before the handler ends; later versions do it the other way round
            self.top(context, *_RUNNING)
            if self.name_at(index + 4) != "POP_EXCEPT":
                raise self.unsupported("a handler that does not end")
            self.emit("POP_EXCEPT")
            self.go(index, (*context[:-1], Entry(CALLED, index + 5, site)))
        else:
            self.go(index, (*context, Entry(NORMAL, -1, site)))

    def do_BEGIN_FINALLY(self, i: Instruction, context: Context) -> None:
        self.enter_normally(self.at + 1, context)

    def do_CALL_FINALLY(self, i: Instruction, context: Context) -> None:
        self.go(i.target, (*context, Entry(CALLED, self.at + 1, self.node.place)))

    def do_END_FINALLY(self, i: Instruction, context: Context) -> None:
        entered = self.top(context, *_ENTERED, *_RUNNING)
        context = context[:-1]
        if entered.kind == NORMAL:
            self.go(self.at + 1, context)
        elif entered.kind == CALLED:
            self.go(entered.at, context)
        elif entered.kind == LEAVING:
            self.leave(context, entered.why)
        else:
            self.emit("RERAISE")

    def do_POP_FINALLY(self, i: Instruction, context: Context) -> None:
        if self.top(context, *_ENTERED, *_RUNNING).kind in _RUNNING:
            self.drop_exception(bool(i.arg))
        self.go(self.at + 1, context[:-1])

    def drop_exception(self, keeps: bool) -> None:
        """Out of a ``finally`` that runs for an exception, which is forgotten."""
        if keeps:
            self.emit("ROT_FOUR")
        for _ in range(3):
            self.emit("POP_TOP")
        self.end_handler(keeps)

    def do_WITH_CLEANUP_START(self, i: Instruction, context: Context) -> None:
        entered = self.top(context, *_ENTERED, *_RUNNING)
        if entered.kind in _RUNNING:
            self.emit("WITH_EXCEPT_START")
        else:
            if entered.kind == LEAVING and entered.why.keeps:
                self.emit("ROT_TWO")
            self.emit("LOAD_CONST", self.none)
            self.emit("DUP_TOP")
            self.emit("DUP_TOP")
            self.emit("CALL_FUNCTION", 3)
        self.go(self.at + 1, context)

    def do_WITH_CLEANUP_FINISH(self, i: Instruction, context: Context) -> None:
        if self.top(context, *_ENTERED, *_RUNNING).kind in _RUNNING:
            self.emit("POP_JUMP_IF_TRUE", 0, self.key(self.at, context, 1))
            self.emit("RERAISE")
        else:
            self.emit("POP_TOP")
            self.go(self.at + 1, context)

    # --- 3.7: leaving several blocks at once -------------------------------------------------------
    def do_RETURN_VALUE(self, i: Instruction, context: Context) -> None:
        self.leave(context if self.old else (), Leave("return"))

    def do_BREAK_LOOP(self, i: Instruction, context: Context) -> None:
        self.leave(context, Leave("break"))

    def do_CONTINUE_LOOP(self, i: Instruction, context: Context) -> None:
        self.leave(context, Leave("continue", target=i.target))

    def leave(self, context: Context, why: Leave) -> None:
        """Write what 3.7 does at run time: take blocks off the stack, up to the loop or to the end of the function."""
        keeps = why.keeps
        while context:
            entry, context = context[-1], context[:-1]
            kind = entry.kind
            if kind == LOOP:
                if why.kind == "break":
                    self.jump(entry.at, context)
                    return
                if why.kind == "continue":
                    self.jump(why.target, (*context, entry))
                    return
            elif kind == ITERATOR:
                if why.kind == "continue":
                    self.jump(why.target, (*context, entry))
                    return
                self.drop_value(keeps)
            elif kind == EXCEPT:
                self.emit("POP_BLOCK")
            elif kind in _BLOCKS:
                self.emit("POP_BLOCK")
                if kind == NAMED:
                    self.top(context, *_RUNNING)
                    self.end_handler(keeps)
                    context = context[:-1]
                self.go(entry.at, (*context, Entry(LEAVING, -1, self.node.place, why)))
                return
            elif kind == HANDLING:
                self.end_handler(keeps)
            elif kind == RAISED:
                self.drop_exception(keeps)
            elif kind == LEAVING and entry.why.keeps:
                self.drop_value(keeps)  # what was to be returned
            elif kind not in _ENTERED:
                raise self.unsupported(f"leaves {kind}")
        if why.kind != "return":
            raise self.unsupported("there is no loop to leave")
        if why.value >= 0:
            self.emit("LOAD_CONST", why.value)
        self.emit("RETURN_VALUE")

    def drop_value(self, keeps: bool) -> None:
        if keeps:
            self.emit("ROT_TWO")
        self.emit("POP_TOP")

    def end_handler(self, keeps: bool) -> None:
        if keeps:
            self.emit("ROT_FOUR")
        self.emit("POP_EXCEPT")
