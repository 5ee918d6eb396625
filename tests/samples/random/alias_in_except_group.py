# since 3.12; may fall back: a clause of except* without a test
async def f():
    try:
        type A[f] = 0
    except* {0: 0 async for a in b}:
        pass
