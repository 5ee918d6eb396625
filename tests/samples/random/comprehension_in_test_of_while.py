# since 3.12 inline: the test stands twice, and so does the loop in it
while {0: 0 for a in b or c}:
    pass
while {a for a in b if a if c} or [d for a in b for d in a]:
    a
else:
    b


def f():
    while [[a for a in b] for b in c if a or b] and d:
        if a:
            continue
        if b:
            break
        return c
    return d
