for a in 1 and [{0}]:
    pass
for a in 1 and {1, 2}:
    pass
a in (1 and [b])
[a for a in b for c in 1 and [d]]
