(0 for a in [] if [0 for b in b] if ())
(0 for a in 0 if [0 for b in c for c in d] for e in 0 if ())
def f(a, b):
    return {0 for c in a for () in {0 for d in b} if () if d}
{0: c for a in b}
raise
[(c for d in e) for c in g]
