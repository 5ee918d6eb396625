# since 3.12
class A[*B]:
    global c

    def f[c, d: c]():
        pass
class A:
    global c

    def f[d: c]():
        pass
