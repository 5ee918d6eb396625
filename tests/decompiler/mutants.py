"""Small changes to real programs, and other layouts of them.

``canonical_mutants`` changes a canonical program, ``source_mutants`` a syntax tree; each yields the kind of the
change and the changed program, and every one of them is another program. Why that is so is argued here and never
asked of the prover:

* only operations that control reaches are changed. Ways into a handler count only from operations that can raise
  (``RAISES``), because nothing else ever enters it;
* an operation or argument is replaced by one that means something else: another name, a value that ``repr`` or
  ``type`` tells apart, another operator;
* a branch is changed only where its two ways start with different operations, so that the changed program does
  something else as soon as it is taken; ways that start with ``not`` are left alone (the sense of a branch may be
  written in two ways);
* a handler is changed only on operations that can raise, and only if it is the handler of a ``try`` or ``with``
  (those that only clean up do nothing that anyone sees); it is replaced by none, or by one whose straight start
  differs; in a syntax tree a statement leaves its ``try`` only if it calls something;
* operands are swapped only in front of operations for which order counts, statements only if both call something;
* in syntax trees: nothing behind a ``return``, under a constant test or in an annotation of a local is touched,
  because none of it is compiled; neither is a string that stands alone, or an operation on two constants.

``layouts`` are the opposite: programs that differ from the original in nothing but where things stand.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import glob
import os
import random
import warnings
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from depyf.bytecode import operations as o
from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import Code
from depyf.bytecode.operations import NO_FALL_THROUGH, Handler, Op, Program, effect

OPERATORS = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "%", "%": "//", "&": "|", "|": "^", "^": "&",
             "<<": ">>", ">>": "<<", "**": "*", "@": "*",
             "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "~": "-", "not": "~"}
NAMED = frozenset({
    o.LOAD_FAST, o.STORE_FAST, o.DELETE_FAST, o.LOAD_GLOBAL, o.STORE_GLOBAL, o.LOAD_NAME, o.STORE_NAME, o.LOAD_DEREF,
    o.STORE_DEREF, o.LOAD_CLOSURE, o.IMPORT_NAME, o.IMPORT_FROM})
ATTRIBUTES = frozenset({o.LOAD_ATTR, o.STORE_ATTR, o.DELETE_ATTR})
#: Operations that can raise: they run code of others, or look for something that may be missing.
RAISES = frozenset({
    o.CALL, o.CALL_EX, o.LOAD_GLOBAL, o.LOAD_NAME, o.LOAD_ATTR, o.STORE_ATTR, o.GETITEM, o.SETITEM, o.DELITEM, o.BINARY,
    o.INPLACE, o.COMPARE, o.IN, o.GET_ITER, o.FOR_ITER, o.UNPACK, o.YIELD, o.YIELD_FROM, o.AWAIT, o.RAISE, o.RERAISE,
    o.IMPORT_NAME, o.IMPORT_FROM, o.BEFORE_WITH, o.CHECK_EXC_MATCH, o.FORMAT})
#: Operations without which, or twice, a program does something else.
ACTS = frozenset({o.CALL, o.LOAD_ATTR, o.BINARY, o.GETITEM, o.STORE_FAST, o.STORE_ATTR, o.SETITEM, o.YIELD, o.UNPACK})
LOADS = frozenset({o.CONST, o.LOAD_FAST, o.LOAD_GLOBAL, o.LOAD_DEREF, o.LOAD_NAME})
#: Operations that take the two values on top in an order that counts.
ORDERED = frozenset({o.CALL, o.BUILD_TUPLE, o.BUILD_LIST, o.GETITEM, o.IN, o.STORE_ATTR, o.SETITEM})
COUNTED = frozenset({o.BUILD_TUPLE, o.BUILD_LIST, o.BUILD_MAP, o.UNPACK, o.BUILD_STRING, o.COPY, o.SWAP, o.ROT})
FLAGS = {"VARARGS": 0x4, "VARKEYWORDS": 0x8, "GENERATOR": 0x20, "COROUTINE": 0x80, "ITERABLE_COROUTINE": 0x100,
         "ASYNC_GENERATOR": 0x200, "NEWLOCALS": 0x2, "OPTIMIZED": 0x1}

Mutant = tuple[str, Program]


# --- real programs ----------------------------------------------------------------------------------
def sources(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """``(path, text)`` of modules of the running interpreter's standard library."""
    base = os.path.dirname(os.__file__)
    files = sorted(glob.glob(f"{base}/*.py") + glob.glob(f"{base}/*/*.py"))
    files = [f for f in files if not any(p in f for p in ("site-packages", "/test", "/idlelib", "/lib2to3", "/__phello"))]
    random.Random(seed).shuffle(files)
    for file in files[:count]:
        with open(file, encoding="utf8") as stream:
            yield file, stream.read()


def functions(seed: int, count: int) -> Iterator[Code]:
    """All functions of such modules (not what is nested in functions: that comes with them)."""
    def below(code: CodeType) -> Iterator[CodeType]:
        for const in code.co_consts:
            if isinstance(const, CodeType):
                if const.co_flags & 0x1:
                    yield const
                else:
                    yield from below(const)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for file, text in sources(seed, count):
            for code in below(compile(text, file, "exec", dont_inherit=True)):
                yield Code.of(code)


# --- canonical programs -----------------------------------------------------------------------------
def changed(op: Op, **parts: Any) -> Op:
    made = copy.copy(op)
    for name, value in parts.items():
        setattr(made, name, value)
    return made


def replaced(program: Program, index: int, *replacement: Op, until: int | None = None) -> Program:
    """The program with other operations at ``index`` (to ``until``); jumps to the first still go there."""
    until = index + 1 if until is None else until
    ops = [copy.copy(op) for op in program.ops]
    ops[index:until] = [copy.copy(op) for op in replacement]
    handlers = [copy.copy(h) for h in program.handlers]
    shift = len(replacement) - (until - index)
    for item in (*ops, *handlers):
        if item.target > index:
            item.target += shift
    return Program(program.code, ops, handlers)


def with_code(program: Program, **parts: Any) -> Program:
    return Program(dataclasses.replace(program.code, **parts), program.ops, program.handlers)


def settled(ops: list[Op], index: int) -> Op:
    for _ in ops:
        if ops[index].kind is not o.JUMP:
            break
        index = ops[index].target
    return ops[index]


def shown(op: Op) -> tuple[str, str]:
    return op.kind, repr(op.arg)


def reached(program: Program) -> set[int]:
    seen: set[int] = set()
    pending = [0]
    while pending:
        index = pending.pop()
        if index in seen:
            continue
        seen.add(index)
        op = program.ops[index]
        if op.target >= 0:
            pending.append(op.target)
        if op.kind not in NO_FALL_THROUGH:
            pending.append(index + 1)
        if op.handler >= 0 and op.kind in RAISES:
            pending.append(program.handlers[op.handler].target)
    return seen


def straight(ops: list[Op], index: int) -> list[tuple[str, str]]:
    """What is done from here up to the first branch."""
    done = []
    for _ in range(len(ops)):
        op = settled(ops, index)
        done.append(shown(op))
        if op.target >= 0 or op.kind in NO_FALL_THROUGH:
            break
        index = next(i for i in range(len(ops)) if ops[i] is op) + 1
    return done


def differ_at_once(ops: list[Op], one: int, other: int) -> bool:
    first, second = settled(ops, one), settled(ops, other)
    return shown(first) != shown(second) and o.UNARY not in (first.kind, second.kind) \
        and o.JUMP not in (first.kind, second.kind)


def another_value(value: Any) -> Any:
    if isinstance(value, (bool, type(None))) or value is ...:
        return "another"
    if isinstance(value, (int, float, complex)):
        return value + 1
    if isinstance(value, (str, bytes)):
        return value + value[:1] if value else type(value)(b"x") if isinstance(value, bytes) else "x"
    if isinstance(value, tuple):
        return (*value, None)
    return ("another",)


def twins(value: Any) -> list[Any]:
    """Values that are equal, or look alike, and are not the same."""
    if isinstance(value, bool):
        return [int(value), float(value)]
    if isinstance(value, int):
        found: list[Any] = [float(value)] if abs(value) < 1 << 53 else [value + 1]
        return [*found, bool(value)] if value in (0, 1) else [*found, complex(value) if abs(value) < 1 << 53 else -value]
    if isinstance(value, float):
        return [-value, *([int(value)] if value.is_integer() else [])]
    if isinstance(value, str):
        return [value.encode("utf8", "surrogatepass"), value + "\ud800"]
    if isinstance(value, bytes):
        return [value.decode("latin-1")]
    if value is None:
        return [False, ()]
    if isinstance(value, tuple):
        return [frozenset([value]), *((*value[:i], twin, *value[i + 1 :]) for i, item in enumerate(value[:2])
                                      for twin in twins(item)[:1])]
    if isinstance(value, frozenset) and value:
        first = sorted(value, key=repr)[0]
        return [(value - {first}) | {(first, "another")}]
    return []


def canonical_mutants(program: Program, rng: random.Random) -> Iterator[tuple[str, Callable[[], Program]]]:
    """``(kind, how to make it)``: one change each."""
    ops, handlers, code = program.ops, program.handlers, program.code
    alive = reached(program)
    targets = {op.target for op in ops} | {h.target for h in handlers}

    def at(index: int, **parts: Any) -> Callable[[], Program]:
        return lambda: replaced(program, index, changed(ops[index], **parts))

    for index in sorted(alive):
        op = ops[index]
        kind, arg = op.kind, op.arg
        if kind in (o.BINARY, o.INPLACE, o.COMPARE) or kind is o.UNARY and arg != "not":
            yield "operator", at(index, arg=OPERATORS.get(arg, "-"))
        elif kind in (o.IS, o.IN):
            yield "operator", at(index, arg=not arg)
        elif kind is o.CONST and not isinstance(arg, Code):
            yield "constant", at(index, arg=another_value(arg))
            for twin in twins(arg):
                yield "twin", at(index, arg=twin)
        elif kind in NAMED:
            yield "name", at(index, arg=f"{arg}_")
        elif kind in ATTRIBUTES:
            yield "attribute", at(index, arg=f"{arg}_")
        elif kind in COUNTED:
            yield "count", at(index, arg=arg + 1)
        elif kind is o.BUILD_CONST_KEY_MAP:
            for twin in twins(arg)[1:]:
                yield "twin", at(index, arg=twin)
        elif kind is o.CALL:
            positional, keywords = arg
            if keywords:
                yield "keyword", at(index, arg=(positional, (f"{keywords[0]}_", *keywords[1:])))
                yield "keyword", at(index, arg=(positional + 1, keywords[1:]))
            elif positional:
                yield "keyword", at(index, arg=(positional - 1, ("k",)))
        elif kind is o.CALL_EX:
            yield "keyword", at(index, arg=not arg)
        elif kind is o.MAKE_FUNCTION:
            for bit, what in ((1, "defaults"), (2, "defaults"), (8, "closure")):
                yield what, at(index, arg=arg ^ bit)
        if kind is o.CONST and isinstance(arg, Code):
            for what, made in nested_mutants(arg, rng):
                yield what, (lambda index=index, made=made: replaced(program, index, changed(ops[index], arg=made())))
        if kind is o.BRANCH and differ_at_once(ops, op.target, index + 1):
            yield "sense", at(index, arg=not arg)
            yield "target", at(index, target=index + 1)
        if kind is o.FOR_ITER and differ_at_once(ops, op.target, index + 1):
            yield "target", at(index, target=index + 1)
        if kind is o.JUMP:
            other = rng.choice(sorted(alive))
            if differ_at_once(ops, op.target, other):
                yield "target", at(index, target=other)
        if op.handler >= 0 and kind in RAISES:
            handler = handlers[op.handler]
            if ops[handler.target].kind is o.PUSH_EXC_INFO:
                yield "handler shortened", at(index, handler=-1)
                for what, made in (("depth", Handler(handler.target, handler.depth + 1, handler.lasti)),
                                   ("lasti", Handler(handler.target, handler.depth, not handler.lasti)),
                                   ("entry", Handler(handler.target + 1, handler.depth, handler.lasti))):
                    yield f"handler {what}", (lambda made=made, number=op.handler: Program(
                        code, ops, [made if n == number else h for n, h in enumerate(handlers)]))
                yield "handler removed", (lambda number=op.handler: Program(
                    code, [changed(x, handler=-1) if x.handler == number else x for x in ops], handlers))
                start = straight(ops, handler.target)
                for number, other_handler in enumerate(handlers):
                    if straight(ops, other_handler.target)[: len(start)] != start[: len(straight(ops, other_handler.target))]:
                        yield "handler retargeted", at(index, handler=number)
        if op.handler < 0 and kind in RAISES and handlers:
            number = rng.randrange(len(handlers))
            if ops[handlers[number].target].kind is o.PUSH_EXC_INFO:
                yield "handler lengthened", at(index, handler=number)
        if kind in ACTS and index + 1 < len(ops) and shown(ops[index + 1]) != shown(op):
            yield "dropped", (lambda index=index: replaced(program, index))
            yield "duplicated", (lambda index=index: replaced(program, index, ops[index], ops[index]))
        following = ops[index + 1 : index + 3]
        if len(following) == 2 and not targets & {index + 1, index + 2}:
            two = (op, following[0])
            takes = following[1].kind in ORDERED and (following[1].kind is not o.CALL or following[1].arg[0] > 0) \
                and (following[1].kind not in (o.BUILD_TUPLE, o.BUILD_LIST) or following[1].arg > 1)
            if shown(op) != shown(following[0]) and op.kind in LOADS and following[0].kind in LOADS and takes:
                yield "arguments", (lambda index=index, two=two: replaced(program, index, *two[::-1], until=index + 2))
            if kind is o.STORE_FAST is following[0].kind and arg != following[0].arg:
                yield "order", (lambda index=index, two=two: replaced(program, index, *two[::-1], until=index + 2))
    for start, middle, end in statements(ops, alive, targets):
        yield "order", (lambda s=start, m=middle, e=end: replaced(program, s, *ops[m:e], *ops[s:m], until=e))
        yield "dropped", (lambda s=start, m=middle: replaced(program, s, until=m))
        yield "duplicated", (lambda s=start, m=middle: replaced(program, s, *ops[s:m], *ops[s:m], until=m))
    for bit in FLAGS.values():
        yield "flags", (lambda bit=bit: with_code(program, flags=code.flags ^ bit))
    if code.argcount:
        yield "parameters", (lambda: with_code(program, argcount=code.argcount - 1))
        yield "parameters", (lambda: with_code(program, varnames=(f"{code.varnames[0]}_", *code.varnames[1:])))
        yield "parameters", (lambda: with_code(program, posonlyargcount=int(not code.posonlyargcount)))
        yield "parameters", (lambda: with_code(program, argcount=code.argcount - 1, kwonlyargcount=code.kwonlyargcount + 1))
    yield "cells", (lambda: with_code(program, cellvars=(*code.cellvars, "another")))
    yield "cells", (lambda: with_code(program, freevars=(*code.freevars, "another")))
    if code.flags & 0x3 == 0x3 and not code.name.startswith("<"):
        yield "docstring", (lambda: with_code(program, consts=(another_value(code.consts[0]), *code.consts[1:])
                                              if isinstance(code.consts[0], str) else ("a docstring", *code.consts)))
    yield "code name", (lambda: with_code(program, name=f"{code.name}_"))


def nested_mutants(code: Code, rng: random.Random) -> Iterator[tuple[str, Callable[[], Code]]]:
    """Changes of a code object that another one holds."""
    program = canonicalise(code)

    def parts(**given: Any) -> Callable[[], Code]:
        def made() -> Code:
            fresh = dataclasses.replace(code, **given)
            fresh.__dict__["_operations"] = program.ops, program.handlers
            return fresh

        return made

    yield "nested code", parts(name=f"{code.name}_")
    yield "nested code", parts(flags=code.flags ^ 0x20)
    if len(code.freevars) > 1:
        yield "order of a closure", parts(freevars=code.freevars[::-1])
    if code.version >= (3, 11):
        yield "qualified name", parts(qualname=f"{code.qualname}_")
    inside = [(kind, made) for kind, made in canonical_mutants(program, rng)
              if kind in ("operator", "constant", "twin", "name", "attribute", "sense", "handler removed")]
    for _, made in rng.sample(inside, min(len(inside), 4)):
        def nested(made: Callable[[], Program] = made) -> Code:
            fresh = dataclasses.replace(code, bytecode=b"")  # the bytes would say that nothing was changed
            other = made()
            fresh.__dict__["_operations"] = other.ops, other.handlers
            return fresh

        yield "nested code", nested


def statements(ops: list[Op], alive: set[int], targets: set[int]) -> Iterator[tuple[int, int, int]]:
    """``(start, middle, end)`` of two adjacent statements that both call something and differ."""
    runs: list[tuple[int, int]] = []
    start, depth = 0, 0
    for index, op in enumerate(ops):
        if index in targets and index != start or index not in alive:
            start, depth = index, 0
        pops, pushes = (1, 0) if op.target >= 0 or op.kind in NO_FALL_THROUGH else effect(op)
        if op.target >= 0 or op.kind in NO_FALL_THROUGH or pops > depth:
            start, depth = index + 1, 0
            continue
        depth += pushes - pops
        if depth == 0 and op.kind in (o.POP, o.STORE_FAST, o.STORE_ATTR, o.SETITEM):
            if any(x.kind is o.CALL for x in ops[start : index + 1]):
                runs.append((start, index + 1))
            start = index + 1
    for (start, middle), (second, end) in zip(runs, runs[1:]):
        if middle == second and second not in targets \
                and list(map(shown, ops[start:middle])) != list(map(shown, ops[second:end])) \
                and {x.handler for x in ops[start:end]} == {ops[start].handler}:
            yield start, middle, end


# --- other layouts ----------------------------------------------------------------------------------
def layouts(program: Program, rng: random.Random) -> Iterator[tuple[str, Program]]:
    """The same program, laid out in other ways."""
    if not program.ops:
        return
    yield "blocks moved", moved(program, rng)
    yield "branches turned", turned(program)
    yield "blocks doubled", doubled(program, rng)
    yield "handlers listed twice", Program(program.code, program.ops, [copy.copy(h) for h in program.handlers] * 2)
    never = frozenset({o.CONST, o.POP, o.COPY, o.SWAP, o.STORE_FAST, o.JUMP, o.RETURN})
    yield "handlers of what cannot raise", Program(
        program.code, [changed(op, handler=-1) if op.kind in never else op for op in program.ops], program.handlers)


def moved(program: Program, rng: random.Random) -> Program:
    """Cut into pieces that are shuffled, with jumps (and jumps to jumps) between them."""
    ops = program.ops
    cuts = sorted({0, *rng.sample(range(len(ops)), min(len(ops), 1 + len(ops) // 4))})
    pieces = list(zip(cuts, [*cuts[1:], len(ops)]))
    rest = pieces[1:]
    rng.shuffle(rest)
    made: list[Op] = []
    place: dict[int, int] = {}
    for start, end in [pieces[0], *rest]:
        for index in range(start, end):
            place[index] = len(made)
            made.append(copy.copy(ops[index]))
        if ops[end - 1].kind not in NO_FALL_THROUGH and end < len(ops):
            made.append(Op(o.JUMP, None, -1, None, end, -1))
    handlers = [Handler(place[h.target], h.depth, h.lasti) for h in program.handlers]
    for op in made:
        if op.target >= 0:
            op.target = place[op.target]
    return Program(program.code, made, handlers)


def turned(program: Program) -> Program:
    """Every branch with the opposite sense, around a jump."""
    made = program
    for index in range(len(program.ops) - 1, -1, -1):
        op = made.ops[index]
        if op.kind is o.BRANCH:
            around = changed(op, arg=not op.arg, target=index + 1)
            made = replaced(made, index, around, Op(o.JUMP, None, op.offset, op.line, op.target, op.handler))
            made.ops[index].target = index + 2
            target = op.target
            made.ops[index + 1].target = target + (target > index)
    return made


def doubled(program: Program, rng: random.Random) -> Program:
    """Copies of straight pieces of code at the end, for one of the jumps that lead to them."""
    ops = [copy.copy(op) for op in program.ops]
    for op in [op for op in ops if op.kind in (o.JUMP, o.BRANCH)]:
        if rng.random() < 0.5:
            continue
        index = op.target
        op.target = len(ops)
        for _ in range(5):
            ops.append(copy.copy(ops[index]))
            if ops[index].kind in NO_FALL_THROUGH:
                break
            index += 1
        else:
            ops.append(Op(o.JUMP, None, -1, None, index, -1))
    return Program(program.code, ops, [copy.copy(h) for h in program.handlers])


# --- syntax trees -----------------------------------------------------------------------------------
class _Sites(ast.NodeVisitor):
    """Places of a function that are compiled, with what can be done to each."""

    def __init__(self) -> None:
        self.found: list[tuple[str, Callable[[], None]]] = []

    def add(self, kind: str, change: Callable[[], None]) -> None:
        self.found.append((kind, change))

    def block(self, body: list[ast.stmt]) -> None:
        for index, stmt in enumerate(body):
            if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant):
                continue  # a docstring or nothing
            self.visit(stmt)
            if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call) and len(body) > 1:
                self.add("source: dropped", lambda i=index: body.__delitem__(i))
                self.add("source: duplicated", lambda i=index: body.insert(i, body[i]))
                following = body[index + 1] if index + 1 < len(body) else None
                if isinstance(following, ast.Expr) and isinstance(following.value, ast.Call) \
                        and ast.dump(following) != ast.dump(stmt):
                    self.add("source: order", lambda i=index: body.insert(i, body.pop(i + 1)))
            if isinstance(stmt, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
                break

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if any(isinstance(d, ast.Constant) for d in node.args.defaults):
            self.add("source: defaults", lambda: node.args.defaults.__setitem__(0, ast.Constant("another default")))
        if node.decorator_list:
            self.add("source: decorator", lambda: node.decorator_list.__delitem__(0))
        if ast.get_docstring(node):
            self.add("source: docstring", lambda: setattr(node.body[0], "value", ast.Constant("another docstring")))
        self.block(node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if any(isinstance(n, (ast.Constant, ast.UnaryOp)) for n in (node.test,)) or _mentions(node.test, "__debug__"):
            return
        self.visit(node.test)
        calls = any(isinstance(n, ast.Call) for stmt in node.body for n in ast.walk(stmt))
        if calls and not isinstance(node.test, (ast.BoolOp, ast.Compare)):
            self.add("source: sense", lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test)))
        self.block(node.body)
        self.block(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self.visit(node.test)
            self.block(node.body)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self.block(node.body)

    def visit_With(self, node: ast.With) -> None:
        self.block(node.body)

    def visit_Try(self, node: ast.Try) -> None:
        self.block(node.body)
        first = node.handlers[0] if node.handlers else None
        calls = isinstance(node.body[0], (ast.Expr, ast.Assign)) and isinstance(node.body[0].value, ast.Call)
        if first is not None and calls:
            if first.type is not None:
                self.add("source: handler", lambda: setattr(first, "type", ast.Name("AnotherError", ast.Load())))
            if len(node.handlers) > 1 and node.handlers[-1].type is not None:
                self.add("source: handler", lambda: node.handlers.__delitem__(0))
            if len(node.body) > 1 and any(isinstance(n, ast.Call) for n in ast.walk(node.body[-1])):
                self.add("source: handler", lambda: node.orelse.insert(0, node.body.pop()))
        for handler in node.handlers:
            self.block(handler.body)
        self.block(node.finalbody)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if not (isinstance(node.left, ast.Constant) or isinstance(node.right, ast.Constant)):
            other = ast.Sub() if not isinstance(node.op, ast.Sub) else ast.Add()
            self.add("source: operator", lambda: setattr(node, "op", other))
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        other = ast.Lt() if not isinstance(node.ops[0], ast.Lt) else ast.GtE()
        self.add("source: operator", lambda: node.ops.__setitem__(0, other))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        if not any(isinstance(n, (ast.Constant, ast.BoolOp)) for v in node.values for n in ast.walk(v)):
            other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
            self.add("source: and, or", lambda: setattr(node, "op", other))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if len(node.args) > 1 and ast.dump(node.args[0]) != ast.dump(node.args[1]):
            self.add("source: arguments", lambda: node.args.insert(0, node.args.pop(1)))
        if node.keywords and node.keywords[0].arg:
            self.add("source: keyword", lambda: setattr(node.keywords[0], "arg", "another_keyword"))
        if any(isinstance(a, ast.Starred) for a in node.args):
            at = next(i for i, a in enumerate(node.args) if isinstance(a, ast.Starred))
            self.add("source: star", lambda: node.args.__setitem__(at, node.args[at].value))  # type: ignore[attr-defined]
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if not isinstance(node.operand, ast.Constant):  # ``-1`` and ``-True`` are folded to the same
            self.visit(node.operand)

    def visit_Constant(self, node: ast.Constant) -> None:
        for twin in twins(node.value):
            if type(twin) in (int, float, bool, str, bytes, complex) and twin == twin:
                self.add("source: constant", lambda twin=twin: setattr(node, "value", twin))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass  # its parts are one string

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.add("source: nested code", lambda: setattr(node, "body", ast.Tuple([node.body], ast.Load())))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.add("source: attribute", lambda: setattr(node, "attr", f"{node.attr}_"))
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.add("source: name", lambda: setattr(node, "id", f"{node.id}_"))

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self.add("source: return", lambda: setattr(node, "value", ast.Constant(None)))
            self.visit(node.value)

    def visit_Yield(self, node: ast.Yield) -> None:
        if node.value is not None:
            self.visit(node.value)


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def source_mutants(
    tree: ast.FunctionDef, rng: random.Random, wanted: Callable[[str], bool]
) -> Iterator[tuple[str, ast.FunctionDef]]:
    """A change of each kind that is wanted of a function's tree, each in a copy."""
    sites = _Sites()
    sites.visit(tree)
    numbers: dict[str, list[int]] = {}
    for number, (kind, _) in enumerate(sites.found):
        numbers.setdefault(kind, []).append(number)
    for number in [rng.choice(found) for kind, found in numbers.items() if wanted(kind)]:
        again = copy.deepcopy(tree)
        fresh = _Sites()
        fresh.visit(again)
        kind, change = fresh.found[number]
        change()
        yield kind, ast.fix_missing_locations(again)


class WithPass(ast.NodeTransformer):
    """``pass`` as often as it can stand somewhere (behind docstrings and ``__future__`` imports)."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt) and not isinstance(node, ast.Module):
                first = body[0]
                docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
                body.insert(1 if docstring else 0, ast.Pass())
        return node
