def f(a, b, c, d):
    while 3 > (b and a.c or a):
        a.x(b)
    while a + (3 < b < (c and d)):
        a.x(b)
    while a < b < (c or d):
        a.x(b)
    while a < (c or d) < b:
        a.x(b)
