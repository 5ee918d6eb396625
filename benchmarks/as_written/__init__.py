"""How far the tree of decompiled text is the author's: what ``benchmarks/natural.py`` measures with.

A source file and its decompiled text each give a list of functions (:mod:`.functions`), paired by the code object that
they are. Each pair is normalised for what bytecode does not hold (:mod:`.normalise`) and compared; where the trees
differ, :mod:`.classes` names the first difference. :mod:`.stripped` takes positions out of code objects::

    if not x is None:                      if x is not None:
        return 2 * 3           ->              return 6
                                      (as written if that is what the decompiler says)
"""
