"""Proofs that a text is the program it was made of, independent of how it was made.

The input is a program of canonical operations and the code object that its text compiles to (:mod:`.recompile`,
also for code of another version); the output is a verdict for each code object (:mod:`.parts`):

* **exact** (:mod:`.exact`): both are the same operations, but for layout. A walk through both at once, which also gives
  the line map. ``not a`` tested one way is ``a`` tested the other way::

      original                    text: ``if a: f()``
      0 LOAD_FAST a               0 LOAD_FAST a
      1 UNARY not                 1 BRANCH False -> 5
      2 BRANCH True -> 6          2 LOAD_GLOBAL f

* **equivalent** (:mod:`.equivalence`): both do the same in the same order, for code whose list juggling was removed.

:func:`.parts.first_mismatch` asks whether one code object may run in place of another. Nothing here knows the passes;
what it shares with them is the reader (``bytecode``) and its table of operations, which are tested by themselves.
"""
