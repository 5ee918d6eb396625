"""Values in running graphs, line by line: ``with depyf.debug(stop_on="nan")``.

    __compiled_fn_1.Forward_graph.0.py:12:  log: "f32[4]" = torch.ops.aten.log.default(sub)
    log: float32[4], 1 of 4 elements, the first at [2]

``probe``       the lines of a graph or of a generated module that compute something; checks after each of them in a
                running function
``origins``     a line of a dumped file -> nodes, kernel, the user's lines
``stop``        the first line whose result is bad while what it took is good
"""
