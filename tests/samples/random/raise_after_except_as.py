# may fall back
try:
    a
except 0 as b:
    pass
raise
