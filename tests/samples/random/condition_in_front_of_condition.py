(a or b) or c
x = ((a or b) or c) or d
x = ((a and b) and c) or (d or e)
