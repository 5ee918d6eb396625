"""``finally`` that is left before its end; 3.8 keeps a place on the stack for it."""


def finally_may_return(a, b):
    try:
        a()
    finally:
        if b:
            return b


def finally_breaks(a, b):
    for i in a:
        try:
            b(i)
        finally:
            break
    return b


def finally_may_break(a, b):
    while a:
        try:
            return 1
        finally:
            if b:
                break
            if b is None:
                return 2
