def f(us, d):
    for ofs in us:
        s = ofs is not None and d() or ""
        s = (ofs is None and d()) and ""
        s = (ofs is not None or d()) and s
