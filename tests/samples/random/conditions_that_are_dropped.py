if a:
    b
    0 if c else 0
else:
    d and e
import f as g
