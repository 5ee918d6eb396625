"""Advice: why a graph breaks or torch compiles again, which fact decides, and a change where the facts prove it.

From a record and the text of the user's file a rule makes :class:`~.model.Advice`. Most of it is a true sentence; a
change to apply is given only where records prove it. What they cannot prove, ``depyf fix`` tries by running the program
(:func:`candidates`); ``tests/advice`` runs programs before and after such changes.

    GB0170 "Data-dependent branching" at          ->  sentence  a graph has no branch on a value that only the data ...
        if x.sum() > 0:                               candidate y = torch.where(x.sum() > 0, x + 1, x - 1)
            y = x + 1
        else:
            y = x - 1

``breaks.py`` is the table of rules for graph breaks, and so for what torch skips, mostly for the same causes;
``facts.py`` has what its rows require and name. ``branches.py`` and ``outlines.py`` (code that is moved) make changes.
``recompiles.py`` has the table for recompiles, and their changes. ``source.py`` finds the user's statement.
"""

from .breaks import RULES, candidates, on_break
from .model import Advice, Edit
from .source import Sources

__all__ = ["RULES", "Advice", "Edit", "Sources", "candidates", "on_break"]
