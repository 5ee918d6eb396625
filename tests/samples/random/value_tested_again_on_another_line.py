a = lambda b: (b.c()
               and (d(b) and not e)
               or f)


def g(x, y):
    return ((x == 1 or (x == 2 and y == 3)) and
            x in y)
