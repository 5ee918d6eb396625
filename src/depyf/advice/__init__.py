"""Advice: what to change so that a graph break, a skipped function or a recompile is gone.

From a record and the text of the user's file a rule makes :class:`~.model.Advice`. Rules on breaks and edits are tested
by effect: ``tests/advice`` runs a program before and after the change that is proposed.

    GB0170 "Data-dependent branching" at          ->  change    write `y = torch.where(x.sum() > 0, x + 1, x - 1)`
        if x.sum() > 0:                               why       a graph can hold both sides, but no branch on a value
            y = x + 1                                 cost      both sides are computed at each call
        else:                                         edits     lines 3 to 6 of the file -> one line
            y = x - 1

``breaks.py`` is the table of rules for graph breaks, and so for what torch skips, mostly for the same causes;
``facts.py`` has what its rows require and name, ``edits.py`` and ``outlines.py`` its edits. ``recompiles.py`` is the
table for recompiles, ``recompile_edits.py`` has their edits.
``source.py`` finds the user's statement; nothing here imports torch.
"""

from .breaks import RULES, candidates, on_break
from .model import Advice, Edit
from .source import Sources

__all__ = ["RULES", "Advice", "Edit", "Sources", "candidates", "on_break"]
