"""Control-flow graphs: basic blocks, edges, exception regions, dominators, loops, stack depths.

A :class:`~depyf.cfg.graph.Cfg` is built of a program's canonical operations and edited in place::

    def f(x):             B0 [LOAD_FAST x] branch B1, B2
        if x:       ->    B1 [LOAD_GLOBAL g; CALL; POP] jump B2
            g()           B2 [CONST None] return
"""
