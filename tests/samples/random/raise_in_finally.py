# may fall back
try:
    pass
except:
    pass
finally:
    raise
