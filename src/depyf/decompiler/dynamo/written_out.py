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
        bound = [name for name in bound if not _is_constant(self.names[name])]
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
        turns = self.elements(node)
        if turns is None:
            raise CannotWriteOut("a loop over what is not known")
        names = _names(node.target)
        reads: list[ast.stmt] = []
        turned: list[ast.stmt] = []
        for turn in turns:
            for name, element in zip(names, turn):
                self.paths.bind(name)
                path = self.paths.of(element)
                if path is not None:
                    element_name = self.fresh()
                    self.paths.bind(element_name, path)
                    reads += self.statement(_placed(ast.Assign([ast.Name(element_name, ast.Store())], element), node))
                    element = ast.Name(element_name, ast.Load())
                    self.paths.meanwhile[name] = path
                turned += self.statement(_placed(ast.Assign([ast.Name(name, ast.Store())], element), node))
            turned += [inner for each in node.body for inner in self.statement(copied(each))]
            for name in names:
                self.paths.meanwhile.pop(name, None)
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
        if not self.is_fold(node):
            return self.uncertain(node)
        return _placed(ast.List(self.repeated(node), ast.Load()), node)

    def items(self, items: list[ast.expr]) -> list[ast.expr]:
        result: list[ast.expr] = []
        for item in items:
            value = item.value if isinstance(item, ast.Starred) else None
            elements: list[ast.expr] | None = None
            if isinstance(value, ast.GeneratorExp) and self.is_fold(value):
                elements = self.repeated(value)
            elif value is not None and (self.folded.lists or isinstance(value, ast.Subscript) and root_name(
                    value.value).startswith(GRAPH_RESULT)) and (column := self.column(value)) is not None:
                elements = list(map(self.expression, column))
            result += [self.expression(item)] if elements is None else elements
        return result

    def is_fold(self, node: ast.GeneratorExp | ast.ListComp) -> bool:
        return self.elements(node.generators[0]) is not None

    def elements(self, loop: ast.comprehension | ast.For) -> list[list[ast.expr]] | None:
        """Return the values of a loop's variables in each turn; ``None`` of a loop that the program has itself."""
        if not (self.folded.blocks if isinstance(loop, ast.For) else self.folded.loops):
            return None
        over = loop.iter
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == global_names.SIDE_BY_SIDE:
            lists = over.args
        else:
            lists = [over]
        columns = [column for each in lists if (column := self.column(each)) is not None]
        return [list(turn) for turn in zip(*columns)] if len(columns) == len(lists) else None

    def column(self, node: ast.expr) -> list[ast.expr] | None:
        sliced = _sliced(node)
        if sliced is not None:
            return sliced
        path = self.paths.of(node)
        if path is None or not self.paths.facts.length(path):
            return None
        return [_placed(ast.Subscript(node, ast.Constant(index), ast.Load()), node)
                for index in range(self.paths.facts.length(path))]

    def repeated(self, node: ast.GeneratorExp | ast.ListComp) -> list[ast.expr]:
        result: list[ast.expr] = []
        for turn in self.turns(node):
            self.variables.update(turn)
            result += self.items([copied(each) for each in _repeated(node)])
            for name in turn:
                self.variables.pop(name, None)
        return result

    def turns(self, node: ast.GeneratorExp | ast.ListComp) -> Iterator[dict[str, ast.expr]]:
        """Yield for each turn of a loop what its variables are; meanwhile their paths are known."""
        names = _names(node.generators[0].target)
        for elements in self.elements(node.generators[0]) or ():
            turn = dict(zip(names, elements))
            for name, element in turn.items():
                path = self.paths.of(element)
                if path is not None:
                    self.paths.meanwhile[name] = path
            yield turn
            for name in names:
                self.paths.meanwhile.pop(name, None)

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


def _is_constant(node: ast.expr) -> bool:
    """Return whether an expression is the name of a constant of Dynamo's code."""
    return isinstance(node, ast.Name) and node.id.startswith(CONSTANT_PREFIX)


def _names(target: ast.expr) -> list[str]:
    """Return the names of the variables that a target of a loop binds."""
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    return [each.id for each in targets if isinstance(each, ast.Name)]


def _repeated(node: ast.GeneratorExp | ast.ListComp) -> list[ast.expr]:
    """Return the expressions that a loop gives in each turn."""
    if len(node.generators) == 1:
        return [node.elt]
    inner = node.generators[1].iter
    assert isinstance(inner, ast.Tuple)
    return inner.elts


def _sliced(node: ast.expr) -> list[ast.expr] | None:
    """Return the elements of a slice, ``[owner[0], owner[2]]`` for ``owner[0:3:2]``; ``None`` if not certain."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)):
        return None
    start, stop, step = _integer(node.slice.lower), _integer(node.slice.upper), _integer(node.slice.step) or 1
    if isinstance(node.slice.step, ast.UnaryOp):
        step = -(_integer(node.slice.step.operand) or 1)
    if start is None or stop is None and step > 0:
        return None
    return [_placed(ast.Subscript(copied(node.value), ast.Constant(index), ast.Load()), node)
            for index in range(start, -1 if stop is None else stop, step)]


def _integer(node: ast.expr | None) -> int | None:
    """Return the value of a constant that is an integer, else ``None``."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


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
