"""Reads through the dictionaries of a module -> attributes of the module, where they give the same.

::

    self._modules['layers']._modules['0']._parameters['weight']
    self.layers[0].weight
    self.blocks['conv-1'].weight            of a ``ModuleDict``
    getattr(self, '0').weight               where a submodule's name is no name in source
"""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ..facts import ALWAYS, GETATTR, MODULES, Path
from ..global_names import MODULE_DICTIONARIES
from .values import Const, SsaValue, Value

if TYPE_CHECKING:
    from .evaluate import PartialEvaluator


def entry(evaluator: PartialEvaluator, op: Op, owner: Value, path: Path) -> bool:
    """Replace ``x.__dict__`` and ``'name'``, both on the stack, by ``x.name``; return whether that gives the same."""
    key = path[-1][1]
    if len(path) < 3 or path[-2] != ("attr", "__dict__") or type(key) is not str or not isinstance(owner, SsaValue):
        return False
    if not key.isidentifier() or not evaluator.owner.facts.reading((*path[:-2], ("attr", key))):
        return False
    evaluator.pop(2)
    read = Op(o.LOAD_ATTR, key, op.offset, op.line, -1, op.handler)
    return evaluator.reads(read, [owner.operands[0]], (*path[:-2], ("attr", key)))


def member(evaluator: PartialEvaluator, op: Op, owner: Value, path: Path) -> bool:
    """Replace a dictionary of a module and a key, both on the stack, by the attribute or element of that module.

    Args:
        op: ``GETITEM``.
        owner: the dictionary.
        path: of the item.

    Returns:
        Whether that could be done.
    """
    if not (isinstance(owner, SsaValue) and owner.op is not None and owner.op.kind is o.LOAD_ATTR
            and owner.op.arg in MODULE_DICTIONARIES):
        return False
    facts, key = evaluator.owner.facts, path[-1][1]
    (module,) = owner.operands
    if facts.reading(path) != MODULES or type(key) is not str:
        return False
    place = op.offset, op.line, -1, op.handler
    element = int(key) if key.isdecimal() and str(int(key)) == key else key
    if type(element) is int and facts.element(path[:-2], element) == path:
        read, operands = Op(o.GETITEM, None, *place), [module, Const(element)]
    elif key.isidentifier() and not keyword.iskeyword(key):
        if not facts.unshadowed(path):
            return False
        read, operands = Op(o.LOAD_ATTR, key, *place), [module]
    elif facts.element(path[:-2], key) == path:
        read, operands = Op(o.GETITEM, None, *place), [module, Const(key)]
    elif facts.unshadowed(path) and facts.well_known((("global", "getattr"),)) == GETATTR:
        function = evaluator.define(Op(o.LOAD_GLOBAL, "getattr", *place), (), unobservable=True)
        function.lasting, function.optional = ALWAYS, True
        read, operands = Op(o.CALL, (2, ()), *place), [function, module, Const(key)]
    else:
        return False
    evaluator.pop(2)
    return evaluator.reads(read, operands, path)
