"""Facts (:class:`~.facts.Facts`) that were written down while the objects lived."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .facts import CONTAINERS, NoFacts, Path, as_text

_CONTAINERS = {kind.__name__: kind for kind in CONTAINERS}
_STEPS = ("local", "global", "attr", "item", "class")


class RecordedFacts(NoFacts):
    """Answers as :mod:`depyf.capture.fact_snapshot` writes them; what does not stand there is not known.

    Args:
        text: a list of ``[node it is reached from (-1: a variable), kind of step, name or key, answers]``, and a list
            of answers; a number stands for those at that place. Then names of attributes that are stored.

    Raises:
        ValueError: the text is none of that.
    """

    def __init__(self, text: str) -> None:
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

    def _of(self, path: Path, question: str, otherwise: Any) -> Any:
        try:
            answers = self._answers.get(path)
        except TypeError:  # a key that cannot be looked up
            return otherwise
        answer = answers.get(question) if answers is not None else None
        return answer if type(answer) is type(otherwise) else otherwise

    def reading(self, path: Path) -> str:
        """Return how long an unobservable read stays true."""
        return str(self._of(path, "reading", ""))

    def unshadowed(self, path: Path) -> bool:
        """Return whether ``module.name`` is what ``module._modules['name']``, or its like, holds."""
        refused = self._of(path, "refused", "")
        if refused:
            self._refused[path] = refused
        return bool(self._of(path, "unshadowed", False))

    def stores_member(self, path: Path) -> bool:
        """Return whether ``module.name = tensor`` does what ``module._buffers.update(...)`` does."""
        return bool(self._of(path, "stores_member", False))

    def refusals(self) -> Sequence[tuple[str, str]]:
        """Return the members that :meth:`unshadowed` refused: ``(as torch reads it, why)``."""
        return [(as_text(path), reason) for path, reason in self._refused.items()]

    def indexable(self, path: Path) -> bool:
        """Return whether iterating over ``modules`` gives ``modules[0]``, ``modules[1]``, ..."""
        return bool(self._of(path, "indexable", False))

    def element(self, path: Path, key: int | str) -> Path | None:
        """Return the path, through the dictionaries, of what ``modules[key]`` gives."""
        for known, inside, name in self._rows(path, "element", 3):
            if type(known) is type(key) and known == key:
                return (*path, ("attr", inside), ("item", name))
        return None

    def length(self, path: Path) -> int:
        """Return the number of elements of a list of modules, or of a plain list or tuple; 0 of anything else."""
        return int(self._of(path, "length", 0))

    def allocates(self, path: Path, arguments: bool = False) -> str:
        """Return the kind of empty instance that ``cls.__new__(cls)`` makes, if it does nothing else."""
        answers = self._of(path, "allocates", [])
        return str(answers[arguments]) if len(answers) == 2 else ""

    def stores_plainly(self, path: Path, name: str, generic: bool) -> bool:
        """Return whether an attribute of an instance is nothing but an entry of its dictionary."""
        answer = self._of(path, "stores", [])
        if name not in self._stored or len(answer) != 2 or generic and answer[0] is not True:
            return False
        return type(answer[1]) is list and name not in answer[1]

    def class_path(self, path: Path) -> Path | None:
        """Return the path of an object's class; ``None`` where the object is not known."""
        return (*path, ("class", "")) if path in self._answers else None

    def well_known(self, path: Path) -> str:
        """Return ``"module.name"`` of a function or class that is well known; else ``""``."""
        return str(self._of(path, "well_known", ""))

    def imported(self, path: Path) -> tuple[str, str] | None:
        """Return ``(module, name)`` by which an import gives an object; ``None`` where none is known to."""
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
