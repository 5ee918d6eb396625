"""What the block stack of 3.7 and 3.8 does at run time: every way out of every kind of block."""


def finally_falls_through(a, b):
    try:
        a()
    finally:
        b()
    return a


def return_value_through_finally(a, b):
    try:
        return a()
    finally:
        b()


def return_constant_through_finally(a, b):
    try:
        if a:
            return 1
        return None
    finally:
        b()


def return_through_two(a, b, c):
    try:
        try:
            return a()
        finally:
            b()
    finally:
        c()


def all_ways_out(a, b):
    for i in a:
        try:
            if i == 1:
                return i
            if i == 2:
                continue
            if i == 3:
                break
            print(i)
        finally:
            b(i)
    return b


def while_all_ways_out(a, b):
    while a():
        try:
            if b == 2:
                continue
            if b == 3:
                break
            b()
        finally:
            print(b)
    else:
        print(a)


def finally_with_branches(a, b, c):
    try:
        if a:
            return b
    finally:
        if c:
            print(c)
        else:
            print(a)
    return c


def finally_with_loop(a, b):
    try:
        return a
    finally:
        for i in b:
            print(i)


def finally_with_try(a, b, c):
    try:
        return a()
    finally:
        try:
            b()
        except ValueError as e:
            print(e)
        finally:
            c()


def loop_left_from_a_handler(a, b):
    for i in a:
        try:
            b(i)
        except KeyError:
            continue
        except ValueError:
            break
        except IndexError as e:
            print(e)
            continue
        except AttributeError as e:
            print(e)
            break
        print(i)
    return a


def return_from_a_handler(a, b):
    for i in a:
        try:
            b(i)
        except KeyError:
            return i
        except ValueError as e:
            return e
        except TypeError as e:
            return 1
        except OSError:
            return None


def handler_in_finally(a, b, c):
    try:
        try:
            a()
        except ValueError as e:
            if b:
                return e
            print(e)
    finally:
        c()


def with_all_ways_out(a, b):
    for i in a:
        with b as c:
            if i == 1:
                return c
            if i == 2:
                continue
            if i == 3:
                break
            print(c)
    return b


def with_in_with(a, b):
    with a as x, b as y:
        return x + y


def with_in_finally(a, b):
    try:
        return b()
    finally:
        with a as x:
            x()


def finally_in_with(a, b):
    for i in a:
        with a:
            try:
                if i:
                    break
                return i
            finally:
                b()


def break_in_inner_loop(a, b):
    for i in a:
        try:
            for j in i:
                if j:
                    break
                if b:
                    return j
        finally:
            print(i)


def reraises(a):
    try:
        a()
    except ValueError:
        raise
    except KeyError as e:
        raise TypeError from e


async def async_loop(a, b):
    async for x in a:
        if x:
            continue
        if b:
            break
        print(x)
    else:
        print(b)


async def async_loop_left(a, b):
    async for x, y in a:
        try:
            if x:
                return y
        finally:
            await b()
    return [z async for z in a if z]


async def async_loop_in_blocks(a, b):
    for i in a:
        async with b:
            async for x in i:
                print(x)
            try:
                async for x in i:
                    print(x)
            finally:
                await b()


async def async_with_left(a, b):
    for i in a:
        async with b as c:
            if c:
                return i
            await c
            if i:
                break


def generator(a):
    try:
        for i in a:
            yield i
        yield from a
    finally:
        a.close()


def asserts(a, b):
    assert a
    assert a and b, "message"
    assert not b, (a, b)
    for i in a:
        assert i, i
    else:
        raise AssertionError("not an assert")


class Body:
    try:
        import fast as engine
    except ImportError as error:
        engine = None
    finally:
        done = True
    assert done


for name in ("a", "b"):
    try:
        print(name)
    except OSError as error:
        print(error)
        continue
    finally:
        print("left")
