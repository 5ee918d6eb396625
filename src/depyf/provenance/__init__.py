"""User line, node of a graph, kernel: what became of what, of records alone."""
