# may fall back (3.12)
[0 for a in b] or (0 if c else 0)
d
