"""Links running code to dumped files: of functions that run and the text that shows them, it makes their code.

    Dynamo's code for f    ->  the code of __transformed_code_0_for_f.py, compiled and proven: a breakpoint there stops
    a graph's forward      ->  its own instructions, with the lines of __compiled_fn_1.Forward_graph.0.py

``functions``    graphs and generated modules: the instructions remain, the lines are the dump's, which tracebacks show
                 even when the file is gone; are two code objects the same program, or the same graph?
``transformed``  Dynamo's code: the proven source runs in its place, or its line table points there; instructions that
                 source cannot express
``lifetimes``    deletes after the last uses of variables; the statements that release a graph's values, which its file
                 leaves out
``linker``       what capture calls; never raises
``sessions``     the active ``prepare_debug``, and those that ended; linked code runs inside ``debug()``
"""
