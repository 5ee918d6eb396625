(0 for a in b async for c in d)
