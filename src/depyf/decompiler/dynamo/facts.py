"""Facts about the live objects that code was compiled for.

Dynamo's code reads the same objects at each call, as its guards make sure. So what the objects are when the code is
captured says what reading them does: whether anyone could observe it, and whether an attribute of a module gives what
its dictionaries contain. An object is named by its path: a root and the steps from there::

    self._modules['layers']     (("local", "self"), ("attr", "_modules"), ("item", "layers"))
"""

from __future__ import annotations

import ast
import json
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .global_names import MODULE_DICTIONARIES

#: A root, ``("local", name)`` or ``("global", name)``, and steps, ``("attr", name)`` or ``("item", key)``.
Path = tuple[tuple[str, Any], ...]

#: The kinds of containers whose methods are known.
CONTAINERS = (list, dict, set, OrderedDict)
#: It is taken not to be rebound while the function runs.
ALWAYS = "always"
#: It remains valid until something is called or stored.
MODULES = "modules"
#: It remains valid until something is called or stored, be it an entry of a plain dictionary, or a buffer.
ENTRIES = "entries"
#: It remains valid until anything happens that could run code.
PLAIN = "plain"
#: What ends when something is only read; when an entry of a plain dictionary or object is stored; when anything else
#: happens: each of them ends those before it, too.
EPOCHS = (PLAIN, ENTRIES, MODULES)
#: The last steps of paths of dictionaries that lead from module to module, and to parameters.
STRUCTURE = (("attr", "_modules"), ("attr", "_parameters"))


def is_member(path: Path) -> bool:
    """Return whether a path ends in a dictionary of a module and a key: a submodule, parameter or buffer."""
    return len(path) > 2 and path[-1][0] == "item" and path[-2][0] == "attr" and path[-2][1] in MODULE_DICTIONARIES


def lasting(facts: Facts, path: Path) -> str:
    """Return how long an unobservable read of a path remains valid: as :meth:`Facts.reading`, or :data:`ENTRIES`."""
    kind = facts.reading(path)
    return ENTRIES if kind == MODULES and not all(
        path[at - 1] in STRUCTURE for at, step in enumerate(path) if step[0] == "item") else kind


def ended_by(facts: Facts, name: str) -> str:
    """Return what ends when an entry of that name is stored, in a plain dictionary or in that of an object."""
    return MODULES if name in MODULE_DICTIONARIES or name in facts.structure() else ENTRIES


def as_text(path: Path) -> str:
    """Return the expression for a path, as torch reads it: ``self._modules['layers']``."""
    root: str = path[0][1]
    return root + "".join(f".{key}" if kind == "attr" else f"[{key!r}]" for kind, key in path[1:])


#: Functions and classes whose calls the text and the proof know.
SET_ATTRIBUTE = "dynamo.utils.object_setattr_ignore_descriptor"  # (of torch)
ORDERED_DICT = "collections.OrderedDict"
TYPE = "builtins.type"
OBJECT = "builtins.object"
VARS = "builtins.vars"
#: ``x.size(i)``, not traced.
SIZE = "dynamo.utils.call_size"  # (of torch)
WELL_KNOWN = frozenset({SET_ATTRIBUTE, SIZE, ORDERED_DICT, TYPE, OBJECT, VARS})

_CONTAINERS = {kind.__name__: kind for kind in CONTAINERS}
_STEPS = ("local", "global", "attr", "item", "class")


class Facts:
    """Answers about live objects. When unsure, an answer is no: then the text keeps torch's long form.

    Args:
        text: what :mod:`depyf.capture.fact_snapshot` wrote while the objects lived; nothing else is known. Empty for
            code that is decompiled without the objects that it was compiled for.
            A list of ``[node it is reached from (-1: a variable), kind of step, name or key, answers]``, and a list
            of answers; a number refers to those at that index. Then names of attributes that are stored.

    Raises:
        ValueError: the text is none of that.
    """

    def __init__(self, text: str = "") -> None:
        self._answers: dict[Path, dict[str, Any]] = {}
        self._refused: dict[Path, str] = {}
        paths: list[Path] = []
        try:
            nodes, shared, self._stored = json.loads(text or "[[],[],[]]")
            if not type(nodes) is type(shared) is type(self._stored) is list:
                raise ValueError("three lists are expected")
            for parent, kind, key, answers in nodes:
                if type(answers) is int and 0 <= answers < len(shared):
                    answers = shared[answers]
                if kind not in _STEPS or type(key) not in (str, int, bool) or type(answers) is not dict \
                        or type(parent) is not int or not -1 <= parent < len(paths):
                    raise ValueError("an object that is reached in no way that is known")
                path = ((kind, key),) if parent < 0 else (*paths[parent], (kind, key))
                paths.append(path)
                self._answers[path] = answers
        except (TypeError, RecursionError) as error:
            raise ValueError(str(error)) from error
        self._structure = frozenset([
            *(str(path[-1][1]) for path in paths if len(path) > 1 and path[-2] in STRUCTURE),
            *(str(name) for path in paths for _, _, name in self._rows(path, "element", 3))])

    def _of(self, path: Path, question: str, otherwise: Any) -> Any:
        try:
            answers = self._answers.get(path)
        except TypeError:  # a key that cannot be looked up
            return otherwise
        answer = answers.get(question) if answers is not None else None
        return answer if type(answer) is type(otherwise) else otherwise

    def reading(self, path: Path) -> str:
        """Return how long an unobservable read (of a global, an entry of an instance's dictionary, an item) is valid.

        :data:`ALWAYS` for classes, functions and Python modules; :data:`MODULES` for what the dictionaries of an
        ``nn.Module``, and plain containers, contain; :data:`PLAIN` for other objects; empty where it may be observable.
        """
        return str(self._of(path, "reading", ""))

    def unshadowed(self, path: Path) -> bool:
        """Return whether ``module.name`` is the item of that path, in ``module._modules`` or another dictionary."""
        refused = self._of(path, "refused", "")
        if refused:
            self._refused[path] = refused
        return bool(self._of(path, "unshadowed", False))

    def stores_member(self, path: Path) -> bool:
        """Return whether ``module.name = tensor`` only sets the item of that path, in ``module._buffers``."""
        return bool(self._of(path, "stores_member", False))

    def structure(self) -> frozenset[str]:
        """Return the names of submodules and parameters that are known, in whatever module."""
        return self._structure

    def refusals(self) -> Sequence[tuple[str, str]]:
        """Return the members of modules that were looked up and are shadowed: ``(as torch reads it, why)``."""
        return [(as_text(path), reason) for path, reason in self._refused.items()]

    def element(self, path: Path, key: int | str) -> Path | None:
        """Return the path, through the dictionaries, of what ``modules[key]`` gives.

        ``modules`` is a list or dictionary of modules or parameters, whose class does not change what that means.
        """
        for known, inside, name in self._rows(path, "element", 3):
            if type(known) is type(key) and known == key:
                return (*path, ("attr", inside), ("item", name))
        return None

    def length(self, path: Path) -> int:
        """Return the number of elements of a list of modules, or of a plain list or tuple; 0 of anything else."""
        return int(self._of(path, "length", 0))

    def allocates(self, path: Path, arguments: bool = False) -> str:
        """Return the kind of empty instance that ``cls.__new__(cls)`` makes, if it does nothing else.

        It is ``"object"``, ``"dict"`` or ``"list"``; else an empty string. With ``arguments`` it has to ignore more.
        """
        answers = self._of(path, "allocates", [])
        return str(answers[arguments]) if len(answers) == 2 else ""

    def stores_plainly(self, path: Path, name: str, generic: bool) -> bool:
        """Return whether an attribute of an instance of a class is nothing but an entry of its dictionary.

        If it is ``generic``, ``instance.name = value`` has to do just that, else ``object.__setattr__``.
        """
        answer = self._of(path, "stores", [])
        if name not in self._stored or len(answer) != 2 or generic and answer[0] is not True:
            return False
        return type(answer[1]) is list and name not in answer[1]

    def class_path(self, path: Path) -> Path | None:
        """Return a path that denotes the class of an object, for :meth:`stores_plainly`."""
        return (*path, ("class", "")) if path in self._answers else None

    def well_known(self, path: Path) -> str:
        """Return ``"module.name"`` of the functions and classes that :data:`WELL_KNOWN` names; else an empty string."""
        return str(self._of(path, "well_known", ""))

    def imported(self, path: Path) -> tuple[str, str] | None:
        """Return ``(module, name)`` by which an import is known to give an object, with no name for a module itself."""
        answer = self._of(path, "imported", [])
        return (str(answer[0]), str(answer[1])) if len(answer) == 2 else None

    def ancestor(self, path: Path, index: int) -> str:
        """Return ``"dict"``, ``"OrderedDict"`` or ``"list"`` if ``cls.__mro__[index]`` is that; else ``""``."""
        return next((str(base) for known, base in self._rows(path, "ancestor", 2) if known == index), "")

    def builtin_method(self, path: Path, name: str) -> bool:
        """Return whether an object is a plain list, dict or set, and so ``object.name`` its own bound method."""
        kind = _CONTAINERS.get(self._of(path, "container", ""))
        return kind is not None and callable(getattr(kind, name, None))

    def _rows(self, path: Path, question: str, length: int) -> list[list[Any]]:
        return [row for row in self._of(path, question, []) if type(row) is list and len(row) == length]


# --- expressions of a text -> paths of the live objects that they give ---------------------------------
class LivePaths:
    """A finder of the paths of expressions in one function.

    ``parameters`` are variables for its arguments, and free ones; ``bound``, those that the text binds; ``stores``, the
    attributes that the program stores itself.
    """

    def __init__(
        self, facts: Facts, parameters: Collection[str], real_names: Mapping[str, str], bound: Collection[str],
        stores: Collection[str] = (),
    ) -> None:
        self.facts = facts
        self._stores = stores
        self._real = real_names
        #: Paths of variables, as long as they refer to an object that is known; ``None`` for others.
        self.known: dict[str, Path | None] = {name: (("local", name),) for name in parameters}
        self.known |= dict.fromkeys(bound)

    def of(self, node: ast.expr) -> Path | None:
        """Return the path of what an expression gives, in torch's long form; ``None`` where it is not known."""
        if isinstance(node, ast.Name):
            real = self._real.get(node.id, node.id)
            return self.known[node.id] if node.id in self.known else (("global", real),)
        if isinstance(node, ast.Attribute):
            owner = self.of(node.value)
            if owner is None:
                return None
            return self.member(owner, node.attr) or (*owner, ("attr", node.attr))
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            key = node.slice.value
            owner = self.of(node.value)
            if owner is None or not isinstance(key, (str, int)):
                return None
            return self.facts.element(owner, key) or (*owner, ("item", key))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1 and not node.keywords:
            known = self.of(node.func)
            owner = self.of(node.args[0]) if known is not None and self.facts.well_known(known) == TYPE else None
            return self.facts.class_path(owner) if owner is not None else None
        return None

    def stored_buffer(self, node: ast.expr) -> Path | None:
        """Return the path of the buffer that a store to ``module.name`` replaces; ``None`` if it is any other store."""
        path = None
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr not in self._stores:
            path = self.of(node)
        return path if path is not None and is_member(path) and self.facts.stores_member(path) else None

    def member(self, owner: Path, name: str) -> Path | None:
        """Return the path through a dictionary of a module for an attribute of it; ``None`` if it is no member."""
        for dictionary in MODULE_DICTIONARIES:
            path = (*owner, ("attr", dictionary), ("item", name))
            if self.facts.unshadowed(path):
                return path
        return None


def root_name(node: ast.expr) -> str:
    """Return the variable that a chain of attributes and calls begins with; empty where it begins with none."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def text_of(node: ast.expr) -> str:
    """Return the text that ``ast.unparse`` gives, faster for the paths that most arguments of graphs are."""
    parts: list[str] = []
    inner = node
    while not isinstance(inner, ast.Name):
        if isinstance(inner, ast.Attribute):
            parts.append(f".{inner.attr}")
        elif isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant) \
                and type(inner.slice.value) in (int, str):
            parts.append(f"[{inner.slice.value!r}]")
        else:
            return ast.unparse(node)
        inner = inner.value
    return inner.id + "".join(reversed(parts))
