for a in b:
    c
    break
else:
    d
e
