try:
    while {0 for a in b}:
        pass
except:
    pass
finally:
    c
