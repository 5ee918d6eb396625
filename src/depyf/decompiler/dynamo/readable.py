"""The tree of Dynamo's code -> the tree that is read.

It has imports for Dynamo's own globals, its constants in words, and what repeats folded.
:class:`Readable` records what each name and expression means, so that :mod:`.written_out` can take it all back.
"""

from __future__ import annotations

import ast
import builtins
import collections
import keyword
import re
from collections.abc import Collection, Iterable, Mapping

from ...bytecode import operations as o
from ...bytecode.operations import Op, Program
from ...bytecode.packed import IMPORTED
from ..nodes import Transformer, free_name, nodes_of
from .facts import ALWAYS, Facts, LivePaths, Path, root_name
from .folding import Substitution, expression, fold
from .global_names import BUILTINS_PREFIX, IMPORT_PREFIXES, NEW
from .written_out import written_out

#: A constant that is a class, or a method of one, and the module that it is imported from.
_IMPORTED = re.compile(rf"(?P<name>[^\W\d]\w*)(?P<method>\.[^\W\d]\w*)?{IMPORTED}(?P<module>[\w.]+)")

#: What loads and stores variables.
_OF_VARIABLES = frozenset({
    o.LOAD_FAST, o.STORE_FAST, o.LOAD_DEREF, o.STORE_DEREF, o.LOAD_CLOSURE, o.LOAD_GLOBAL, o.STORE_GLOBAL, o.LOAD_NAME})


def word_for_new(ops: Iterable[Op], rename: Mapping[str, str], facts: Facts | None) -> str:
    """Return the word for :data:`NEW` in the text of a program: another one where a variable of it has that name."""
    taken = {rename.get(op.arg, op.arg) for op in ops if op.kind in _OF_VARIABLES}
    return free_name(NEW, taken | {NEW} if facts is not None and facts.reading((("global", NEW),)) else taken)


class Readable:
    """The forms of one text.

    Args:
        tree: of the plain text, one function; it is changed.
        facts: about the live objects that it was compiled for.
        program: Dynamo's code.
        rename: ``{global name: name in the text}``.
        constants: ``{name of a constant of Dynamo's code: what it is}``.
        folds: write what repeats once.
        new: the word for :data:`.global_names.NEW`.

    Attributes:
        names: what the names mean that the text imports, or reads as globals.
        constants: constants of Dynamo's code that have words in the text: the names of the constants, by the words.
        names_classes: whether classes among the constants go by the names that they had when torch compiled.
    """

    def __init__(
        self, tree: ast.Module, facts: Facts, program: Program, rename: Mapping[str, str],
        constants: Mapping[str, str], folds: bool = True, new: str = NEW,
    ) -> None:
        self.tree, self.facts, self.program, self.folds, self.new = tree, facts, program, folds, new
        self.names: dict[str, ast.expr] = {}
        self.constants: dict[str, str] = {}
        self.folded: Collection[type[ast.AST]] = ()
        self.names_classes = False
        self.meanings = constants
        self.real = {shown: name for name, shown in rename.items()}
        function = tree.body[0]
        assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        self.function = function
        names = [node for node in nodes_of(tree) if isinstance(node, ast.Name)]
        bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        parameters = (*program.code.arguments, *program.code.freevars)
        stores = {op.arg for op in program.ops if op.kind is o.STORE_ATTR}
        self.taken = {node.id for node in names} | set(parameters)
        self.paths = LivePaths(facts, parameters, self.real, bound, stores)
        self._imports: list[ast.stmt] = []

    # --- the passes, in the order in which they run --------------------------------------------------
    def name_constants(self) -> None:
        """Write constants in the words that a program has for them: slices, dtypes, devices, sizes, tuples of them."""
        known = {name: words for name, meaning in self.meanings.items() if (words := in_words(meaning)) is not None}
        # (Tuples last: one that the program builds of such constants is no constant.)
        for kinds in ((ast.Slice,), (ast.Attribute, ast.Call), (ast.Tuple,)):
            said = {name: words for name, words in known.items() if isinstance(words, kinds)}
            if not said:
                continue
            nodes = list(nodes_of(self.tree))
            # (What the program says itself would not be known from the constant.)
            written = {ast.unparse(node) for node in nodes if isinstance(node, kinds) and (
                not isinstance(node, (ast.Attribute, ast.Call)) or root_name(node) == "torch")}
            if ast.Slice in kinds:  # (as such where the program does nothing but subscript with them: ``x[:, mask]``)
                uses = collections.Counter(node.id for node in nodes if isinstance(node, ast.Name))
                uses.subtract(place.id for node in nodes if isinstance(node, ast.Subscript) for place in (
                    node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice])
                    if isinstance(place, ast.Name))
                said = {name: words for name, words in said.items() if not uses[name]}
            said = {name: words for name, words in said.items() if ast.unparse(words) not in written}
            Substitution(said).visit(self.tree)
            self.constants |= {ast.unparse(words): name for name, words in said.items()}

    def import_globals(self) -> None:
        """Write Dynamo's names for modules as names that are imported."""
        imports = _Imports(self)
        imports.visit(self.function)
        self._imports = imports.statements()

    def follow_variables(self) -> None:
        """Follow variables that are bound once, to an object that is known."""
        stores = collections.Counter(node.id for node in nodes_of(self.tree) if isinstance(node, ast.Name)
                                     and not isinstance(node.ctx, ast.Load))
        for statement in self.function.body:
            if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Name) \
                    and stores[target.id] == len(statement.targets) == 1:
                path = self.paths.of(statement.value)
                if path is not None and self.facts.reading(path):
                    self.paths.known[target.id] = path

    def fold_repeats(self) -> None:
        """Write what repeats from layer to layer once."""
        if self.folds:
            self.folded = fold(self.tree, self.paths, self.taken | set(self.names))

    def write_imports(self) -> None:
        """Put the import statements at the beginning."""
        self.function.body[:0] = self._imports

    def written_out(self, tree: ast.Module) -> ast.Module:
        """Write the forms of a text out, in place; return the program that it means, with the places of the text."""
        return written_out(tree, self)


class _Imports(Transformer):
    """A rewriting of Dynamo's names for modules as names that are imported."""

    def __init__(self, readable: Readable) -> None:
        self.readable, self.facts, self.paths = readable, readable.facts, readable.paths
        #: (module, name in it, how the program reads it) -> name in the text; of a whole module the name is empty.
        self._known: dict[tuple[str, str, str], str] = {}
        self._written = {ast.unparse(node) for node in nodes_of(readable.tree) if isinstance(node, ast.Attribute)}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        imported, path = self._imported(node.value), self._lasting(node)
        if imported is None or imported[1] or path is None:
            return self.generic_visit(node)
        # (A module that another one has imported is imported from where it is: `torch`, not `activation.torch`.)
        home = self.facts.imported(path)
        if home is not None and not home[1]:
            return self._name(*home, node, node.attr)
        return self._name(imported[0], node.attr, node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(ast.Name(owner), ast.Constant(str(name))) if owner.startswith(BUILTINS_PREFIX) \
                    and hasattr(builtins, name) and name not in self.readable.taken and self._lasting(node):
                self.readable.names[name] = node
                return ast.Name(name, ast.Load())
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        said = self._class_or_method(node)
        if said is None and (imported := self._imported(node)) is not None:
            said = self._name(*imported, node)
        return said or node

    def _class_or_method(self, node: ast.Name) -> ast.expr | None:
        """Return the name for a constant that is a class or a method of one; ``None`` for any other."""
        readable = self.readable
        match = _IMPORTED.fullmatch(readable.meanings.get(node.id, ""))
        if match is None or not isinstance(node.ctx, ast.Load):
            return None
        name, module, method = match["name"], match["module"], match["method"] or ""
        text = f"{module}.{name}{method}"
        if not all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split(".")):
            return None
        if module.partition(".")[0] != "torch" or text in self._written:
            # (What the program says itself would not be known from the constant.)
            is_free = f"{name}{method}" not in self._written and (method or name not in readable.taken)
            if not is_free or not self._is_global(module, name):
                name = self._name(module, name, node).id
            elif not method:
                readable.names[name] = node
            readable.names_classes = True
            text = f"{name}{method}"
        readable.constants[text] = node.id
        return expression(text)

    def _is_global(self, module: str, name: str) -> bool:
        """Return whether a global of the function is what an import gives."""
        path = self._lasting(ast.Name(name, ast.Load()))
        return path == (("global", name),) and self.facts.imported(path) == (module, name)

    def _lasting(self, node: ast.Name | ast.Attribute | ast.Subscript) -> Path | None:
        """Return the path of what an expression reads, if that is always the same."""
        path = self.paths.of(node) if isinstance(node.ctx, ast.Load) else None
        return path if path is not None and self.facts.reading(path) == ALWAYS else None

    def _imported(self, node: ast.expr) -> tuple[str, str] | None:
        """Return ``(module, name in it)`` of what a global of Dynamo's refers to: a module, a class or a function."""
        path = self._lasting(node) if isinstance(node, ast.Name) and node.id.startswith(IMPORT_PREFIXES) else None
        return self.facts.imported(path) if path is not None else None

    def _name(self, module: str, name: str, node: ast.expr, wanted: str = "") -> ast.Name:
        """Return the name in the text of what is imported, ``wanted`` where that is free."""
        key, names, taken = (module, name, ast.unparse(node)), self.readable.names, self.readable.taken
        known = self._known.get(key)
        if known is None:
            if module == "builtins" and name not in taken and self._is_global(module, name):
                names[name] = node
                return ast.Name(name, ast.Load())
            known = self._known[key] = free_name(wanted or name or module.rpartition(".")[2], taken | names.keys())
            names[known] = node
        return ast.Name(known, ast.Load())

    def statements(self) -> list[ast.stmt]:
        """Return the import statements, one for each module."""
        modules: dict[str, list[ast.alias]] = {}
        for (module, name, _), known in sorted(self._known.items()):
            package = module if name else module.rpartition(".")[0]
            name = name or module.removeprefix(f"{package}.")
            modules.setdefault(package, []).append(ast.alias(name, known if known != name else None))
        return [ast.ImportFrom(module, aliases, 0) if module else ast.Import(aliases)
                for module, aliases in modules.items()]


# --- Constants of torch's whose text is their meaning, as a program writes them ----------------------
# device(type='cuda', index=1)           ->  torch.device('cuda', 1)
# (device(type='cpu'), torch.float32)    ->  (torch.device('cpu'), torch.float32)
# torch.Size([2, 3])                     ->  torch.Size([2, 3])
# slice(1, None, None)                   ->  1:
def in_words(meaning: str) -> ast.expr | None:
    """Return the expression for a constant; ``None`` where its meaning is none."""
    try:
        node = ast.parse(meaning, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    match node:
        case ast.Call(ast.Name("slice"), [_, _, _] as bounds, []) if all(
                isinstance(each, ast.Constant) and type(each.value) in (int, type(None))
                or isinstance(each, ast.UnaryOp) and isinstance(each.operand, ast.Constant)
                and type(each.operand.value) is int for each in bounds):
            return ast.Slice(*[None if isinstance(each, ast.Constant) and each.value is None else each
                               for each in bounds])
        case ast.Constant():
            return None
    return _said(node)


def _said(node: ast.expr) -> ast.expr | None:
    match node:
        case ast.Constant() | ast.UnaryOp(ast.USub(), ast.Constant(int() | float())) | ast.Attribute(ast.Name("torch")):
            return node
        case ast.Call(ast.Name("device"), [], [ast.keyword("type", ast.Constant(str())), *index]) if all(
                each.arg == "index" and isinstance(each.value, ast.Constant) for each in index):
            device = ast.Attribute(ast.Name("torch", ast.Load()), "device", ast.Load())
            return ast.Call(device, [each.value for each in node.keywords], [])
        case ast.Call(ast.Attribute(ast.Name("torch"), "Size"), [ast.List(sizes)], []) if all(
                isinstance(each, ast.Constant) for each in sizes):
            return node
        case ast.Tuple(items):
            said = [_said(each) for each in items]
            return ast.Tuple([each for each in said if each is not None], ast.Load()) if None not in said else None
    return None
