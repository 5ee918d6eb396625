"""The facts at a graph break that the rows of :mod:`.breaks` require, and name in sentences (:class:`Facts`).

They are read from the records (what torch met and knew of the variables, the stack), and from the statement there.
"""

from __future__ import annotations

import ast
import functools

from ..torch_text.libraries import is_of_dynamo
from ..torch_text.met import is_drawn, met
from .branches import Values, unparsed
from .source import Loop, Site, called, function_at, loops_around, own_parts, variables

_NOTHING = ast.Pass(lineno=0, end_lineno=0, col_offset=0, end_col_offset=0)


class Facts:
    """The facts at one break."""

    def __init__(self, site: Site) -> None:
        self.site, self.broken, self.function, self.where = site, site.broken, site.function, site.where
        self.statement: ast.stmt = site.statement or _NOTHING
        self.met = met(site.broken)
        self.values = Values(site.broken.values)

    # --- places -----------------------------------------------------------------------------------------
    @property
    def is_of_compiled(self) -> bool:
        """Whether the line is in the function that torch compiled, as far as is known."""
        inside = self.broken.stack[-self.broken.depth :] if self.broken.depth else ()
        first = next((place for place in inside if not is_of_dynamo(place.filename)), self.where)
        return self.where is not None and first is not None and self.where.filename == first.filename and (
            function_at(self.site.module or ast.Module([], []), first.line) is self.function)

    @property
    def is_in_program(self) -> bool:
        """Whether the break is in a line of the program, or of what it calls, which torch compiled.

        Of a library's function that torch compiles by itself, the line is in the caller, which runs in plain Python.
        """
        stack, depth = self.broken.stack, self.broken.depth
        callers = stack[:len(stack) - depth] if depth > 0 else ()
        return self.where is not None and not any(place is self.where for place in callers)

    @functools.cached_property
    def loops(self) -> list[Loop]:
        """The loops that repeat the line, the outermost first."""
        return loops_around(self.function, self.where.line) if self.function and self.where else []

    @property
    def loop(self) -> str:
        """The line of the innermost of them; ``""`` for none."""
        return str(self.loops[-1].lineno) if self.loops else ""

    @property
    def ends_turn(self) -> bool:
        """Whether the statement may end a loop, or a turn of it; also the test of a ``while``."""
        sides = [self.statement.body, self.statement.orelse] if isinstance(self.statement, ast.If) else []
        return bool(self.loops) and (isinstance(self.statement, ast.While) or any(
            isinstance(side[-1], (ast.Break, ast.Continue, ast.Return)) for side in sides if side))

    # --- calls and values -------------------------------------------------------------------------------
    def calls(self, name: str) -> list[ast.Call]:
        """Return the calls of a function or method of this name in the statement."""
        return [each for each in own_parts(self.statement) if isinstance(each, ast.Call) and called(each) == name]

    @property
    def call(self) -> str:
        """The call in the user's statement that torch names, or that leads to the break; ``""``: it is not known."""
        stack = self.broken.stack
        inner = [each.function for before, each in zip(stack, stack[1:]) if before is self.where]
        found = [each for name in (self.met.last, *inner[-1:]) if name for each in self.calls(name)]
        if not found and self.met.module.startswith("_"):  # (`bisect.bisect`, which is `_bisect.bisect_right`)
            found = [each for each in own_parts(self.statement) if isinstance(each, ast.Call) and isinstance(
                each.func, ast.Attribute) and ast.unparse(each.func.value) == self.met.module[1:]]
            found *= len(found) == 1
        return unparsed(found[0], self.site.text) if found else ""

    @property
    def needs_drawn(self) -> bool:
        """Whether torch met a random number: of Python's, a tensor to it, or of NumPy's, a number at once."""
        drawn = {each.name for each in self.broken.values if is_drawn(each)}
        return self.met.is_number or any(
            isinstance(each, ast.Name) and each.id in drawn or (
                self.met.name == "_local_scalar_dense" or self.met.tested) and isinstance(
                    each, ast.Call) and ast.unparse(each.func).startswith(("np.random.", "numpy.random."))
            for each in own_parts(self.statement))

    @property
    def is_number(self) -> bool:
        """Whether torch needs a number out of a tensor."""
        return self.met.name == "_local_scalar_dense" or self.met.kind == "item" or not self.broken.registry_id

    def computes(self, statement: ast.AST, known: bool = False) -> bool:
        """Return whether a statement computes with variables that may be tensors, or are known to be (``known``)."""
        operations = [node for node in ast.walk(statement) if isinstance(node, (ast.BinOp, ast.Call, ast.AugAssign))]
        names = {each.id for node in operations for each in ast.walk(node) if isinstance(each, ast.Name)}
        names.intersection_update(variables(self.function) if self.function is not None else ())
        return any(self.values.is_tensor(name) if known else not self.values.is_number(name) for name in names)
