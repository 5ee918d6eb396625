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
from collections.abc import Iterable, Mapping

from ...bytecode import operations as o
from ...bytecode.operations import Op, Program
from ...bytecode.packed import IMPORTED
from ..nodes import Transformer, free_name, nodes_of
from .alike import Substitution
from .facts import ALWAYS, Facts
from .folding import Folded, fold
from .global_names import BUILTINS_PREFIX, IMPORT_PREFIXES, NEW
from .live_paths import LivePaths, root_name
from .written_out import SET_ENTRY, has_size_calls, written_out

#: A constant that is a slice of numbers.
_SLICE = re.compile(r"slice\((None|-?\d+), (None|-?\d+), (None|-?\d+)\)")
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
    """

    def __init__(
        self, tree: ast.Module, facts: Facts, program: Program, rename: Mapping[str, str],
        constants: Mapping[str, str], folds: bool = True, new: str = NEW,
    ) -> None:
        self.new = new
        self.tree = tree
        self.facts = facts
        self.names: dict[str, ast.expr] = {}
        self.constants: dict[str, str] = {}
        self.folds = folds
        #: Whether classes among the constants go by the names that they had when torch compiled.
        self.names_classes = False
        self._meanings = constants
        #: Whether Dynamo's code has the function that makes entries in an object's dictionary.
        self._sets_entries = any(op.kind is o.LOAD_ATTR and op.arg == SET_ENTRY for op in program.ops)
        self._sizes = has_size_calls(program.code, program.ops)
        self._real = {shown: name for name, shown in rename.items()}
        function = tree.body[0]
        assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        self.function = function
        names = [node for node in nodes_of(tree) if isinstance(node, ast.Name)]
        bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        parameters = (*program.code.arguments, *program.code.freevars)
        stores = {op.arg for op in program.ops if op.kind is o.STORE_ATTR}
        self._taken = {node.id for node in names} | set(parameters)
        self.paths = LivePaths(facts, parameters, self._real, bound, stores)
        self._imports: list[ast.stmt] = []
        self._folded = Folded()

    # --- the passes, in the order in which they run --------------------------------------------------
    def name_constants(self) -> None:
        """Write constants in the words that a program has for them: dtypes, devices, sizes, slices, tuples of them."""
        self._name_slices()
        known = {name: words for name, meaning in self._meanings.items() if (words := in_words(meaning)) is not None}
        # (Tuples last: one that the program builds of such constants is no constant.)
        for of_tuples in (False, True) if known else ():
            said = {name: each for name, each in known.items() if isinstance(each, ast.Tuple) is of_tuples}
            written = {ast.unparse(node) for node in nodes_of(self.tree) if isinstance(node, ast.Tuple)
                       or isinstance(node, (ast.Attribute, ast.Call)) and root_name(node) == "torch"} if said else ()
            # (What the program says itself would not be known from the constant.)
            said = {name: each for name, each in said.items() if ast.unparse(each) not in written}
            Substitution(said).visit(self.tree)
            self.constants |= {ast.unparse(each): name for name, each in said.items()}

    def _name_slices(self) -> None:
        """Write slices as such, where the program does nothing but subscript with them: ``x[:, mask]``."""
        known = {name: literal for name, meaning in self._meanings.items() if (literal := _slice(meaning)) is not None}
        if not known:
            return
        nodes = list(nodes_of(self.tree))
        written = {ast.unparse(node) for node in nodes if isinstance(node, ast.Slice)}
        uses = collections.Counter(node.id for node in nodes if isinstance(node, ast.Name))
        places = [place for node in nodes if isinstance(node, ast.Subscript) for place in _indices(node)]
        subscripting = collections.Counter(place.id for place in places if isinstance(place, ast.Name))
        chosen = {name: literal for name, literal in known.items() if uses[name] == subscripting[name]
                  and ast.unparse(literal) not in written}  # (else it would not be known what is the constant)
        if chosen:
            Substitution(chosen).visit(self.tree)
            self.constants |= {ast.unparse(literal): name for name, literal in chosen.items()}

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
                    self.paths.bind(target.id, path)

    def fold_repeats(self) -> None:
        """Write what repeats from layer to layer once."""
        if self.folds:
            self._folded = fold(self.tree, self.paths, self._taken | set(self.names))

    def write_imports(self) -> None:
        """Put the import statements at the beginning."""
        self.function.body[:0] = self._imports

    # --- names, and the way back ---------------------------------------------------------------------
    def fresh(self, name: str) -> str:
        """Return a free name for a variable of the text, ``name`` if it is free."""
        return free_name(name, self._taken | set(self.names))

    def written_out(self, tree: ast.Module) -> ast.Module:
        """Write the forms of a text out, in place.

        Returns:
            The program that it means, with the places of the text.
        """
        self.paths.meanwhile.clear()
        return written_out(
            tree, self.paths, self.names, self.constants, self._sets_entries, self._sizes, self._folded, self.new)


def _slice(meaning: str) -> ast.Slice | None:
    """Return ``1:`` for ``slice(1, None, None)``; ``None`` for what is no slice of numbers."""
    match = _SLICE.fullmatch(meaning)
    if match is None:
        return None
    return ast.Slice(*[None if part == "None" else ast.parse(part, mode="eval").body for part in match.groups()])


def _indices(node: ast.Subscript) -> list[ast.expr]:
    """Return what something is subscripted with: one expression, or those of a tuple."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


class _Imports(Transformer):
    """A rewriting of Dynamo's names for modules as names that are imported."""

    def __init__(self, readable: Readable) -> None:
        self._readable = readable
        #: (module, name in it, how the program reads it) -> name in the text; of a whole module the name is empty.
        self._known: dict[tuple[str, str, str], str] = {}
        self._written = {ast.unparse(node) for node in nodes_of(readable.tree) if isinstance(node, ast.Attribute)}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        imported = self._imported(node.value)
        if imported is None or imported[1] or not isinstance(node.ctx, ast.Load):
            self.generic_visit(node)
            return node
        assert isinstance(node.value, ast.Name)
        path = (("global", self._readable._real.get(node.value.id, node.value.id)), ("attr", node.attr))
        if self._readable.facts.reading(path) != ALWAYS:
            self.generic_visit(node)
            return node
        # (A module that another one has imported is imported from where it is: `torch`, not `activation.torch`.)
        home = self._readable.facts.imported(path)
        if home is not None and not home[1]:
            return ast.Name(self._name(*home, node, node.attr), ast.Load())
        return ast.Name(self._name(imported[0], node.attr, node), ast.Load())

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id.startswith(BUILTINS_PREFIX) \
                and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            name = node.slice.value
            path = (("global", self._readable._real.get(node.value.id, node.value.id)), ("item", name))
            if self._readable.facts.reading(path) == ALWAYS and hasattr(builtins, name) \
                    and name not in self._readable._taken:
                self._readable.names[name] = node
                return ast.Name(name, ast.Load())
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        said = self._class_or_method(node)
        if said is not None:
            return said
        imported = self._imported(node)
        return node if imported is None else ast.Name(self._name(*imported, node), ast.Load())

    def _class_or_method(self, node: ast.Name) -> ast.expr | None:
        """Return the expression for a constant that is a class or a method of one; ``None`` for any other name.

        Its name is that of torch's, a global of the function, or imported.
        """
        readable = self._readable
        match = _IMPORTED.fullmatch(readable._meanings.get(node.id, ""))
        if match is None or not isinstance(node.ctx, ast.Load):
            return None
        name, module, method = match["name"], match["module"], match["method"] or ""
        text = f"{module}.{name}{method}"
        if not all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split(".")):
            return None
        if module.partition(".")[0] != "torch" or text in self._written:
            # (What the program says itself would not be known from the constant.)
            is_free = f"{name}{method}" not in self._written and (method or name not in readable._taken)
            if not is_free or not self._is_global(module, name):
                name = self._name(module, name, node)
            elif not method:
                readable.names[name] = node
            readable.names_classes = True
            text = f"{name}{method}"
        readable.constants[text] = node.id
        return ast.parse(text, mode="eval").body

    def _is_global(self, module: str, name: str) -> bool:
        """Return whether a global of the function is what an import gives."""
        readable, path = self._readable, (("global", name),)
        return (readable.paths.of(ast.Name(name, ast.Load())) == path and readable.facts.reading(path) == ALWAYS
                and readable.facts.imported(path) == (module, name))

    def _imported(self, node: ast.expr) -> tuple[str, str] | None:
        """Return ``(module, name in it)`` of what a global of Dynamo's refers to: a module, a class or a function."""
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) \
                or not node.id.startswith(IMPORT_PREFIXES):
            return None
        path = (("global", self._readable._real.get(node.id, node.id)),)
        return self._readable.facts.imported(path) if self._readable.facts.reading(path) == ALWAYS else None

    def _name(self, module: str, name: str, node: ast.expr, wanted: str = "") -> str:
        """Return the name in the text of what is imported, ``wanted`` where that is free."""
        key = module, name, ast.unparse(node)
        known = self._known.get(key)
        if known is None and module == "builtins" and name not in self._readable._taken \
                and self._is_global(module, name):
            self._readable.names[name] = node
            return name
        if known is None:
            known = self._known[key] = self._readable.fresh(wanted or name or module.rpartition(".")[2])
            self._readable.names[known] = node
        return known

    def statements(self) -> list[ast.stmt]:
        """Return the import statements, one for each module."""
        modules: dict[str, list[ast.alias]] = {}
        for (module, name, _), known in sorted(self._known.items()):
            if not name:
                package, _, name = module.rpartition(".")
                if not package:
                    modules.setdefault("", []).append(ast.alias(module, known if known != module else None))
                    continue
                module = package
            modules.setdefault(module, []).append(ast.alias(name, known if known != name else None))
        result: list[ast.stmt] = []
        for module, aliases in modules.items():
            result.append(ast.ImportFrom(module, aliases, 0) if module else ast.Import(aliases))
        return result


# --- Constants of torch's whose text is their meaning, as a program writes them ----------------------
# device(type='cuda', index=1)           ->  torch.device('cuda', 1)
# (device(type='cpu'), torch.float32)    ->  (torch.device('cpu'), torch.float32)
# torch.Size([2, 3])                     ->  torch.Size([2, 3])
def in_words(meaning: str) -> ast.expr | None:
    """Return the expression for a constant; ``None`` where its meaning is none."""
    try:
        node = ast.parse(meaning, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    return None if isinstance(node, ast.Constant) else _said(node)


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
