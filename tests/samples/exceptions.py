"""try, except, else, finally, with, raise."""


def try_except(a):
    try:
        return a()
    except ValueError:
        return 1
    except (KeyError, TypeError) as e:
        print(e)
        raise
    except Exception as e:
        raise RuntimeError from e


def bare(a):
    try:
        a()
    except:
        pass


def try_else(a):
    try:
        x = a()
    except ValueError:
        x = 1
    else:
        x += 1
    return x


def try_finally(a, b):
    try:
        a()
    finally:
        b()
    return a


def return_in_finally_body(a, b):
    for i in a:
        try:
            if i:
                return i
            if i > 2:
                continue
            if b:
                break
            print(i)
        finally:
            b.close()
            if a:
                b()


def full(a):
    try:
        a()
    except ValueError as e:
        print(e)
    else:
        print("else")
    finally:
        print("finally")


def nested(a):
    try:
        try:
            a()
        except KeyError:
            a = 1
        finally:
            try:
                a.close()
            except OSError:
                pass
    except ValueError:
        with a as b:
            return b


def with_(a, b, c):
    with a as x, b:
        print(x)
    with c as (d, e):
        if d:
            return e
    for i in a:
        with i:
            if i:
                continue
            if b:
                break
            print(i)
    return x


def loop_in_try(a):
    while True:
        try:
            x = a()
        except StopIteration:
            break
        except KeyError:
            continue
        print(x)
    try:
        while a:
            if a():
                break
    finally:
        a.close()


def reraise(a):
    try:
        a()
    except BaseException:
        a.close()
        raise
