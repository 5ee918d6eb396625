"""The forms of a text expanded: the program that it means, and that runs.

=====================================  ======================================================================
the text                               written out
=====================================  ======================================================================
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

Each node keeps its place in the text, so that a debugger shows the line that runs. What reads a module
(``self.layers[0].weight``) is proven as it is, and so is all that is plain Python.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from ...bytecode import operations as o
from ...bytecode.code import Code
from ...bytecode.operations import Op
from ..errors import SIMPLIFY, CannotDecompile
from ..nodes import KINDS, Transformer, copied
from ..result import inside
from .facts import root_name
from .folding import Substitution, expression
from .global_names import CONSTANT_PREFIX, GRAPH_RESULT, UTILITIES

if TYPE_CHECKING:
    from .readable import Readable

#: Dynamo's function that makes an entry in an object's dictionary.
SET_ENTRY = "object_setattr_ignore_descriptor"


def has_size_calls(code: Code, ops: Iterable[Op]) -> bool:
    """Return whether texts have ``x.size(1)`` for ``call_size(x, 1)``: the program has no method of that name."""
    attributes = {op.arg for op in ops if op.kind in (o.LOAD_ATTR, o.STORE_ATTR, o.DELETE_ATTR)}
    return "call_size" in attributes and "size" not in attributes and all(
        "size" not in each.names for each in inside(code))


def written_out(tree: ast.Module, forms: Readable) -> ast.Module:
    """Return the tree of a text, with its places, with its forms expanded, in place."""
    _Writer(forms).generic_visit(tree.body[0])
    return tree


class _Writer(Transformer):
    def __init__(self, forms: Readable) -> None:
        self.word_for_new, self.folded = forms.new, forms.folded
        self.paths, self.names, self.constants = forms.paths, forms.names, forms.constants
        self.constant_roots = {text.partition(".")[0] for text in forms.constants}
        ops = forms.program.ops
        self.sizes = has_size_calls(forms.program.code, ops)
        #: Dynamo's function for that, where its code has it.
        self.set_entry = f"{UTILITIES}.{SET_ENTRY}" if any(
            op.kind is o.LOAD_ATTR and op.arg == SET_ENTRY for op in ops) else "object.__setattr__"
        self.fresh_names = 0
        self.bound_by_imports: set[str] = set()
        #: Elements that replace a variable of a comprehension; whether that variable has been bound.
        self.variables: dict[str, ast.expr] = {}
        self.certain = True

    def visit_FunctionDef(self, node: ast.AST) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    # --- constants and names ------------------------------------------------------------------------
    def visit_ImportFrom(self, node: ast.Import | ast.ImportFrom) -> ast.stmt | list[ast.stmt]:
        """Return assignments for an import of names whose expressions, but for constants, are known."""
        bound = [alias.asname or alias.name for alias in node.names]
        if not all(name in self.names for name in bound):
            return node
        bound = [name for name in bound if not root_name(self.names[name]).startswith(CONSTANT_PREFIX)]
        self.bound_by_imports.update(bound)
        return [_assigned(name, copied(self.names[name]), node) for name in bound]

    visit_Import = visit_ImportFrom

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

    # --- stores ---------------------------------------------------------------------------------------
    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        node.value = self.expression(node.value)  # (it runs before the targets: the first who needs a value stores it)
        node.targets = list(map(self.expression, node.targets))
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Store a buffer in the dictionary it is in: no function of torch's runs."""
        path = self.paths.stored_buffer(node)
        self.generic_visit(node)
        if path is None:
            return node
        place = _filled(f"owner.{path[-2][1]}[{node.attr!r}]", node, owner=node.value)
        assert isinstance(place, ast.Subscript)
        place.ctx = ast.Store()
        return place

    # --- what repeats -------------------------------------------------------------------------------
    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        """Return the statements of a loop, repeated for each turn; its lists are read before the first."""
        if ast.For not in self.folded:
            return self.generic_visit(node)
        reads: list[ast.stmt] = []
        turned: list[ast.stmt] = []
        for turn in self.turns(node):
            for name, element in turn.items():
                if self.paths.known[name] is not None:
                    self.fresh_names += 1
                    first = f".{self.fresh_names}"  # no name that a text could have
                    reads.append(_assigned(first, self.expression(element), node))
                    element = ast.Name(first, ast.Load())
                turned.append(_assigned(name, self.expression(element), node))
            body = ast.Module([copied(each) for each in node.body], [])
            turned += self.generic_visit(body).body
        return reads + turned

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == self.word_for_new and node.func.id not in self.names:
            return self.new(node)
        node.func = self.expression(node.func)
        node.args = self.items(node.args)
        for keyword in node.keywords:
            keyword.value = self.expression(keyword.value)
        if self.sizes and isinstance(node.func, ast.Attribute) and node.func.attr == "size" and len(node.args) == 1:
            return _filled(f"{UTILITIES}.call_size(x, n)", node, x=node.func.value, n=node.args[0])
        return node

    def visit_List(self, node: ast.List | ast.Tuple) -> ast.expr:
        node.elts = self.items(node.elts)
        return node

    visit_Tuple = visit_List

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        if ast.ListComp not in self.folded:
            return self.uncertain(node)
        return _placed(ast.List(self.repeated(node), ast.Load()), node)

    def uncertain(self, node: ast.expr) -> ast.expr:
        """Visit an expression that may not be evaluated, of which no value is stored for later code."""
        before, self.certain = self.certain, False
        self.generic_visit(node)
        self.certain = before
        return node

    visit_IfExp = visit_BoolOp = visit_Lambda = visit_GeneratorExp = visit_SetComp = visit_DictComp = uncertain

    def items(self, items: list[ast.expr]) -> list[ast.expr]:
        result: list[ast.expr] = []
        for item in items:
            match item:
                case ast.Starred(ast.GeneratorExp() as value) if ast.GeneratorExp in self.folded:
                    result += self.repeated(value)
                case ast.Starred(value) if ast.Starred in self.folded or isinstance(value, ast.Subscript) and (
                        isinstance(value.slice, ast.Slice) and root_name(value.value).startswith(GRAPH_RESULT)):
                    result += map(self.expression, self.column(value))  # (of a graph's result, which no program has)
                case _:
                    result.append(self.expression(item))
        return result

    def column(self, node: ast.expr) -> list[ast.expr]:
        """Return the elements of a slice or of a list of a known length, ``[xs[0], xs[2]]`` for ``xs[0:3:2]``."""
        match node:
            case ast.Subscript(owner, ast.Slice(ast.Constant(int(start)), stop, step)):
                numbers = range(start, -1 if stop is None else ast.literal_eval(stop),
                                1 if step is None else ast.literal_eval(step))
            case _:
                path = self.paths.of(node)
                owner, numbers = node, range(0 if path is None else self.paths.facts.length(path))
        if not numbers:
            raise CannotDecompile(SIMPLIFY, "it is not known what is gone over")
        return [_placed(ast.Subscript(copied(owner), ast.Constant(index), ast.Load()), node) for index in numbers]

    def repeated(self, node: ast.GeneratorExp | ast.ListComp) -> list[ast.expr]:
        """Return what a comprehension gives in all turns; in each the paths of its variables are known."""
        given, loop = [node.elt], node.generators[0]
        if len(node.generators) > 1:
            inner = node.generators[1].iter
            assert isinstance(inner, ast.Tuple)
            given = inner.elts
        result: list[ast.expr] = []
        for turn in self.turns(loop):
            self.variables.update(turn)
            result += self.items([copied(each) for each in given])
            for name in turn:
                del self.variables[name]
        return result

    def turns(self, loop: ast.comprehension | ast.For) -> Iterator[dict[str, ast.expr]]:
        """Yield for each turn what a loop's variables are; meanwhile their paths are known."""
        lists = loop.iter.args if isinstance(loop.iter, ast.Call) else [loop.iter]  # (side by side)
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        names = [each.id for each in targets if isinstance(each, ast.Name)]
        for elements in zip(*map(self.column, lists), strict=True):
            turn = dict(zip(names, elements))
            self.paths.known |= {name: self.paths.of(element) for name, element in turn.items()}
            yield turn
            for name in names:
                del self.paths.known[name]

    def variable(self, node: ast.Name) -> ast.expr:
        """Return the element that a variable of a comprehension is; its first use in a turn binds it."""
        element = self.variables[node.id]
        if isinstance(element, ast.Name):
            return node
        value = self.expression(_filled("element", node, element=element))
        if not self.certain:
            return value
        self.variables[node.id] = ast.Name(node.id, ast.Load())
        return _placed(ast.NamedExpr(ast.Name(node.id, ast.Store()), value), node)

    # --- objects ------------------------------------------------------------------------------------
    def new(self, node: ast.Call) -> ast.expr:
        """Return ``(x := cls.__new__(cls), set(x, 'a', 1), ..., x)[2]`` for its short form."""
        cls, *contents = node.args
        path = self.paths.of(self.names.get(cls.id, cls) if isinstance(cls, ast.Name) else cls)
        self.fresh_names += 1
        x = ast.Name(f".{self.fresh_names}", ast.Load())
        made = _filled("cls.__new__(cls)", node, cls=self.expression(cls))
        steps: list[ast.expr] = [ast.NamedExpr(ast.Name(x.id, ast.Store()), made)]
        for keyword in node.keywords:
            value = self.expression(keyword.value)
            steps.append(_filled(f"{self.set_entry}(x, {keyword.arg!r}, value)", value, x=x, value=value))
        for items in contents:
            assert isinstance(items, ast.Dict)  # (what a class contains that is a dictionary itself)
            base = next(index for index in range(20) if path is not None and self.paths.facts.ancestor(path, index))
            for key, value in zip(items.keys, map(self.expression, items.values)):
                assert key is not None
                text = f"type(x).__mro__[{base}].__setitem__(x, key, value)"
                steps.append(_filled(text, value, x=x, key=key, value=value))
        return _placed(ast.Subscript(ast.Tuple([*steps, x], ast.Load()), ast.Constant(len(steps)), ast.Load()), node)


def _filled(text: str, place: ast.AST, **parts: ast.expr) -> ast.expr:
    """Return the expression of a text, at a place, with expressions for its variables."""
    tree = expression(text)
    for node in ast.walk(tree):
        ast.copy_location(node, place)
    return Substitution({name: _placed(part, place) for name, part in parts.items()}).expression(tree)


def _assigned(name: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    return _placed(ast.Assign([ast.Name(name, ast.Store())], value), place)


_Node = TypeVar("_Node", bound=ast.AST)


def _placed(node: _Node, place: ast.AST) -> _Node:
    """Give a node, and all in it that has no place, the place of another; return the node."""
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
