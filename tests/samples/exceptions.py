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


def empty_named(a):
    for i in a:
        try:
            i()
        except ValueError as e:
            pass
        except KeyError as e:
            continue
        except TypeError as e:
            if e:
                a = 1
    return a


def with_that_tests_first(a, b):
    with a:
        if a.raw is None or b:
            return
    try:
        a.flush()
    finally:
        with b:
            a.close()


def handler_that_only_breaks(a, f):
    with a:
        while True:
            try:
                try:
                    x = next(a)
                except StopIteration:
                    break
            except OSError as e:
                f(e)
                y = True
                break
            f(x)
    return y


def break_behind_finally(a, b):
    if a:
        while True:
            c = a()
            try:
                if c.error:
                    if b:
                        raise ValueError
                    continue
                d = a(c)
            finally:
                c.close()
            d.name = c
            break
    else:
        d = b
    return d


def returns_under_finally(self, fut):
    data = None
    try:
        if self.lost:
            return
        if fut is not None:
            if self.closing:
                data = None
                return
            data = fut
        if self.lost:
            return
        self.fut = data
    except OSError as exc:
        self.error(exc)
    except KeyError:
        if not self.closing:
            raise
    else:
        if self.fut is not None:
            self.fut()
    finally:
        if data:
            self.received(data)


def breaks_under_finally(self, b):
    while True:
        if self.lock():
            try:
                if self.code is not None:
                    break
                pid = self.wait()
                if pid == b:
                    self.handle(pid)
                    break
            finally:
                self.release()
        b = self.remaining(b)
    return self.code


def else_after_branch(name, done, names):
    for n in names:
        try:
            if n in name:
                raise ValueError
            n = int(n)
        except ValueError:
            done[n] = n.strip()
        else:
            done[n] = n
        names.remove(n)


def return_in_finally(self, t):
    try:
        self.a()
    finally:
        if t:
            if self.b:
                try:
                    self.c()
                except ValueError:
                    pass
            self.b = 0
            return
        self.wait()


async def raise_in_finally(self):
    try:
        await self.x
    except ValueError:
        try:
            self.a()
        finally:
            raise
    finally:
        self.x = None


def finally_that_may_return(self, ov):
    try:
        try:
            if ov:
                self.w()
        except:
            self.c()
            raise
        finally:
            n, err = self.g()
            if err == 0:
                f = self.x()
                f.write(n)
                return f
            elif err == 1:
                return self.more(ov)
    except OSError as e:
        raise
    raise KeyError


def raise_again(f, e):
    try:
        raise
    except SystemExit:
        raise
    except:
        print(e)
        f(e)


def loop_inside_with_that_tests_none(self):
    with self.guard:
        for w in self.data:
            if w() is not None:
                self.use(w)
    return self


def loops_inside_with(self, s):
    with self.lock:
        for line in s.splitlines():
            while line:
                line = self.write(line)
    return len(s)


def loop_inside_with_with_a_last_test(self, items):
    with self.lock:
        for item in items:
            self.use(item)
            if item.last:
                self.end(item)
    return self


def finally_that_ends_in_a_loop(self):
    try:
        self.a()
    finally:
        while self.v > 0:
            if not self.wake():
                break
    return True


def finally_that_is_a_loop(stack, f):
    try:
        while stack:
            f(stack)
    finally:
        while stack:
            action, value = stack.pop()
            if action == 2:
                f(value)
