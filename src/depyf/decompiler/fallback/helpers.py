"""Operations that have no direct spelling, as small functions put at the top of the dispatch code.

Each is the Python form of what the interpreter does; only those that the code calls are written.
"""

from __future__ import annotations

SOURCES: dict[str, str] = {
    "matches": '''
def {p}matches(exception, types):
    """Return whether ``except types`` catches the exception (a subtype test, never ``__subclasscheck__``)."""
    if {p}py.isinstance(types, {p}py.tuple):
        return {p}py.any([{p}matches(exception, kind) for kind in types])
    if not ({p}py.isinstance(types, {p}py.type) and {p}py.BaseException in types.__mro__):
        raise {p}py.TypeError("catching classes that do not inherit from BaseException is not allowed")
    return types in {p}py.type(exception).__mro__
''',
    "split_group": '''
def {p}split_group(exception, types):
    """``except* types``: (what is left, what matched); either may be None."""
    for kind in types if {p}py.isinstance(types, {p}py.tuple) else (types,):
        if not ({p}py.isinstance(kind, {p}py.type) and {p}py.BaseException in kind.__mro__):
            raise {p}py.TypeError("catching classes that do not inherit from BaseException is not allowed")
        if {p}py.BaseExceptionGroup in kind.__mro__:
            raise {p}py.TypeError("catching ExceptionGroup with except* is not allowed. Use except instead.")
    if exception is None:
        return None, None
    is_group = {p}py.isinstance(exception, {p}py.BaseExceptionGroup)
    if {p}py.isinstance(exception, types):
        group = exception if is_group else {p}py.BaseExceptionGroup("", (exception,))
        return None, group.with_traceback(exception.__traceback__)
    return exception.split(types)[::-1] if is_group else (exception, None)
''',
    "join_groups": '''
def {p}join_groups(original, raised):
    """Return what an ``except*`` statement raises in the end, from what its clauses raised; None for nothing."""
    raised = [e for e in raised if e is not None]
    if not raised:
        return None
    if not {p}py.isinstance(original, {p}py.BaseExceptionGroup):
        return raised[0]
    same = lambda e: (e.__traceback__ is original.__traceback__ and e.__cause__ is original.__cause__
                      and e.__context__ is original.__context__
                      and {p}py.getattr(e, "__notes__", None) is {p}py.getattr(original, "__notes__", None))
    again, new = [e for e in raised if same(e)], [e for e in raised if not same(e)]
    def leaves(e):
        inner = e.exceptions if {p}py.isinstance(e, {p}py.BaseExceptionGroup) else ()
        return {p}py.sum([leaves(each) for each in inner], []) if inner else [{p}py.id(e)]
    ids = {p}py.sum([leaves(e) for e in again], [])
    kept = original.subgroup(lambda e: {p}py.id(e) in ids) if ids else None
    if not new:
        return kept
    if kept is not None:
        new.append(kept)
    return new[0] if {p}py.len(new) == 1 else {p}py.BaseExceptionGroup("", new)
''',
    "methods": '''
def {p}methods(manager, names):
    """Methods that the interpreter calls: looked up in the classes only, and bound; None if one is missing."""
    kind, found = {p}py.type(manager), {{}}
    for name in names:
        for base in kind.__mro__:
            if name in base.__dict__:
                method = base.__dict__[name]
                bind = {p}py.getattr({p}py.type(method), "__get__", None)
                found[name] = method if bind is None else bind(method, manager, kind)
                break
        else:
            return None
    return found
''',
    "matched": '''
def {p}matched(value, pattern, **names):
    """What the pattern of a ``case`` binds, as a tuple by number (``_0``), or None."""
    {p}py.exec(f"match value:\\n case {{pattern}}: found = True", names := {{**names, "value": value}})
    return None if "found" not in names else {p}py.tuple(
        [names[f"_{{n}}"] for n in {p}py.range({p}py.len(names)) if f"_{{n}}" in names])
''',
    "match_keys": '''
def {p}match_keys(mapping, keys):
    """Values of the keys of a mapping pattern, or None."""
    import types
    given = types.SimpleNamespace(**{{f"_{{n}}": key for n, key in {p}py.enumerate(keys)}})
    parts = ", ".join([f"keys.{{name}}: {{name}}" for name in {p}py.vars(given)])
    return {p}matched(mapping, "{{" + parts + "}}", keys=given)
''',
    "match_class": '''
def {p}match_class(value, kind, count, names):
    """Attributes that a class pattern binds, or None."""
    parts = [f"_{{n}}" for n in {p}py.range(count)]
    parts += [f"{{name}}=_{{n}}" for n, name in {p}py.enumerate(names, count)]
    return {p}matched(value, f"kind({{', '.join(parts)}})", kind=kind)
''',
    "merge": '''
def {p}merge(into, mapping, function):
    """``f(**into, **mapping)``: a key given twice is an error."""
    if {p}py.hasattr(function, "__qualname__"):
        module = {p}py.getattr(function, "__module__", None)
        inside = module is not None and module != "builtins"
        function = f"{{module}}.{{function.__qualname__}}()" if inside else f"{{function.__qualname__}}()"
    if not {p}py.hasattr(mapping, "keys"):
        raise {p}py.TypeError(f"{{function}} argument after ** must be a mapping, "
                              f"not {{{p}py.type(mapping).__name__}}")
    for key in mapping.keys():
        if key in into:
            raise {p}py.TypeError(f"{{function}} got multiple values for keyword argument {{key!r}}")
        into[key] = mapping[key]
''',
    "imported": '''
def {p}imported(module, name):
    """What ``from module import name`` binds, by name."""
    names = {{"__builtins__": {{"__import__": lambda *given: module}}}}
    {p}py.exec("from _ import " + name, names)
    del names["__builtins__"]
    return names
''',
    "load_name": '''
def {p}load_name(name, *namespaces):
    """A name of these namespaces, or a builtin."""
    for namespace in namespaces:
        try:
            return namespace[name]
        except {p}py.KeyError:
            pass
    try:
        return {p}py.getattr({p}py, name)
    except {p}py.AttributeError:
        raise {p}py.NameError(f"name '{{name:.200}}' is not defined") from None
''',
    "delete_name": '''
def {p}delete_name(name, namespace):
    try:
        del namespace[name]
    except {p}py.KeyError:
        raise {p}py.NameError(f"name '{{name:.200}}' is not defined") from None
''',
    "requalified": '''
def {p}requalified(code, wrong, right):
    """The code, with the qualified names of itself and of what it holds put right."""
    own = {p}py.getattr(code, "co_qualname", None)
    def changed(value, certain):
        if not {p}py.isinstance(value, {p}py.str):
            return {p}requalified(value, wrong, right) if {p}py.hasattr(value, "co_consts") else value
        if certain and (value + ".").startswith(wrong + "."):
            return (right + value[{p}py.len(wrong):]).removeprefix(".")
        return value
    # In a class body, and before 3.11, qualified names are constants like others.
    consts = [changed(value, "<locals>" in wrong or own in (None, value) and not (own and code.co_flags & 3))
              for value in code.co_consts]
    names = {{"co_qualname": changed(own, True)}} if own is not None else {{}}
    return code.replace(co_consts={p}py.tuple(consts), **names)
''',
    "named": '''
def {p}named(function, name, qualname):
    """Gives a function its own name, which tracebacks and what it holds show too."""
    code = {p}requalified(function.__code__, function.__qualname__, qualname)
    function.__code__ = code.replace(co_name=name)
    function.__name__, function.__qualname__ = name, qualname
''',
    "class_body": '''
def {p}class_body(around, qualname, namespace):
    """The function that ``__build_class__`` is given, out of one with nothing but the class statement."""
    [code] = [value for value in around.__code__.co_consts if {p}py.hasattr(value, "co_consts")]
    cells = {p}py.dict({p}py.zip(around.__code__.co_freevars, around.__closure__ or ()))
    inside = f"{{around.__qualname__}}.<locals>.{{code.co_name}}"
    wrong = {p}py.getattr(code, "co_qualname", inside if inside in code.co_consts else code.co_name)
    return {p}py.type(around)({p}requalified(code, wrong, qualname), namespace, code.co_name, None,
                              {p}py.tuple([cells[name] for name in code.co_freevars]))
''',
    "own_locals": '''
def {p}own_locals(found, names):
    return {{name: found[name] for name in names if name in found}}
''',
    "type_parameter": '''
def {p}type_parameter(stars, name, kind="", bound=None, default=None):
    """Only a statement makes parameters whose bounds and defaults are evaluated when they are asked for."""
    if not name.isidentifier():
        raise {p}py.ValueError(f"{{name!r}} is not a name")
    names = {{"__name__": {p}py.globals().get("__name__"), f"_{{name}}_bound": bound, f"_{{name}}_default": default}}
    shown = stars + name
    if kind:
        value = f"_{{name}}_bound(*[1] * {{bound.__code__.co_argcount}})"
        shown += f": (*{{value}},)" if kind == "constrained" else f": {{value}}"
    if default is not None:
        shown += f" = _{{name}}_default(*[1] * {{default.__code__.co_argcount}})"
    {p}py.exec(f"type _{{name}}[{{shown}}] = 0", names)
    return names["_" + name].__type_params__[0]
''',
    "with_default": '''
def {p}with_default(parameter, kind, default):
    """A new parameter, which nobody has seen yet, in place of one without a default."""
    import typing
    stars = {{typing.TypeVarTuple: "*", typing.ParamSpec: "**"}}.get({p}py.type(parameter), "")
    bound = (lambda: parameter.__constraints__) if kind == "constrained" else (lambda: parameter.__bound__)
    return {p}type_parameter(stars, parameter.__name__, kind, bound, default)
''',
    "generic_base": '''
def {p}generic_base(parameters):
    import typing
    return typing.Generic[{p}py.tuple([
        item for parameter in parameters
        for item in (parameter if {p}py.isinstance(parameter, typing.TypeVarTuple) else (parameter,))])]
''',
    "type_alias": '''
def {p}type_alias(parts):
    """Return what ``type name = ...`` makes; the value is asked for later. The code holds None where parameters go."""
    name, parameters, value = parts
    if not name.isidentifier():
        raise {p}py.ValueError(f"{{name!r}} is not a name")
    names = {{"__name__": value.__module__, "_" + name: value}}
    code = {p}py.compile(f"type {{name}} = _{{name}}(*[1] * {{value.__code__.co_argcount}})", "<type>", "exec")
    {p}py.exec(code.replace(co_consts={p}py.tuple([parameters if c is None else c for c in code.co_consts])), names)
    return names[name]
''',
    "frame_builtin": '''
def {p}frame_builtin(value, namespace, outer):
    """Builtins that look at the frame of their caller see the namespace of the body."""
    if value is {p}py.exec or value is {p}py.eval:
        def given(source, /, globals=None, locals=None, **keywords):
            if globals is None:
                globals, locals = outer, namespace if locals is None else locals
            return value(source, globals, locals, **keywords)
        return given
    if value is {p}py.locals or value is {p}py.vars or value is {p}py.dir:
        return lambda *of: value(*of) if of else {p}py.sorted(namespace) if value is {p}py.dir else namespace
    return value
''',
}

#: Builtins that look at the frame of their caller (``frame_builtin``).
OF_THE_FRAME = frozenset({"dir", "eval", "exec", "locals", "vars"})


def needed(text: str, prefix: str) -> list[str]:
    """Return the helpers that a text calls, and those that they call, by name."""
    result = {name for name in SOURCES if f"{prefix}{name}(" in text}
    while more := {name for name in SOURCES for user in result if f"{{p}}{name}(" in SOURCES[user]} - result:
        result |= more
    return sorted(result)
