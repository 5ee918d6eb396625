class A:
    {0 for a in b if c if d}
    with 0 as d:
        pass
