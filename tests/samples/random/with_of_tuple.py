with a, (b, c):
    pass
with (a, b) as c:
    pass
with ():
    pass
