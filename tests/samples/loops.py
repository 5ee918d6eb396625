"""Loops: for, while, else, break, continue, nesting."""


def for_loop(a):
    for i, (j, *k) in a:
        print(i, j, k)


def for_else(a):
    for i in a:
        if i:
            break
        if i > 3:
            continue
        print(i)
    else:
        raise ValueError(a)
    return i


def search(a, b):
    for i in a:
        for j in b:
            if i == j:
                break
        else:
            continue
        break
    return i


def return_inside(a):
    for i in a:
        for j in i:
            if j:
                return i, j
    return None


def while_loop(a, b):
    while a < b:
        a += 1
        if a == 3:
            continue
        if a == 5:
            break
        print(a)
    else:
        print("done")
    return a


def while_true(f):
    while True:
        x = f()
        if not x:
            break
        if x == 1:
            return x
    return f


def while_and(a, b):
    while a and b < 3 and 0 < a < 5:
        a -= 1
    while not a:
        a = b()


def read(f):
    while (chunk := f.read(8)) != b"":
        yield chunk


def attribute_target(a, b):
    for a.x in b:
        pass
    for a[0] in b:
        pass


def return_out_of_a_try_in_an_endless_loop(write, delay):
    while True:
        prepare()
        try:
            return int(write())
        except KeyError:
            delay()


def else_that_returns(mro, methods):
    for method in methods:
        for B in mro:
            if method in B:
                if B[method] is None:
                    return NotImplemented
                break
        else:
            return NotImplemented
    return True


def break_to_outer_head(lexer, x):
    while 1:
        tt = lexer()
        if tt == 1:
            y = lexer()
        elif tt == 2:
            while 1:
                line = lexer()
                if not line:
                    raise ValueError(x)
                if line == 5:
                    break
                x(line)
            continue
        else:
            raise ValueError(tt)
        x(y)


def else_that_continues(names, f, mro, done):
    for key in names:
        try:
            value = f(key)
            if key in done:
                raise KeyError
        except KeyError:
            for b in mro:
                if key in b:
                    value = b[key]
                    break
            else:
                continue
        done(value)


def while_else_in_for(prefix, table):
    for i in prefix:
        idx = table[i - 1]
        while prefix[i] != prefix[idx]:
            if idx == 0:
                table[i] = 0
                break
            idx = table[idx - 1]
        else:
            table[i] = idx + 1
    return table


def breaks_to_outer_head(f, stops):
    while True:
        line = f()
        if line == 1:
            while True:
                line = f()
                if line == 2:
                    stops.append(line)
                    break
                elif not line:
                    stops.append(f)
                    break
        elif not line:
            break
    return stops


def while_else_breaks_outer(nodes, stack, seen):
    for node in nodes:
        while True:
            if node in seen:
                if node in stack:
                    return stack
            else:
                seen.add(node)
            while stack:
                try:
                    node = stack[-1]()
                    break
                except StopIteration:
                    stack.pop()
            else:
                break
    return None


def breaks_behind_statements(f, formats, p):
    if f is None:
        for info in formats:
            if info(f):
                p = info
                break
        else:
            raise ValueError
    else:
        p = formats
    p = p(f)
    return p.parse(f)


def return_out_of_while(f):
    i = 1
    while True:
        for j in 1, 2, 5:
            number = i * j
            t = f(number)
            if t >= 0.2:
                return (number, t)
        i *= 10


def else_before_return(x, memo, f):
    y = [f(a, memo) for a in x]
    try:
        return memo[id(x)]
    except KeyError:
        pass
    for k, j in zip(x, y):
        if k is not j:
            y = tuple(y)
            break
    else:
        y = x
    return y


def returns_in_a_loop_in_the_else_of_a_try(value, options):
    """(botocore's ``parse_timestamp``: where the loop ends is told by no edge; found by trying.)"""
    try:
        number = float(value)
    except (TypeError, ValueError):
        pass
    else:
        try:
            for option in options:
                return option(number)
        except (OSError, OverflowError) as e:
            print(option, e)
    raise ValueError(value)


def returns_from_a_loop_whose_result_is_returned_later(first, others):
    """(jinja2's ``Compare.as_const``.)"""
    result = value = first()
    try:
        for other in others:
            following = other()
            result = value < following
            if not result:
                return False
            value = following
    except Exception as e:
        raise ValueError() from e
    return result


def breaks_behind_a_statement_in_a_loop_with_nested_else(self, data):
    """(yaml's ``BaseRepresenter.represent_data``.)"""
    kinds = type(data).__mro__
    if kinds[0] in self.exact:
        node = self.exact[kinds[0]](self, data)
    else:
        for kind in kinds:
            if kind in self.multi:
                node = self.multi[kind](self, data)
                break
        else:
            if None in self.multi:
                node = self.multi[None](self, data)
            elif None in self.exact:
                node = self.exact[None](self, data)
            else:
                node = str(data)
    return node
