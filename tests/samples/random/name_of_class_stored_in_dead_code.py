def f(a):
    class C:
        a
        try:
            pass
        except 0 as a:
            pass
