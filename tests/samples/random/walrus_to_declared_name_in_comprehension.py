def f(s):
    global G
    a = any((G := e) for e in s if [[H := z for z in e] for e in s])
    [G := e for e in s]
    return G, H


def g(s):
    n = 0

    def h():
        nonlocal n
        [n := e for e in s]
        a = any(n := e for e in s)
    return h, n
