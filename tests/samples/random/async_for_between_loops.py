(x async for a in b for c in a async for x in c if x if not a)
