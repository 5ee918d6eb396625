"""Undo what the compiler does to structured code: a file for each thing that it does.

In comes the control-flow graph of a body (:class:`~depyf.decompiler.structure.analysis.RegionCfg`), which each pass
changes in place; out comes one that can be read as nested statements. The compiler writes the clean-up of
``try: f()``, ``finally: g()`` once for each exit; :mod:`.cleanup_copies` leaves one of them::

    B0 [f()] jump B1, handler B2                   B0 [f()] jump B1, handler B2
    B1 [g()] return                         ->     B1 [LEAVE finally] return
    B2 [g()] reraise, handler B3                   B2 [g()] reraise
    B3 [COPY; POP_EXCEPT] reraise

The order of the passes is in :mod:`depyf.decompiler.passes`. Every file begins with an example of its own.
"""
