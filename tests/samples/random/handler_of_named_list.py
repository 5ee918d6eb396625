try:
    a
except (b := []):
    pass
