"""Code objects as definitions: ``def``, ``lambda``, ``class``, comprehensions, whole modules."""

from __future__ import annotations

import ast
from typing import Any, Callable, Iterator, Sequence

from ..bytecode.canonical import canonicalise
from ..bytecode.code import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS, Code
from ..bytecode.operations import Op, Program
from ..flow.graph import Graph, build
from . import annotations as deferred
from .faults import why
from .forms import Form, Forms, held_by
from .generics import HIDDEN, TypeAlias, lazy
from .lift import LOAD, STORE, Accumulator, ClassExpr, FunctionExpr, Iter, Machine, Scope, State, Unliftable
from .literals import constant
from .names import is_name, legal
from .structure.comprehensions import NO_ARGUMENTS, build_comprehension, name_dropped, parse_loops
from .structure.ends import gather_breaks, gather_ends
from .structure.loops import mark_breaks, rotate, split_breaks
from .structure.patterns import cases, find_patterns
from .structure.reduce import SET_ASIDE, Reducer
from .structure.regions import Flow, Untangled, prepare
from .structure.walk import Walker

CO_FUTURE_ANNOTATIONS = 0x1000000
CO_HAS_DOCSTRING = 0x4000000
#: What a comprehension builds, by the name of its function.
COMPREHENSIONS = {
    "<listcomp>": "BUILD_LIST", "<setcomp>": "BUILD_SET", "<dictcomp>": "BUILD_MAP", "<genexpr>": "YIELD",
}
_READS_CELL = frozenset({"LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_CELLS_OF_ANNOTATIONS = frozenset({"__classdict__", deferred.CONDITIONAL})
#: of classes, and of 3.14's modules
_CELLS_OF_THE_COMPILER = frozenset({"__class__", "__classdict__", deferred.CONDITIONAL})
_TYPE_PARAMS = "type_params" in ast.FunctionDef._fields


class Options:
    """How to decompile.

    Args:
        forms: the form each code object is written in; a form that fails is given up here.
        fallback: writes the body of a scope as a dispatch loop; without it, failing to structure one is an error.
    """

    def __init__(
        self, forms: Forms, fallback: Callable[[Code, CodeScope], list[ast.stmt]] | None = None,
    ) -> None:
        self.forms = forms
        self.fallback = fallback
        self.future_annotations = False
        #: graphs that stand in for those of their code: of its simplified forms, and of all others
        self.simplified: dict[Code, Graph] = {}
        self.graphs: dict[Code, Graph] = {}
        #: code in which breaks behind other statements are not looked for: with them it could not be written.
        #: (Remembered, as what is nested is written once more with each try of what is around it.)
        self.breaks_come_first: set[Code] = set()
        #: whether expressions were marked for :func:`~depyf.decompiler.emit.emit`
        self.has_marks = False
        #: global names that are shown differently
        self.rename: dict[str, str] = {}

    def graph(self, code: Code) -> Graph | None:
        """The graph that stands in for the code's own, if one does."""
        if self.forms.of(code) <= Form.SIMPLIFIED_SPILLED:
            return self.simplified.get(code)
        return self.graphs.get(code)

    def spills(self, code: Code) -> bool:
        """Whether values that no Python expression would keep on the stack get names."""
        return self.forms.of(code) in (Form.SIMPLIFIED_SPILLED, Form.SPILLED)


class CodeScope(Scope):
    """One code object being written, and the scopes around it."""

    def __init__(self, code: Code, options: Options, parent: CodeScope | None = None, kind: str = "function",
                 class_name: str | None = None) -> None:
        self.code = code
        self.options = options
        self.parent = parent
        self.kind = kind
        self.class_name = class_name
        self.prefix = ""
        if class_name is not None and class_name.strip("_"):
            self.prefix = f"_{class_name.lstrip('_')}"
        self.annotates = kind in ("class", "module")
        self.program: Program | None = None
        self.matches = False  # whether it holds patterns
        #: 3.14: the function of a class or module that makes its annotations, and those
        self.annotate = deferred.find(code) if self.annotates else None
        self.annotations: list[deferred.Annotation] = []

    # --- names and constants ----------------------------------------------------------------------
    def plain_name(self, name: str) -> str:
        rename = self.options.rename
        if rename and name in rename:
            return rename[name]
        prefix = self.prefix
        if prefix and name.startswith(prefix + "__") and not name.endswith("__"):
            return name[len(prefix):]
        return name

    def constant(self, value: Any) -> Any:
        return constant(value)

    def dropped_constant(self, node: Any) -> ast.expr:
        """A constant alone leaves nothing behind, or is a docstring. What does leave something is an f-string without
        fields (before 3.12), and a constant that decides a condition (since 3.10)."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and self.code.version < (3, 12):
            return ast.JoinedStr([node])
        return decided(node)

    def held(self, node: Any) -> ast.expr:
        return decided(node) if self.code.version >= (3, 10) else node

    def has_constant_keys(self) -> bool:
        return self.code.version < (3, 14)

    def tests_constants(self) -> bool:
        return not (3, 10) <= self.code.version < (3, 14)

    def looked_through(self, node: ast.expr) -> ast.expr:
        """A list that is iterated over or searched is a tuple, and a set of constants is one constant (``fold_iter``
        and ``fold_compare`` in ast_opt.c, flowgraph.c of 3.14), unless it was part of a condition that is gone."""
        if hasattr(node, "frozen"):
            return node
        if (
            isinstance(node, ast.List) and not any(isinstance(item, ast.Starred) for item in node.elts)
            or isinstance(node, ast.Set) and all(isinstance(item, ast.Constant) for item in node.elts)
        ):
            return ast.BoolOp(ast.And(), [ast.Constant(1), node])
        return node

    def sets_up_annotations(self) -> bool:
        return self.program is not None and any(op.kind == "SETUP_ANNOTATIONS" for op in self.program.ops)

    def begins_a_line(self, node: ast.expr) -> None:
        """``(a or b) and c`` tests the value of ``a or b`` once more where its parts stand on another line than the
        whole: jumps are threaded within a line only (CPython up to 3.11, flowgraph of 3.14; compile.c,
        ``JUMP_IF_TRUE_OR_POP`` in ``optimize_basic_block``)."""
        if not (3, 12) <= self.code.version < (3, 14):
            self.begins_another_line(node)

    def begins_another_line(self, node: ast.expr) -> None:
        node.begins_a_line = True  # type: ignore[attr-defined]
        self.options.has_marks = True

    def dropped_comprehension(self, node: ast.expr, before: bool) -> ast.stmt:
        """From 3.13 on a value is dropped before the variables of its inlined comprehension get their values back,
        unless a jump led to where it is dropped; in 3.12 only as an annotation, where both are of one place
        (``apply_static_swaps`` in flowgraph.c)."""
        if before and self.code.version < (3, 13):
            return ast.AnnAssign(ast.Name("_", STORE), node, None, 0)
        if not before and self.code.version >= (3, 13):
            return ast.Expr(ast.BoolOp(ast.Or(), [ast.Constant(0), node]))
        return ast.Expr(node)

    def is_one_item(self, node: ast.expr) -> None:
        """``with (a, b):`` would enter ``a`` and ``b``. (``ast.unparse`` does not know that.)"""
        node.is_one_item = True  # type: ignore[attr-defined]
        self.options.has_marks = True

    def annotation(self, node: ast.expr) -> ast.expr:
        if self.options.future_annotations and isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.removeprefix("*")  # ``*args: *Ts``
            try:
                made = ast.parse(text, mode="eval").body
            except SyntaxError:
                return node
            return made if text == node.value else ast.Starred(made, LOAD)
        return node

    def conditional_annotation(self, name: str, number: Any) -> tuple[str, ast.expr, int] | None:
        if name == deferred.CONDITIONAL and type(number) is int:
            for known in self.annotations:
                if known.index == number:
                    return self.plain_name(known.name), known.value, number
        return None

    # --- bodies -----------------------------------------------------------------------------------
    def flow(
        self, is_lambda: bool = False, hidden: dict[str, Any] | None = None
    ) -> tuple[Flow, Machine, Reducer]:
        if self.program is None:
            self.program = canonicalise(self.code)
        graph = self.options.graph(self.code)
        if graph is None:
            graph = build(self.program)
        flow = prepare(graph, mark_breaks(graph))
        if self.kind in ("module", "class"):
            gather_ends(flow)
        self.matches = self.code.version >= (3, 10) and find_patterns(flow)
        split_breaks(flow)
        rotate(flow)
        gather_breaks(flow)
        machine = Machine(self, self.options.spills(self.code))
        machine.hidden.update(hidden or {})
        reducer = Reducer(flow, machine, is_lambda)
        reducer.run()
        flow.prune()
        return flow, machine, reducer

    def structured(self) -> list[ast.stmt]:
        if self.annotate is not None and not self.annotations:
            self.annotations = deferred.of_body(self.annotate, self)
        early = self.options.breaks_come_first
        if self.code not in early:
            try:
                return self.walked(True)
            except Untangled:
                early.add(self.code)
        return self.walked(False)

    def walked(self, late: bool) -> list[ast.stmt]:
        flow, machine, _ = self.flow(self.kind == "lambda")
        walker = Walker(flow, machine, 2000 + 40 * len(self.program.ops))  # type: ignore[union-attr]
        walker.late = late
        stmts = walker.module() if self.kind in ("module", "class") else walker.function()
        return cases(stmts) if self.matches else stmts

    def body(self) -> list[ast.stmt]:
        """The body in the first of its forms that can be written."""
        options = self.options
        if options.fallback is None:
            return self.structured()
        while options.forms.of(self.code) is not Form.DISPATCH:
            try:
                return self.structured()
            except Exception as error:
                options.forms.give_up(self.code, why(error))
        return options.fallback(self.code, self)

    def statements(self) -> list[ast.stmt]:
        """The statements of the body, declarations and docstring included."""
        body = self.body()
        if self.kind in ("class", "module") and self.options.forms.of(self.code) is Form.DISPATCH:
            return self.future_imports() + body
        if self.annotates and self.code.version >= (3, 14):
            body = [s for s in body if not self.makes_annotations(s)]
        if self.kind == "class":
            body = self.class_body(body)
        elif self.kind == "module":
            body = self.module_body(body)
        else:
            strip_tail(body)
        if self.annotate is not None:
            body = deferred.placed(body, self.annotations, self.plain_name)
        head: list[ast.stmt] = []
        doc = self.docstring()
        if doc is not None:
            head.append(ast.Expr(ast.Constant(doc)))
        head += self.declarations() + self.dead_annotation(body)
        at = 0
        while self.kind in ("class", "module") and at < len(body) and (
            isinstance(body[at], ast.Expr) and isinstance(body[at].value, ast.Constant)  # type: ignore[attr-defined]
            or isinstance(body[at], ast.ImportFrom) and body[at].module == "__future__"  # type: ignore[attr-defined]
        ):
            at += 1
        body[at:at] = head
        return body or [ast.Pass()]

    def dead_annotation(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """An annotation for a body that makes ``__annotations__`` and puts nothing into it: its own were of
        ``(x): int``, or stood where nothing leads to. (Of such 3.14 keeps the cells that annotations would need.)"""
        if not self.annotates:
            return []
        if self.code.version >= (3, 14):
            captured = {name for held in held_by(self.code) for name in held.freevars}
            if not set(self.code.cellvars) & _CELLS_OF_ANNOTATIONS - captured:
                return []
        elif not self.sets_up_annotations():
            return []
        pending: list[ast.AST] = list(body)
        while pending:
            node = pending.pop()
            if isinstance(node, ast.AnnAssign):
                return []
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                pending += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        nothing: ast.stmt = ast.AnnAssign(ast.Name("_", STORE), ast.Constant(None), None, 0)
        if self.code.version >= (3, 14) and deferred.CONDITIONAL not in self.code.cellvars:
            return [nothing]
        return [ast.If(ast.Constant(False), [nothing], [])]

    def future_imports(self) -> list[ast.stmt]:
        """What a module's code was compiled with, where its own import is no longer the first statement."""
        if self.kind != "module" or not self.code.flags & CO_FUTURE_ANNOTATIONS:
            return []
        return [ast.ImportFrom("__future__", [ast.alias("annotations", None)], 0)]

    def docstring(self) -> str | None:
        code = self.code
        if self.kind != "function":
            return None
        if code.version >= (3, 14):
            if not code.flags & CO_HAS_DOCSTRING:
                return None
        if code.consts and isinstance(code.consts[0], str):
            return code.consts[0]
        return None

    def declarations(self) -> list[ast.stmt]:
        code = self.code
        program = self.program if self.program is not None else canonicalise(code)
        global_names: dict[str, None] = {}
        nonlocal_names: dict[str, None] = {}
        loads: dict[str, None] = {}
        stored: set[str] = set()
        used = set(code.cellvars)
        yields = False
        #: variables of an inlined comprehension, which has a cell of its own for them while it runs (3.12+)
        own: set[str] = set()
        graph = self.options.graph(code)
        shown = program.ops if graph is None else [op for block in graph.blocks.values() for op in block.ops]
        for op in shown:
            kind = op.kind
            if kind == "LOAD_FAST" or kind == "LOAD_CLOSURE":
                used.add(op.arg)
            elif kind == "LOAD_GLOBAL":
                loads[op.arg] = None
            elif kind == "STORE_GLOBAL" or kind == "DELETE_GLOBAL":
                global_names[op.arg] = None
            elif kind == "STORE_DEREF" or kind == "DELETE_DEREF":
                stored.add(op.arg)
                if op.arg in code.freevars and op.arg not in own:
                    nonlocal_names[op.arg] = None
            elif kind == "STORE_FAST" or kind == "DELETE_FAST":
                stored.add(op.arg)
                own.discard(op.arg)
            elif kind == "MAKE_CELL":
                own.add(op.arg)
            elif kind in ("YIELD", "YIELD_FROM"):
                yields = True
        read = {op.arg for op in program.ops if op.kind in _READS_CELL} if code.freevars else set()
        # variables of which the compiler has dropped every use (no ``nonlocal``: it could be a type parameter)
        unread = [n for n in code.freevars if n not in read and n not in nonlocal_names and n.isidentifier()]
        if self.kind == "module" or (
                self.kind == "class" and not any(op.kind == "LOAD_FAST_AND_CLEAR" for op in shown)):
            # Names there are looked up in the namespace first, unless they were declared. (What stands in an
            # inlined comprehension of a class belongs to a function.)
            global_names.update(loads)
        elif self.kind == "class":
            for name in loads:
                global_names[name] = None
            bound = {op.arg for op in program.ops if op.kind == "STORE_NAME"}
            for name in loads:
                if name in bound or not self.enclosing_local(name):
                    global_names.pop(name, None)
        else:
            for name in loads:
                if self.enclosing_local(name):
                    global_names[name] = None
        if self.kind == "class":
            global_names.update(dict.fromkeys(self.declared_for_annotations()))
        if self.kind == "function":
            for op in bound_by_comprehensions(shown):
                if op.kind == "STORE_GLOBAL":
                    global_names[op.arg] = None
                elif op.arg in code.freevars and op.arg not in own:
                    nonlocal_names[op.arg] = None
        out: list[ast.stmt] = []
        # (the others go through ``globals()``)
        if declared := [self.plain_name(n) for n in global_names if is_name(n)]:
            out.append(ast.Global(declared))
        if "__class__" in unread and any(op.arg == "super" and op.kind.startswith("LOAD_") for op in program.ops):
            unread.remove("__class__")  # ``super`` alone makes it a free variable
        if nonlocal_names:
            out.append(ast.Nonlocal([self.plain_name(n) for n in nonlocal_names]))
        dead: list[ast.stmt] = [ast.Expr(ast.Name(self.plain_name(n), LOAD)) for n in unread]
        if self.kind == "function":
            lost = used.difference(stored, code.arguments, code.freevars, ("__class__",))
            dead += [
                ast.Assign([ast.Name(self.plain_name(n), STORE)], ast.Constant(None))
                for n in dict.fromkeys((*code.varnames, *code.cellvars)) if n in lost and n.isidentifier()
            ]
            dead += self.dead_closures(shown) + self.static_attributes(shown)
            if code.flags & (CO_GENERATOR | CO_ASYNC_GENERATOR) and not yields:
                dead.append(ast.Expr(ast.Yield(None)))
        elif self.kind == "class":
            # looked up as names of the class, though a function around it has such a variable
            reached = [op for block in build(program).blocks.values() for op in block.ops]
            bound = {op.arg for op in reached if op.kind in ("STORE_NAME", "DELETE_NAME")}
            own_names = dict.fromkeys(op.arg for op in program.ops if op.kind == "LOAD_NAME")
            dead += [ast.Assign([ast.Name(self.plain_name(n), STORE)], ast.Constant(None)) for n in own_names
                     if n not in bound and self.enclosing_local(n)]
        if self.annotates and code.cellvars:
            # cells of inlined comprehensions (3.12 on)
            made = {op.arg for op in program.ops if op.kind in ("MAKE_CELL", "LOAD_CLOSURE")}
            by_name = {op.arg for op in program.ops if op.kind in ("LOAD_NAME", "STORE_NAME", "DELETE_NAME")}
            dead += [
                # (a variable of the body too, unless it is found to be the cell first)
                ast.Expr(ast.Name(self.plain_name(n), LOAD)) for n in code.cellvars if n in by_name and n not in made
                and n.isidentifier() and n not in _CELLS_OF_THE_COMPILER
            ]
            dead += [
                ast.Expr(ast.ListComp(ast.Lambda(NO_ARGUMENTS, ast.Name(self.plain_name(n), LOAD)), [
                    ast.comprehension(ast.Name(self.plain_name(n), STORE), ast.Tuple([], LOAD), [], 0)]))
                for n in code.cellvars if n not in made and n.isidentifier() and n not in _CELLS_OF_THE_COMPILER
            ]
        if dead:
            # names, what captured them, or a yield, whose only statement the compiler has dropped
            out.append(ast.If(ast.Constant(False), dead, []))
        return out

    def declared_for_annotations(self) -> Iterator[str]:
        """Names that scopes of type parameters, bounds and aliases in a class take for globals at once: such a scope
        sees the names of the class, unless they are declared there (``analyze_name`` in symtable.c)."""
        pending = [held for held in held_by(self.code) if held.name.startswith(HIDDEN)] + lazy(self.code)
        while pending:
            here = pending.pop()
            pending += lazy(here)
            yield from (op.arg for op in canonicalise(here).ops if op.kind == "LOAD_GLOBAL")

    def dead_closures(self, shown: Sequence[Op]) -> list[ast.stmt]:
        """Closures over variables that nothing shares any more: what did was dropped by the compiler."""
        if not Form.SIMPLIFIED_SPILLED < self.options.forms.of(self.code) < Form.DISPATCH:
            return []
        captured = {name for op in shown if type(op.arg) is Code for name in op.arg.freevars}
        return [
            ast.Expr(ast.Lambda(NO_ARGUMENTS, ast.Name(self.plain_name(name), LOAD)))
            for name in self.code.cellvars if name not in captured and name.isidentifier()
        ]

    def static_attributes(self, shown: Sequence[Op]) -> list[ast.stmt]:
        """Stores to ``self.x`` that a dispatch loop does through other names.

        3.13 lists the attributes that the functions of a class store to a variable called ``self`` in the class's
        ``__static_attributes__`` (``compiler_maybe_add_static_attribute_to_class`` in compile.c).
        """
        if self.code.version < (3, 13) or self.options.forms.of(self.code) is not Form.DISPATCH:
            return []
        names = {
            op.arg: None for before, op in zip(shown, shown[1:])
            if op.kind == "STORE_ATTR" and before.kind in ("LOAD_FAST", "LOAD_DEREF") and before.arg == "self"
            and is_name(op.arg)
        }
        return [
            ast.Assign([ast.Attribute(ast.Name("self", LOAD), self.plain_name(name), STORE)], ast.Constant(None))
            for name in names
        ]

    def enclosing_local(self, name: str) -> bool:
        scope = self.parent
        while scope is not None:
            # the body of a class written as a dispatch loop is run by a function
            if scope.kind in ("function", "lambda") or self.options.forms.of(scope.code) is Form.DISPATCH:
                code = scope.code
                if name in code.varnames or name in code.cellvars or name in code.freevars:
                    return True
            scope = scope.parent
        return False

    @staticmethod
    def makes_annotations(stmt: ast.stmt) -> bool:
        """Whether the compiler wrote the statement to store annotations (3.14)."""
        if hasattr(stmt, "makes_annotations"):
            return True
        made = stmt.value if deferred.assigns(stmt, deferred.CONDITIONAL) else None  # type: ignore[attr-defined]
        return isinstance(made, ast.Set) and not made.elts  # no source says it: the empty set is ``set()``

    def class_body(self, body: list[ast.stmt]) -> list[ast.stmt]:
        if body and isinstance(body[-1], ast.Return):
            body.pop()
        out: list[ast.stmt] = []
        started = False
        own = {"__module__", "__qualname__"}  # the compiler stores them first; later ones are the user's
        for index, stmt in enumerate(body):
            if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name):
                name = stmt.targets[0].id
                if index < 3 and name in own:
                    own.remove(name)
                    continue
                if name == "__type_params__" and isinstance(stmt.value, ast.Name) and stmt.value.id == ".type_params":
                    continue
                if index < 4 and name == "__firstlineno__" and self.code.version >= (3, 13):
                    continue
                if (
                    name == "__doc__" and index < 5 and not started and isinstance(stmt.value, ast.Constant)
                    and isinstance(stmt.value.value, str)
                ):
                    out.append(ast.Expr(stmt.value))
                    started = True
                    continue
                if name in ("__static_attributes__", "__classdictcell__") and self.code.version >= (3, 12):
                    if name == "__classdictcell__" or index >= len(body) - 2:
                        continue
                if name == "__classcell__" and isinstance(stmt.value, ast.Name) and index >= len(body) - 2:
                    continue
            started = True
            out.append(stmt)
        return out

    def module_body(self, body: list[ast.stmt]) -> list[ast.stmt]:
        strip_tail(body)
        if body and isinstance(body[0], ast.Assign):
            first = body[0]
            if (
                isinstance(first.targets[0], ast.Name) and first.targets[0].id == "__doc__"
                and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
            ):
                body[0] = ast.Expr(first.value)
        return body

    # --- definitions ------------------------------------------------------------------------------
    def nested(self, code: Code, kind: str, class_name: str | None = None) -> CodeScope:
        return CodeScope(code, self.options, self, kind, class_name if class_name is not None else self.class_name)

    def arguments(self, code: Code, parts: dict[str, Any], scope: CodeScope) -> tuple[ast.arguments, ast.expr | None]:
        names = list(code.arguments)
        annotations: dict[str, ast.expr] = {}
        node = parts.get("annotations")
        made = parts.get("annotate")
        if isinstance(made, FunctionExpr):
            node = deferred.expression(made.code, self)
        elif made is not None:
            raise Unliftable("an __annotate__ made in another way")
        annotated: list[tuple[Any, ast.expr]] = []
        if isinstance(node, ast.Tuple):
            annotated = list(zip(node.elts[::2], node.elts[1::2]))
        elif isinstance(node, ast.Dict):
            annotated = list(zip(node.keys, node.values))
        elif node is not None:
            raise Unliftable("annotations made in another way")
        for key, value in annotated:
            if not isinstance(key, ast.Constant):
                raise Unliftable("annotations made in another way")
            annotations[str(key.value)] = self.annotation(value)

        def arg(name: str) -> ast.arg:
            shown = scope.plain_name(name)
            # ``.0`` of a comprehension that is a function of its own
            return ast.arg(legal(shown), annotations.get(name) or annotations.get(shown))

        positional = [arg(n) for n in names[: code.argcount]]
        rest = names[code.argcount:]
        keyword_only = [arg(n) for n in rest[: code.kwonlyargcount]]
        rest = rest[code.kwonlyargcount:]
        vararg = arg(rest.pop(0)) if code.flags & CO_VARARGS else None
        kwarg = arg(rest.pop(0)) if code.flags & CO_VARKEYWORDS else None
        defaults: list[ast.expr] = []
        node = parts.get("defaults")
        if isinstance(node, ast.Tuple):
            defaults = list(node.elts)
        elif node is not None:
            raise Unliftable("defaults made in another way")
        kw_defaults: list[Any] = [None] * len(keyword_only)
        node = parts.get("kwdefaults")
        if isinstance(node, ast.Dict):
            given = {scope.plain_name(k.value): v for k, v in zip(node.keys, node.values)}  # type: ignore[union-attr]
            kw_defaults = [given.get(a.arg) for a in keyword_only]
        elif node is not None:
            raise Unliftable("keyword defaults made in another way")
        split = code.posonlyargcount
        shown = ast.arguments(
            positional[:split], positional[split:], vararg, keyword_only, kw_defaults, kwarg, defaults
        )
        return shown, annotations.get("return")

    def function(self, expr: FunctionExpr, name: str, decorators: list[ast.expr]) -> Any:
        code = expr.code
        if code is self.annotate and name in deferred.FUNCTION_NAMES:
            marker = ast.Pass()
            marker.makes_annotations = True  # type: ignore[attr-defined]
            return marker
        if self.plain_name(code.name) != self.plain_name(name) or not name.isidentifier():
            if decorators or not code.name.startswith("<"):
                return None
        if expr.type_parameters:
            # it was made inside the scope of its type parameters
            around: CodeScope = expr.scope  # type: ignore[attr-defined]
            scope = around.nested(code, "function")
            arguments, returns = around.arguments(code, expr.arguments, scope)
        else:
            scope = self.nested(code, "function")
            arguments, returns = self.arguments(code, expr.arguments, scope)
        return make_function(self.plain_name(name), arguments, scope.statements(), decorators, returns,
                             bool(code.flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)))

    def lambda_(self, expr: FunctionExpr) -> ast.expr:
        scope = self.nested(expr.code, "lambda")
        arguments, _ = self.arguments(expr.code, expr.arguments, scope)
        return ast.Lambda(arguments, as_expression(scope.structured()))

    def class_(self, expr: FunctionExpr, name: str, bases: list[Any], keywords: list[ast.keyword]) -> ast.ClassDef:
        scope = self.nested(expr.code, "class", expr.code.name)
        fields: dict[str, Any] = {"type_params": []} if _TYPE_PARAMS else {}
        return ast.ClassDef(self.plain_name(name), bases, keywords, scope.statements(), [], **fields)

    def generic(self, expr: FunctionExpr, values: list[ast.expr]) -> ast.expr:
        scope = self.nested(expr.code, "generic")
        flow, machine, _ = scope.flow(hidden=dict(zip(expr.code.arguments, values)))
        node = flow.nodes[flow.entry]
        state = State()
        machine.run(state, node.ops)
        if node.end != "return" or len(state.stack) != 1 or state.stmts:
            raise Unliftable("type parameters made in another way")
        made = machine.pop(state)
        if not isinstance(made, (FunctionExpr, ClassExpr, TypeAlias)):
            raise Unliftable("type parameters of something else")
        if isinstance(made, FunctionExpr):
            made.scope = scope  # type: ignore[attr-defined]
        return made

    def later(self, expr: FunctionExpr) -> ast.expr:
        return deferred.expression(expr.code, self)

    def comprehension(self, expr: FunctionExpr, iterable: Iter) -> ast.expr:
        code = expr.code
        build_kind = COMPREHENSIONS.get(code.name)
        if build_kind is None:
            raise Unliftable("a function that is called with an iterator")
        scope = self.nested(code, "comprehension")
        flow, machine, reducer = scope.flow()
        node = flow.nodes[flow.entry]
        state = State()
        head = flow.entry
        if node.end == "jump":
            machine.run(state, node.ops)
            head = node.succs[0]
        elif node.end == "for":
            # nothing ever comes back to the loop
            head = flow.entry
        stack = state.stack
        accumulator = None
        if build_kind != "YIELD":
            accumulator = Accumulator(build_kind)
            stack[:1] = [accumulator]
        found = parse_loops(reducer, head, stack, accumulator) if len(stack) == 1 + (accumulator is not None) else None
        if found is None:
            raise Untangled("a comprehension" if accumulator is not None else "a generator expression")
        generators, element, _ = found
        captured = {name for op in canonicalise(code).ops if type(op.arg) is Code for name in op.arg.freevars}
        # (comprehensions that are inlined in this one set theirs aside)
        foreign = {*code.arguments, *(op.arg for op in canonicalise(code).ops if op.kind in SET_ASIDE)}
        names = [self.plain_name(n) for n in (*code.varnames, *code.cellvars) if n not in foreign]
        name_dropped(generators, names, [self.plain_name(n) for n in code.cellvars if n not in captured])
        made: Any = build_comprehension(build_kind, element, generators, iterable)
        # up to 3.11 the function of an asynchronous comprehension is a coroutine, and the compiler adds the await
        # (``compiler_comprehension`` in compile.c)
        made.awaited = build_kind != "YIELD" and bool(code.flags & CO_COROUTINE)
        return made


def bound_by_comprehensions(ops: Sequence[Op]) -> Iterator[Op]:
    """Stores to variables outside of a comprehension in functions of comprehensions: a walrus in one binds a name of
    the function around it, where it is declared if it is no local."""
    for op in ops:
        if type(op.arg) is Code and op.arg.name in COMPREHENSIONS:
            inside = canonicalise(op.arg).ops
            yield from (store for store in inside if store.kind == "STORE_GLOBAL"
                        or store.kind == "STORE_DEREF" and store.arg in op.arg.freevars)
            yield from bound_by_comprehensions(inside)


def make_function(
    name: str, arguments: ast.arguments, body: list[ast.stmt], decorators: list[ast.expr],
    returns: ast.expr | None, asynchronous: bool,
) -> Any:
    fields: dict[str, Any] = {"type_params": []} if _TYPE_PARAMS else {}
    kind = ast.AsyncFunctionDef if asynchronous else ast.FunctionDef
    return kind(name, arguments, body, decorators, returns, None, **fields)


def as_expression(stmts: list[ast.stmt]) -> ast.expr:
    """The expression of a lambda's body."""
    if stmts and isinstance(stmts[0], ast.Return):
        return stmts[0].value or ast.Constant(None)
    if len(stmts) == 2 and isinstance(stmts[0], ast.Expr) and isinstance(stmts[1], ast.Return):
        return stmts[0].value  # a generator's lambda: ``lambda: (yield)``
    if stmts and isinstance(stmts[0], ast.If):
        test = stmts[0]
        return ast.IfExp(test.test, as_expression(test.body), as_expression(test.orelse or stmts[1:]))
    raise Unliftable("a lambda with statements")


def decided(node: Any) -> ast.expr:
    """A constant as a condition that it decides: from 3.10 on only the constant is left of it."""
    return ast.BoolOp(ast.Or() if node.literal else ast.And(), [node, ast.Constant(0)])


def strip_tail(body: list[ast.stmt]) -> None:
    """Drop the ``return None`` that falling off the end does anyway."""
    while body:
        last = body[-1]
        if isinstance(last, ast.Return) and (
            last.value is None or (isinstance(last.value, ast.Constant) and last.value.value is None)
        ):
            body.pop()
            return
        if isinstance(last, ast.If):
            strip_tail(last.body)
            strip_tail(last.orelse)
            if not last.body:
                last.body.append(ast.Pass())
        return


def top_level(code: Code, options: Options, name: str | None = None) -> ast.Module:
    """A module that holds the definition of ``code`` (or is it)."""
    if code.name == "<module>":
        options.future_annotations = bool(code.flags & CO_FUTURE_ANNOTATIONS)
        return ast.Module(CodeScope(code, options, None, "module").statements(), [])
    scope = CodeScope(code, options, None, "function")
    shown = legal(name or code.name)
    arguments, _ = scope.arguments(code, {}, scope)
    body = scope.statements()
    node = make_function(shown, arguments, body, [], None,
                         bool(code.flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)))
    return ast.Module([node], [])
