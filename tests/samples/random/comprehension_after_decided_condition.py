0 if 0 else [x for x in y]
def f():
    0 if 0 else {x for x in y}
def g():
    a = 0 if 0 else {x: z for x in y for z in x}
    x = [x for x in y]
    b, c = [x for x in y], 1
    return a
def h():
    a = (
        [x for x in y])
    return a
