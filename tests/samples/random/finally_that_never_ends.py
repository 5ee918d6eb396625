def f(a, b):
    try:
        a
    except:
        pass
    else:
        b
    finally:
        raise 0
def g(a, b):
    try:
        a
    except:
        pass
    else:
        b
    finally:
        with a:
            raise
    b
def h(a, b):
    for x in a:
        try:
            if x:
                continue
            a()
        except K:
            b()
        except Z as z:
            break
        else:
            c
        finally:
            raise
    return 2
def i(a, b):
    try:
        if a:
            return b
    finally:
        if b:
            return 3
        else:
            raise
def j(a):
    for x in a:
        try:
            for y in x:
                if y:
                    return
                z()
        finally:
            raise
try:
    a
except:
    pass
else:
    b
finally:
    raise
