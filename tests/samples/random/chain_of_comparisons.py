class A:
    a < b < (c := d) < e


def f():
    return a < b < c < (d := e)


0 != (a := b) <= 0
c = x < y < z < w
