for a in b:
    if a:
        break
else:
    c
d
