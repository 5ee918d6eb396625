while [0, 0 if [] else 0, {0 for a in b}]:
    pass
while {0 for a in b} if c else {0: 0 for a in d}:
    pass
def f():
    while {0} if a else b:
        c
(a and b) and c and {0: 0 for d in e} and (f := 0)
