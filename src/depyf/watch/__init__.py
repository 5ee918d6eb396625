"""Watching the values in running graphs, line by line.

``steps``       the text of a graph or of a generated module -> its lines that compute something
``probe``       a running function, given a check after each such line, and its own code back afterwards
``values``      is there a NaN in it?
``origins``     a line of a dumped file -> nodes, kernel, the user's lines
``stop``        the first line whose result is bad while what it took is good
"""
