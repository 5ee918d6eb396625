"""The forms of a text expanded: the program that it means, and that runs.

=====================================  ======================================================================
the text                               written out
=====================================  ======================================================================
``self.layers[0].weight``              ``self._modules['layers']._modules['0']._parameters['weight']``
``*(v for l in layers for v in (..))`` an argument for each layer and value
``[f(x) for x in out[0:3]]``           ``[f(out[0]), f(out[1]), f(out[2])]``
``for x in xs: x.a = 1``               the statements, once for each element
``f(*out[0:4], *xs)``                  the items and elements, each an argument
``new(cls, a=x)``                      ``cls.__new__(cls)``, then an entry in its dictionary
``self.norm.mean = y``                 ``self._modules['norm']._buffers['mean'] = y``
``from m import name``                 ``name = __import_m.name``: the module that Dynamo put among the globals
``x.size(1)``                          ``call_size(x, 1)``, Dynamo's function for that
``torch.float32``, ``x[:, i]``,        the constant of Dynamo's code
``P._make``
=====================================  ======================================================================

Each node keeps its place in the text, so that a debugger shows the line that runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from ...bytecode import operations as o
from ...bytecode.code import Code
from ...bytecode.operations import Op
from ..errors import SIMPLIFY, CannotDecompile
from ..nodes import KINDS, Transformer, copied, nodes_of
from ..result import inside
from . import global_names
from .facts import is_member
from .global_names import CONSTANT_PREFIX, GRAPH_RESULT, UTILITIES
from .live_paths import attribute_asked, root_name

if TYPE_CHECKING:
    from .readable import Readable

#: Dynamo's function that makes an entry in an object's dictionary.
SET_ENTRY = "object_setattr_ignore_descriptor"


def has_size_calls(code: Code, ops: Iterable[Op]) -> bool:
    """Return whether texts have ``x.size(1)`` for ``call_size(x, 1)``: the program has no method of that name."""
    attributes = {op.arg for op in ops if op.kind in (o.LOAD_ATTR, o.STORE_ATTR, o.DELETE_ATTR)}
    return "call_size" in attributes and "size" not in attributes and all(
        "size" not in each.names for each in inside(code))


class CannotWriteOut(CannotDecompile):
    """The text uses the name of a form for something else; it is written without forms."""

    def __init__(self, message: str) -> None:
        super().__init__(SIMPLIFY, message)


def written_out(tree: ast.Module, forms: Readable) -> ast.Module:
    """Return the tree of a text, with its places, with its forms expanded, in place.

    Raises:
        CannotWriteOut: there is a form that is not known.
    """
    function = tree.body[0]
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    writer = _Writer(forms)
    function.body = [inner for statement in function.body for inner in writer.statement(statement)]
    return tree


class _Writer(Transformer):
    def __init__(self, forms: Readable) -> None:
        self.word_for_new, self.folded = forms.new, forms.folded
        self.paths, self.names, self.constants = forms.paths, forms.names, forms.constants
        self.constant_roots = {text.partition(".")[0] for text in forms.constants}
        ops = forms.program.ops
        self.sizes = has_size_calls(forms.program.code, ops)
        #: Whether Dynamo's code has the function that makes entries in an object's dictionary.
        self.sets_entries = any(op.kind is o.LOAD_ATTR and op.arg == SET_ENTRY for op in ops)
        self.fresh_names = 0
        self.bound_by_imports: set[str] = set()
        #: Elements that replace a variable of a comprehension; whether that variable has been bound.
        self.variables: dict[str, ast.expr] = {}
        self.certain = True

    # --- statements ---------------------------------------------------------------------------------
    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, (ast.Import, ast.ImportFrom)) and (imported := self.imported(node)) is not None:
            return imported
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return [node]
        if isinstance(node, ast.For) and self.folded.blocks:
            return self.block(node)
        for owner in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            for field in ("body", "orelse", "finalbody"):
                inner = getattr(owner, field, None)
                if inner:
                    setattr(owner, field, [part for each in inner for part in self.statement(each)])
        return [self.with_expressions(node)]

    def imported(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt] | None:
        """Return assignments for an import of names whose expressions in the program are known.

        A name imported for a constant means that constant. ``None`` for any other import.
        """
        bound = [alias.asname or alias.name for alias in node.names]
        if not all(name in self.names for name in bound):
            return None
        bound = [name for name in bound if not root_name(self.names[name]).startswith(CONSTANT_PREFIX)]
        self.bound_by_imports.update(bound)
        return [_placed(ast.Assign([ast.Name(name, ast.Store())], copied(self.names[name])), node) for name in bound]

    def with_expressions(self, node: ast.stmt) -> ast.stmt:
        """Return the statement with its expressions expanded."""
        # A value is stored by the code that runs first: the value of an assignment runs before its targets.
        for name in sorted(node._fields, key=lambda field: field in ("target", "targets")):
            value = getattr(node, name, None)
            if isinstance(value, ast.expr):
                setattr(node, name, self.visit(value))
            elif isinstance(value, list) and value and isinstance(value[0], (ast.expr, ast.withitem)):
                setattr(node, name, [self.visit(each) for each in value])
        return node

    def block(self, node: ast.For) -> list[ast.stmt]:
        """Return the statements of a loop, repeated for each turn; its lists are read before the first."""
        reads: list[ast.stmt] = []
        turned: list[ast.stmt] = []
        turns = self.turns(node)
        if turns is None:
            raise CannotWriteOut("a loop over what is not known")
        for turn in turns:
            for name, element in turn.items():
                self.paths.bind(name)
                path = self.paths.meanwhile.get(name)
                if path is not None:
                    first = self.fresh()
                    self.paths.bind(first, path)
                    reads += self.statement(_placed(ast.Assign([ast.Name(first, ast.Store())], element), node))
                    element = ast.Name(first, ast.Load())
                turned += self.statement(_placed(ast.Assign([ast.Name(name, ast.Store())], element), node))
            turned += [inner for each in node.body for inner in self.statement(copied(each))]
        return reads + turned

    # --- constants and names ------------------------------------------------------------------------
    def visit(self, node: ast.AST) -> ast.AST:
        if self.constants and (isinstance(node, (ast.Slice, ast.Tuple)) or isinstance(node, (ast.Call, ast.Attribute))
                               and root_name(node) in self.constant_roots):
            name = self.constants.get(ast.unparse(node))
            if name is not None:
                return _placed(ast.Name(name, ast.Load()), node)
        result: ast.AST = super().visit(node)
        return result

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load):
            if node.id in self.variables:
                return self.variable(node)
            meant = self.names.get(node.id)
            if meant is not None and node.id not in self.bound_by_imports:
                return _placed(copied(meant), node)
        return node

    # --- modules ------------------------------------------------------------------------------------
    def visit_Attribute(self, node: ast.Attribute | ast.Subscript) -> ast.expr:
        return self.member(node) or self.generic_visit(node)

    visit_Subscript = visit_Attribute

    def member(self, node: ast.Attribute | ast.Subscript | ast.Call) -> ast.expr | None:
        """Return a module's member through the dictionary it is in: no function of torch's runs to read or store it.

        ``None`` if the expression is no member, or is written so already.
        """
        context = getattr(node, "ctx", ast.Load())
        path = self.paths.of(node) if isinstance(context, ast.Load) else self.paths.stored_buffer(node)
        if path is None or not is_member(path):
            return None
        owner = node.args[0] if isinstance(node, ast.Call) else node.value
        if self.paths.of(owner) == path[:-1]:
            return None
        dictionary = ast.Attribute(self.expression(owner), path[-2][1], ast.Load())
        return _placed(ast.Subscript(dictionary, ast.Constant(path[-1][1]), context), node)

    def fresh(self) -> str:
        self.fresh_names += 1
        return f".{self.fresh_names}"  # no name that a text could have

    def uncertain(self, node: ast.expr) -> ast.expr:
        """Visit an expression that may not be evaluated, of which no value is stored for later code."""
        before, self.certain = self.certain, False
        self.generic_visit(node)
        self.certain = before
        return node

    visit_IfExp = visit_BoolOp = visit_Lambda = visit_GeneratorExp = visit_SetComp = visit_DictComp = uncertain

    # --- what repeats -------------------------------------------------------------------------------
    def visit_Call(self, node: ast.Call) -> ast.expr:
        if attribute_asked(node) and (member := self.member(node)) is not None:
            return member
        if isinstance(node.func, ast.Name) and node.func.id == self.word_for_new and node.func.id not in self.names:
            return self.new(node)
        if self.sizes and isinstance(node.func, ast.Attribute) and node.func.attr == "size" and len(node.args) == 1:
            function = ast.Attribute(ast.Name(UTILITIES, ast.Load()), "call_size", ast.Load())
            node = _placed(ast.Call(function, [node.func.value, node.args[0]], []), node)
        node.func = self.expression(node.func)
        node.args = self.items(node.args)
        for keyword in node.keywords:
            keyword.value = self.expression(keyword.value)
        return node

    def visit_List(self, node: ast.List | ast.Tuple) -> ast.expr:
        node.elts = self.items(node.elts)
        return node

    visit_Tuple = visit_List

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        elements = self.repeated(node)
        return self.uncertain(node) if elements is None else _placed(ast.List(elements, ast.Load()), node)

    def items(self, items: list[ast.expr]) -> list[ast.expr]:
        result: list[ast.expr] = []
        for item in items:
            elements: list[ast.expr] | None = None
            if isinstance(item, ast.Starred):
                value = item.value
                if isinstance(value, ast.GeneratorExp):
                    elements = self.repeated(value)
                elif self.folded.lists or isinstance(value, ast.Subscript) and root_name(value.value).startswith(
                        GRAPH_RESULT):
                    column = self.column(value)
                    elements = None if column is None else list(map(self.expression, column))
            result += [self.expression(item)] if elements is None else elements
        return result

    def column(self, node: ast.expr) -> list[ast.expr] | None:
        """Return the elements of a slice or of a list of a known length, ``[xs[0], xs[2]]`` for ``xs[0:3:2]``."""
        match node:
            case ast.Subscript(owner, ast.Slice(ast.Constant(int(start)), stop, step)):
                by = 1 if step is None else ast.literal_eval(step)
                if stop is None and by > 0:
                    return None
                numbers = range(start, -1 if stop is None else ast.literal_eval(stop), by)
            case _:
                path = self.paths.of(node)
                owner, numbers = node, range(0 if path is None else self.paths.facts.length(path))
                if not numbers:
                    return None
        return [_placed(ast.Subscript(copied(owner), ast.Constant(index), ast.Load()), node) for index in numbers]

    def repeated(self, node: ast.GeneratorExp | ast.ListComp) -> list[ast.expr] | None:
        """Return what a comprehension gives in all turns; ``None`` of one that the program has itself."""
        turns = self.turns(node.generators[0])
        if turns is None:
            return None
        given = [node.elt]
        if len(node.generators) > 1:
            inner = node.generators[1].iter
            assert isinstance(inner, ast.Tuple)
            given = inner.elts
        result: list[ast.expr] = []
        for turn in turns:
            self.variables.update(turn)
            result += self.items([copied(each) for each in given])
            for name in turn:
                self.variables.pop(name, None)
        return result

    def turns(self, loop: ast.comprehension | ast.For) -> Iterator[dict[str, ast.expr]] | None:
        """Return for each turn what a loop's variables are; ``None`` of a loop that the program has itself.

        Meanwhile their paths are known.
        """
        if not (self.folded.blocks if isinstance(loop, ast.For) else self.folded.loops):
            return None
        match loop.iter:
            case ast.Call(ast.Name(global_names.SIDE_BY_SIDE), lists):
                pass
            case over:
                lists = [over]
        columns = [column for each in lists if (column := self.column(each)) is not None]
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        names = [each.id for each in targets if isinstance(each, ast.Name)]

        def turning() -> Iterator[dict[str, ast.expr]]:
            for elements in zip(*columns):
                turn = dict(zip(names, elements))
                self.paths.meanwhile |= {name: path for name, element in turn.items()
                                         if (path := self.paths.of(element)) is not None}
                yield turn
                for name in names:
                    self.paths.meanwhile.pop(name, None)

        return turning() if len(columns) == len(lists) else None

    def variable(self, node: ast.Name) -> ast.expr:
        """Return the element that a variable of a comprehension is; its first use in a turn binds it."""
        element = self.variables[node.id]
        if isinstance(element, ast.Name):
            return node
        value = self.expression(copied(element))
        for part in nodes_of(value):
            if isinstance(part, ast.expr):
                ast.copy_location(part, node)
        if not self.certain:
            return value
        self.variables[node.id] = ast.Name(node.id, ast.Load())
        return _placed(ast.NamedExpr(ast.Name(node.id, ast.Store()), value), node)

    # --- objects ------------------------------------------------------------------------------------
    def new(self, node: ast.Call) -> ast.expr:
        """Return ``(x := cls.__new__(cls), set(x, 'a', 1), ..., x)[2]`` for its short form."""
        cls = node.args[0]
        path = self.paths.of(self.names.get(cls.id, cls) if isinstance(cls, ast.Name) else cls)
        name = self.fresh()
        called = self.expression(copied(cls))
        make = ast.Call(ast.Attribute(called, "__new__", ast.Load()), [self.expression(copied(cls))], [])
        steps: list[ast.expr] = [ast.NamedExpr(ast.Name(name, ast.Store()), make)]

        def step(place: ast.expr, function: ast.expr, *arguments: ast.expr) -> None:
            steps.append(_placed(ast.Call(copied(function), [ast.Name(name, ast.Load()), *arguments], []), place))

        owner, method = (UTILITIES, SET_ENTRY) if self.sets_entries else ("object", "__setattr__")
        setter = ast.Attribute(ast.Name(owner, ast.Load()), method, ast.Load())
        for keyword in node.keywords:
            if keyword.arg is None:
                raise CannotWriteOut("an object with attributes that are not named")
            step(keyword.value, setter, ast.Constant(keyword.arg), self.expression(keyword.value))
        if len(node.args) > 1:
            inside = node.args[1]
            places = {kind: index for index in reversed(range(20)) if path is not None
                      and (kind := self.paths.facts.ancestor(path, index))}
            kind = next((kind for kind in ("OrderedDict", "dict", "list") if kind in places), "")
            if not kind:
                raise CannotWriteOut("an object with contents of a class that holds none")
            base = ast.Subscript(
                ast.Attribute(ast.Call(ast.Name("type", ast.Load()), [ast.Name(name, ast.Load())], []), "__mro__",
                              ast.Load()), ast.Constant(places[kind]), ast.Load())
            if kind == "list" or not isinstance(inside, ast.Dict):
                step(inside, ast.Attribute(base, "extend", ast.Load()), self.expression(inside))
            else:
                for key, value in zip(inside.keys, inside.values):
                    if key is None:
                        raise CannotWriteOut("an object with contents that are not listed")
                    step(value, ast.Attribute(base, "__setitem__", ast.Load()), key, self.expression(value))
        result = ast.Subscript(ast.Tuple([*steps, ast.Name(name, ast.Load())], ast.Load()), ast.Constant(len(steps)),
                               ast.Load())
        return _placed(result, node)


_Node = TypeVar("_Node", bound=ast.AST)


def _placed(node: _Node, place: ast.AST) -> _Node:
    """Give a node, and all in it that has no place, the place of another; return the node.

    What has a place is taken to have places in it.
    """
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, KINDS):
            continue
        if "lineno" in part._attributes:
            if hasattr(part, "lineno"):
                continue
            ast.copy_location(part, place)
        pending += ast.iter_child_nodes(part)
    return node
