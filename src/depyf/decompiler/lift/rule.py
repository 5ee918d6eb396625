"""The type of a rule: a function that does one operation on the symbolic stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .machine import Machine
    from .stack import State

#: Does one operation: the machine, the stack, and the operation's argument.
Rule = Callable[["Machine", "State", Any], None]
