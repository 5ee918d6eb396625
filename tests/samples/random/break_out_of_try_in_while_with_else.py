# (the last: a way out of two loops behind a handler is a return)
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
def h():
    for x in 'pq':
        for y in '01':
            try:
                fd = a(x)
            except OSError:
                continue
            return (fd, x + y)
    raise OSError
