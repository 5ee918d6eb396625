"""The type of a rule: a function that does one operation on the symbolic stack."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .executor import SymbolicExecutor
    from .stack import State

#: Does one operation: the executor, the stack, and the operation's argument. It returns the expression that is to be
#: pushed; ``None`` where there is none, or where what it pushed itself is no expression.
Rule = Callable[["SymbolicExecutor", "State", Any], "ast.expr | None"]
