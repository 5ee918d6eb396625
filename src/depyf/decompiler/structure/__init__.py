"""A reduced control-flow graph becomes nested statements.

``write_statements`` walks the graph that the passes of :mod:`depyf.decompiler.undo` leave::

    B0 [x] branch B1, B2;  B1 [a()] jump B3;  B2 [b()] jump B3;  B3 return     ->     if x: a() else: b()

``fold_expressions`` and ``comprehensions`` fold the control flow of expressions before it.
``loop_exits`` and ``branches`` rank what the graph allows, ``search`` tries it.
"""
