[0 for a in b if c]
global c
c
