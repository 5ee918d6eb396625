"""Asynchronous functions, generators and comprehensions, one construct each."""


async def listed(items):
    return [x async for x in items()]


async def nested_loops(items):
    return {x: y async for x in items() async for y in x}


async def with_a_condition(items):
    found = [x async for x in items() if x]
    return found


def generator(items):
    return (x async for x in items())


async def inside_another(items):
    return [[y async for y in x] async for x in items()]


async def returns_from_the_loop(items):
    async for x in items():
        return x


async def in_a_try(items):
    try:
        async for x in items():
            print(x)
    except StopIteration:
        return 1


async def async_with_that_returns(items):
    async with items() as g:
        return await g


async def bare_return_after_a_yield():
    yield 1
    return


async def passes_items_on(items):
    while True:
        try:
            x = await items()
        except StopAsyncIteration:
            return
        yield x


async def pairs_of_sets_and_dicts(items):
    return {x async for x in items()}, {x: 1 async for x in items() if x if not items}


async def await_in_the_element(items):
    return [await x for x in items], [x for x in items if await x]
