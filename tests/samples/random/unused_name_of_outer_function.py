def f():
    x = 3
    def g():
        nonlocal x
        raise 0
        x
