{0 for a in b if (lambda: c) if None for c in d}
[{a for b in c} for d in e if 0 for a in f]
{0 for a in b for () in c if () for c in d}


def f():
    return {0: 0 for a in 0 if 0 for b in c if [0 for d in e for g in a]}


class A:
    a = [0 for b in 0 if 0 if {0 for c in d for e in b}]
{0 for a.b in c if None for a in d}
[0 for 0[a] in b if 0 for a in 0]
(c := d)
{0: 0 for 0[a] in 0 if () if [0 for b in c] for a in 0}
