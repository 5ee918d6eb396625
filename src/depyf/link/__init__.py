"""Running code tied to dumped files: in come functions that run and the text that shows them, out comes their code.

    Dynamo's code for f    ->  the code of __transformed_code_0_for_f.py, compiled and proven: a breakpoint there stops
    a graph's forward      ->  its own instructions, with the lines of __compiled_fn_1.Forward_graph.0.py

``identical``    are two code objects the same program, byte for byte?
``functions``    graphs and generated modules: the function keeps its instructions, the lines are the dump's, which
                 tracebacks show even when the file is gone
``graph_code``   are two functions the same graph, whatever its values are called?
``releases``     what lets go of a graph's values, which its file leaves out
``transformed``  Dynamo's code: the proven source runs in its place, or its own line table points there
``lifetimes``    what the text no longer uses is freed where it runs
``patches``      instructions that source has no word for, torch's marks for its profiler
``linker``       what capture calls; never raises
``sessions``     which ``prepare_debug`` is on, which was last; linked code runs while ``debug()`` is on
``tracers``      functions that watch the program
"""
