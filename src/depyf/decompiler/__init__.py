"""Canonical operations -> Python source, proven.

Stages, in order (each a module of this package):

``simplify``   graph -> graph   list juggling of torch.compile removed (only when asked for)
``lift``       graph -> lifted graph   stack values become expressions and statements
``structure``  lifted graph -> nested statements   loops, conditions, exceptions, with, match
``scopes``     statements -> a ``def`` / ``class`` / module, nested code objects included
``emit``       syntax tree -> text
``verify``     the text, compiled again, is the same program (``exact``) or an equivalent one
``dispatch``   what is left: a graph as a loop over block numbers, right by construction
"""

from .pipeline import Decompiled, Fidelity, decompile_code

__all__ = ["Decompiled", "Fidelity", "decompile_code"]
