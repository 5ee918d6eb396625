# may fall back; since 3.11
try:
    a
except* 0:
    pass
