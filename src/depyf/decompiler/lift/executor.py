"""The executor: a table look-up per operation, and how values are taken, statements written and values stored."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode.operations import Op
from ..annotations import TypeAlias, TypeParameter
from ..errors import LIFT, CannotDecompile
from ..nodes import Comprehension, TemporaryName, at_line, from_ops, order_of
from . import control, definitions, displays, operators
from . import stack as s
from .definitions import as_annotation, definition, store_import
from .operators import BINARY_OPS

if TYPE_CHECKING:
    from ..scopes import CodeScope


class SymbolicExecutor:
    """A symbolic executor: runs operations on a stack of expressions, and writes statements.

    ``spill``: a value that would wait across a statement gets a temporary name (else that is an error).
    """

    scope: CodeScope

    def __init__(self, scope: CodeScope, spill: bool = False) -> None:
        self.scope = scope
        self.spill = spill
        self.temporaries = 0
        self.line: int | None = None
        #: Offset of the present operation, and of the first after the last statement of its block.
        self.offset = self.since = -1
        self.serial = 0
        self.caught: s.Target | None = None
        #: values of variables that no source can name (``.type_params``), by name
        self.hidden: dict[str, s.Entry] = {}

    def run(self, state: s.State, ops: list[Op], to_statement: bool = False) -> None:
        """Run operations on ``state``, each by its rule; ``to_statement``: stop after the first statement."""
        rules = _RULES
        for op in ops:
            line = op.line
            if line is not None:
                self.line = line
                self.offset = op.offset
            rule = rules.get(op.kind)
            if rule is None:
                raise CannotDecompile(LIFT, f"{op.kind} is not expected here")
            node = rule(self, state, op.arg)
            if node is not None:
                # The next one in the order of evaluation, made by this operation (``nodes.order_of``, ``offset_of``).
                self.serial += 1
                node.col_offset = self.serial
                node.end_col_offset = self.offset
                state.stack.append(node)
            if to_statement and state.stmts:
                return

    def resolve(self, entry: s.Entry) -> ast.expr:
        """Return the expression of a stack entry when something uses it."""
        if isinstance(entry, ast.expr):
            if isinstance(entry, s.Augmented):
                raise CannotDecompile(LIFT, "an in-place operation that is not stored")
            return entry
        if isinstance(entry, s.Duplicate):
            value = entry.value
            if isinstance(value, (ast.Name, ast.Constant, s.StackParameter)):
                return value
            raise CannotDecompile(LIFT, "a value is used twice")
        if isinstance(entry, s.Assigning):
            value = self.resolve(entry.value)
            return value if isinstance(value, TypeParameter) else s.walrus(entry, value)
        owner = entry.owner if isinstance(entry, s.PendingTarget) else None
        if isinstance(owner, s.Unpack) and owner.missing == len(owner.targets) == 1 and owner.star is None:
            # ``def f(*args: *Ts)`` unpacks one value for the annotation (compiler_visit_argannotation, 3.11)
            return ast.Starred(self.resolve(owner.source), s.LOAD)
        raise CannotDecompile(LIFT, f"a {type(entry).__name__} is used as a value")

    def pop(self, state: s.State) -> ast.expr:
        """Pop an entry as an expression; with :attr:`spill`, a pending target gets a temporary name."""
        entry = state.pop()
        if entry.__class__ in s.AS_THEY_ARE:
            return entry  # type: ignore[return-value]
        if self.spill and isinstance(entry, s.PendingTarget):
            name = self.new_name()
            entry.owner.fill(self, state, entry.index, ast.Name(name, s.STORE))
            return TemporaryName(name, s.LOAD)
        return self.resolve(entry)

    def popn(self, state: s.State, count: int) -> list[ast.expr]:
        """Pop the top ``count`` entries as expressions, the deepest first."""
        if not count:
            return []
        stack = state.stack
        if len(stack) < count:
            state.need(count)
        taken: list[Any] = stack[-count:]
        del stack[-count:]
        return [entry if entry.__class__ in s.AS_THEY_ARE else self.resolve(entry) for entry in taken]

    def new_name(self) -> str:
        """Return the name of the next temporary."""
        self.temporaries += 1
        return f"value_{self.temporaries}"

    def temporary(self, state: s.State, value: ast.expr) -> TemporaryName:
        """Assign a value to a new temporary, and return that name."""
        name = self.new_name()
        state.stmts.append(at_line(ast.Assign([ast.Name(name, s.STORE)], value), self.line))
        return TemporaryName(name, s.LOAD)

    def spill_pending(self, state: s.State) -> None:
        """Move the values that wait on the stack into temporaries, before something else happens."""
        stack = state.stack
        for index, entry in enumerate(stack):
            if isinstance(entry, ast.expr) and not isinstance(
                entry, (ast.Constant, TemporaryName, s.StackParameter, s.Accumulator)
            ):
                stack[index] = self.temporary(state, entry)

    def emit(self, state: s.State, stmt: ast.stmt, before: bool = False) -> None:
        """Append a statement, on the line of the present operation.

        ``before``: of values that wait on the stack, and that it does not change; without it such a value is an error.
        """
        stack = state.stack
        from_ops(stmt, self.since, self.offset)
        self.since = self.offset + 2
        at_line(stmt, self.line)
        if self.spill:
            self.spill_pending(state)
        elif not before:
            if stack and (s.is_value(stack[-1]) or any(map(s.is_value, stack))):
                raise CannotDecompile(LIFT, "a value is pending across a statement")
            if state.queue:
                raise CannotDecompile(LIFT, "an unfinished assignment")
            if self.scope.annotates and type(stmt) is ast.Assign and as_annotation(self, state, stmt):
                return
        state.stmts.append(stmt)

    def store_value(self, state: s.State, target: ast.expr, value: s.Entry) -> None:
        """Store an entry to ``target``: as a statement, or as part of the one that the entry belongs to.

        The owner of a pending target receives it (``for``, ``with ... as``, an unpacking), the copy of a value becomes
        one more target of it (``a = b = value``), and :attr:`hidden` stores what no source can name.
        """
        stack = state.stack
        if isinstance(value, s.PendingTarget):
            value.owner.fill(self, state, value.index, target)
        elif isinstance(value, s.Special):
            self.store_special(state, target, value)
        elif isinstance(target, ast.Name) and target.id[:1] == "." and not target.id.startswith(".annotations"):
            self.hidden[target.id] = value
        elif isinstance(value, s.Caught):  # ``except A as target``
            if self.caught is None or self.caught.target is not None:
                raise CannotDecompile(LIFT, "an exception is stored")
            self.caught.target = target
        elif isinstance(value, s.Subject) and isinstance(target, ast.Name):
            self.emit(state, s.Capture(value, target.id))
        elif isinstance(value, s.Duplicate) and stack and stack[-1] is value:
            assigned = value.value if isinstance(value.value, s.Assigning) else s.Assigning([], value.value)
            assigned.targets.append(target)
            stack[-1] = assigned
        else:
            if isinstance(value, s.Duplicate):
                value = value.value
                if not isinstance(value, (ast.Name, ast.Constant, s.Assigning)):
                    raise CannotDecompile(LIFT, "a value is used twice")
            if not isinstance(value, (ast.expr, s.Assigning)):
                raise CannotDecompile(LIFT, f"a {type(value).__name__} is stored")
            if self.spill or not self.queued(state, target, value):
                self.emit(state, self.assignment(state, target, value))

    def store_special(self, state: s.State, target: ast.expr, value: s.Special) -> None:
        """Store a value of the compiler, which no source names."""
        top = state.stack[-1] if state.stack else None
        if value.kind == "locals" and isinstance(target, ast.Name) and target.id == "__classdict__":
            return  # the mapping in which annotation scopes in a class look names up
        if value.kind == "null":
            if isinstance(top, Comprehension):
                top.restored = (*(top.restored or ()), value.value)
        elif not isinstance(target, ast.Name) or not store_import(self, state, target.id, value):
            raise CannotDecompile(LIFT, f"a value of the compiler is stored ({value.kind})")

    def queued(self, state: s.State, target: ast.expr, value: ast.expr | s.Assigning) -> bool:
        """Queue a value whose store belongs to ``a, b = b, a``; return whether it does. The last store emits it."""
        stack = state.stack
        more = bool(stack) and s.is_value(stack[-1])
        if not state.queued:
            if not more:
                return False
            state.queued = {id(entry) for entry in stack if s.is_value(entry)}
            state.queue.append((target, value))
            return True
        if id(value) not in state.queued:
            raise CannotDecompile(LIFT, "a value is used after an assignment")
        state.queue.append((target, value))
        if not more:
            pairs = sorted(state.queue, key=lambda pair: order_of(unassigned(pair[1])[1]))
            state.queue = []
            state.queued = set()
            targets = ast.Tuple([target for target, _ in pairs], s.STORE)
            values = ast.Tuple([self.resolve(value) for _, value in pairs], s.LOAD)
            self.emit(state, ast.Assign([targets], values))
        return True

    def assignment(self, state: s.State, target: ast.expr, value: s.Value) -> ast.stmt:
        """Return the statement that stores a value: an assignment, or the definition that it is."""
        earlier, value = unassigned(value)
        targets = [*earlier, target]
        if isinstance(value, s.Augmented):
            if len(targets) > 1 or not s.same_target(target, value.left):
                raise CannotDecompile(LIFT, "an in-place operation stored elsewhere")
            return ast.AugAssign(target, BINARY_OPS[value.op](), value.right)
        if len(targets) == 1 and isinstance(target, ast.Name):
            if isinstance(value, TypeAlias):
                if self.scope.plain_name(value.name) != target.id:
                    raise CannotDecompile(LIFT, "a type alias stored under another name")
                return value.statement(target.id)
            if isinstance(value, (s.FunctionExpr, ast.Call, s.ClassExpr)):
                defined = definition(self, target.id, value)
                if defined is not None:
                    return defined
        return ast.Assign(targets, self.resolve(value))


def unassigned(value: s.Value) -> tuple[list[ast.expr], Any]:
    """Return the targets that a value has already, and what it is without them."""
    targets: list[ast.expr] = []
    while isinstance(value, s.Assigning):
        targets = value.targets + targets
        value = value.value
    return targets, value


#: The executor's rule for each kind of operation.
_RULES: dict[str, s.Rule] = {
    **operators.RULES,
    **displays.RULES,
    **definitions.RULES,
    **control.RULES,
}
