[0 for a in c]
raise
{(c for d in e) for c in f}
