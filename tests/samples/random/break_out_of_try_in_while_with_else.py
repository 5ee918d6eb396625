def f(output):
    while a:
        try:
            b
            break
        except c:
            pass
        finally:
            d
    else:
        raise
    e
def g():
    while a:
        try:
            b
            break
        except c:
            return 1
        finally:
            d
    else:
        k
    e
while a:
    try:
        b
        break
    except c:
        pass
    finally:
        pass
else:
    raise
e
