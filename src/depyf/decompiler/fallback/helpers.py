"""Operations that no expression says, as small functions put at the top of the dispatch code.

Each is the Python form of what the interpreter does; only those that the code calls are written.
"""

from __future__ import annotations

import ast

SOURCES: dict[str, str] = {
    "split_group": '''
def split_group(exception, types):
    """``except* types``: (what is left, what matched); either may be None."""
    import builtins as py
    for kind in types if py.isinstance(types, py.tuple) else (types,):
        if not (py.isinstance(kind, py.type) and py.BaseException in kind.__mro__):
            raise py.TypeError("catching classes that do not inherit from BaseException is not allowed")
        if py.BaseExceptionGroup in kind.__mro__:
            raise py.TypeError("catching ExceptionGroup with except* is not allowed. Use except instead.")
    if exception is None:
        return None, None
    is_group = py.isinstance(exception, py.BaseExceptionGroup)
    if py.isinstance(exception, types):
        group = exception if is_group else py.BaseExceptionGroup("", (exception,))
        return None, group.with_traceback(exception.__traceback__)
    return exception.split(types)[::-1] if is_group else (exception, None)
''',
    "join_groups": '''
def join_groups(original, raised):
    """Return what an ``except*`` statement raises in the end, from what its clauses raised; None for nothing."""
    import builtins as py
    raised = [e for e in raised if e is not None]
    if not raised:
        return None
    if not py.isinstance(original, py.BaseExceptionGroup):
        return raised[0]
    same = lambda e: (e.__traceback__ is original.__traceback__ and e.__cause__ is original.__cause__
                      and e.__context__ is original.__context__
                      and py.getattr(e, "__notes__", None) is py.getattr(original, "__notes__", None))
    again, new = [e for e in raised if same(e)], [e for e in raised if not same(e)]
    def leaves(e):
        inner = e.exceptions if py.isinstance(e, py.BaseExceptionGroup) else ()
        return py.sum([leaves(each) for each in inner], []) if inner else [py.id(e)]
    ids = py.sum([leaves(e) for e in again], [])
    kept = original.subgroup(lambda e: py.id(e) in ids) if ids else None
    if not new:
        return kept
    if kept is not None:
        new.append(kept)
    return new[0] if py.len(new) == 1 else py.BaseExceptionGroup("", new)
''',
    "methods": '''
def methods(manager, *names):
    """Methods that the interpreter calls: looked up in the classes only, and bound; None if one is missing."""
    import builtins as py
    kind, found = py.type(manager), []
    for name in names:
        for base in kind.__mro__:
            if name in base.__dict__:
                method = base.__dict__[name]
                bind = py.getattr(py.type(method), "__get__", None)
                found.append(method if bind is None else bind(method, manager, kind))
                break
        else:
            return None
    return found
''',
    "match_keys": '''
def match_keys(mapping, keys):
    """Values of the keys of a mapping pattern, or None."""
    import builtins as py
    seen, missing, values = py.set(), py.object(), []
    for key in keys:
        if key in seen:
            raise py.ValueError(f"mapping pattern checks duplicate key ({key!r})")
        seen.add(key)
        values.append(mapping.get(key, missing))
        if values[-1] is missing:
            return None
    return py.tuple(values)
''',
    "without_keys": '''
def without_keys(mapping, keys):
    import builtins as py
    rest = py.dict(mapping)
    for key in keys:
        del rest[key]
    return rest
''',
    "merge": '''
def merge(function, first, second):
    """``function(**first, **second)``: a key given twice is an error of the function's."""
    import functools
    @functools.wraps(function, updated=())
    def given(**keywords):
        return keywords
    return given(**first, **second)
''',
    "load_name": '''
def load_name(name, *namespaces):
    """A name of these namespaces, or a builtin."""
    import builtins as py
    for namespace in (*namespaces, py.vars(py)):
        try:
            return namespace[name]
        except py.KeyError:
            pass
    raise py.NameError(f"name '{name:.200}' is not defined")
''',
    "delete_name": '''
def delete_name(name, namespace):
    import builtins as py
    if name not in namespace:
        raise py.NameError(f"name '{name:.200}' is not defined")
    del namespace[name]
''',
    "own": '''
def own(names, prefix):
    """The locals of the program without those of the loop."""
    import builtins as py
    shown = [name for name in names if name.endswith("__") or not name.startswith(prefix)]
    return {name: names[name] for name in shown} if py.isinstance(names, py.dict) else shown
''',
}


def helper(name: str, shown: str) -> ast.stmt:
    """Return the definition of a helper under another name."""
    [definition] = ast.parse(SOURCES[name]).body
    assert isinstance(definition, ast.FunctionDef)
    definition.name = shown
    return definition
