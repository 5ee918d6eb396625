"""The forms that the text of Dynamo's code may use, besides plain Python.

==============================  ===========================================================================
``new(cls, a=x, b=y)``          ``cls.__new__(cls)``, with these entries in its ``__dict__``: an object that the
                                traced function made, made again without calling its class
``new(cls, {'k': x}, a=y)``     the same for a class that is a dictionary itself, which holds these items; with a
                                list for one that is a list. (``new_1`` where the program has the name ``new`` itself)
``vars(x)['a'] = y``            an entry in the ``__dict__`` of an object, whatever its class says to attributes
``module.buffer = y``           ``module._buffers.update({'buffer': y})``, where the class of the module does just that
==============================  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...bytecode import operations as o
from ...bytecode.operations import Op
from ..names import free_name
from .facts import Facts

#: Makes an object again.
NEW = "new"
#: The entries of an object.
ENTRIES = "vars"
#: Goes over lists side by side, where what repeats is written once.
SIDE_BY_SIDE = "zip"
#: Stands for ``for k, v in entries.items(): cls.__setitem__(made, k, v)`` while code is simplified.
UPDATE = "<update>"

_OF_VARIABLES = frozenset({
    o.LOAD_FAST, o.STORE_FAST, o.LOAD_DEREF, o.STORE_DEREF, o.LOAD_CLOSURE, o.LOAD_GLOBAL, o.STORE_GLOBAL, o.LOAD_NAME})


def word_for_new(ops: Iterable[Op], rename: Mapping[str, str], facts: Facts | None) -> str:
    """Return the word for :data:`NEW` in the text of a program: another one where a variable of it has that name."""
    taken = {rename.get(op.arg, op.arg) for op in ops if op.kind in _OF_VARIABLES}
    return free_name(NEW, taken | {NEW} if facts is not None and facts.reading((("global", NEW),)) else taken)
