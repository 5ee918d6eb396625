"""The symbolic stack: canonical operations become ``ast`` expressions and statements.

A :class:`SymbolicExecutor` runs the operations of one block after the other on a :class:`State`: a stack of
syntax nodes and the statements written so far.

The executor expects code as CPython compiles it: a value stays on the stack across a statement only in
the few forms the compiler has (chained assignment, tuple swap).  Anything else raises
:class:`CannotDecompile`, and the caller tries another form.

``executor`` holds what all operations share, ``stack`` what may lie on it, ``copies`` how copies of one value are told;
each of the other modules has a table ``RULES`` of the operations of one part of the language.
"""

from .copies import same_node
from .definitions import definition
from .executor import SymbolicExecutor
from .negation import folds_not, negate
from .scope import Scope
from .stack import (
    COMPREHENSIONS,
    LOAD,
    STORE,
    Accumulator,
    Capture,
    CaseTest,
    Caught,
    ClassExpr,
    Duplicate,
    Element,
    Entry,
    Exit,
    FunctionExpr,
    Iter,
    PendingTarget,
    Special,
    StackParameter,
    State,
    Target,
    is_value,
    values,
)

__all__ = [
    "COMPREHENSIONS", "LOAD", "STORE", "Accumulator", "Capture", "CaseTest", "Caught", "ClassExpr", "Duplicate",
    "Element", "Entry", "Exit", "FunctionExpr", "Iter", "PendingTarget", "Scope", "Special", "StackParameter", "State",
    "SymbolicExecutor", "Target", "definition", "folds_not", "is_value", "negate", "same_node", "values",
]
