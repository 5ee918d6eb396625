while (a or b,):
    if g:
        break
    d
else:
    e
while (0 if x else 0) <= f(a or b, c and (d if e else g)):
    pass
