0[{0: 0 for a in b}]: {0 for c in d}
(e): [0 for f in g]
h
