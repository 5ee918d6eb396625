"""The files of a dump, a module for each kind.

    __compiled_fn_1.Captured_Graph.0.py    directory.py: its head and the view of the graph (graph_view, graph_writes),
                                           as a function in the full code
    __compiled_fn_1.kernel_0.outline.txt   outline.py; of graphs with modules too
    full_code_for_f_0.py                   full_code.py: one compiled function, top-down
    guards_0_for_f.py                      guards/: conditions in the user's words

``files`` writes all that is made of records, ``directory`` has what running code names, in a ``folder``.
"""
