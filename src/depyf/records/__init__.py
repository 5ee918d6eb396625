"""Records of a run: plain, immutable, a line each of ``records.jsonl``, and read back from it.

    GraphStage("Captured_Graph", 0, "class GraphModule ...")             model.py
    {"record":"stage","graph":"__compiled_fn_1","stage":{...}}           store.py: a record as a line, and back
    appended while the program runs, read back by its place              store.py
    "__compiled_fn_1.Captured_Graph.0.py"                                naming.py: files that records name; stages
    {"record":"schema",...}  {"record":"end"}                            run_directory.py: other lines
    dump/rank_0/                                                         run_directory.py: the folder of this run

Nothing here needs torch.
"""
