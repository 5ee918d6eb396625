"""Names of depyf up to 0.20 that public code imports (docs/migration.md says where that was found).

``depyf`` enters the modules that had them (``_NAMES``) in ``sys.modules``. A name is looked up when it is used;
one that is gone (``_GONE``) raises an error that says what to use.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ModuleSpec
from opcode import opmap
from types import CodeType, FunctionType, ModuleType
from typing import Any

# (This is imported with depyf: what takes long is imported in the functions.)


class Decompiler:
    """Decompiles one function or code object, as :func:`depyf.decompile` does; ``code`` is its code object.

    Raises:
        TypeError: there is no Python code in it.
    """

    def __init__(self, code: Any) -> None:
        from .source import code_of

        self.code = code_of(code)

    def decompile(self, indentation: int = 4, temp_prefix: str = "__temp_", overwite_fn_name: str | None = None) -> str:
        """Return source, with another name for the function if one is given.

        ``temp_prefix`` has no effect: the text has no variables that the code does not have.

        Raises:
            DecompilationError: the code is malformed.
            ValueError: another indentation than 4.
        """
        from .decompiler import decompile_code
        from .decompiler.dynamo.global_names import is_transformed

        if indentation != 4:
            raise ValueError(f"Decompiler.decompile: indentation={indentation} is not possible; give 4")
        return decompile_code(self.code, name=overwite_fn_name, simplify=is_transformed(self.code)).text

    @staticmethod
    def supported_opnames() -> list[str]:
        """Return the names of the instructions that can be decompiled: all of this Python."""
        from .bytecode.code import table

        return list(table(sys.version_info[:2]).opcodes)

    @staticmethod
    def decompile_and_compile_like(*args: Any, **kwargs: Any) -> CodeType:
        """Raise an error that says what to use."""
        raise NotImplementedError("Decompiler.decompile_and_compile_like is gone: use depyf.prepare_debug(dir, "
                                  "link=True), inside of which transformed code runs with the lines of its file")


def get_function_signature(code_obj: CodeType, overwite_fn_name: str | None = None) -> str:
    r"""Return the line that begins a function: ``"def f(a, *, b):\n"``."""
    import inspect

    plain = FunctionType(code_obj.replace(co_freevars=()), {})
    return f"def {overwite_fn_name or code_obj.co_name}{inspect.signature(plain)}:\n"


def collect_all_code_objects(code: CodeType) -> list[CodeType]:
    """Return a code object and all those inside it."""
    inner = [collect_all_code_objects(each) for each in code.co_consts if isinstance(each, CodeType)]
    return [code, *(each for codes in inner for each in codes)]


def safe_create_directory(path: str) -> None:
    """Make a directory unless it is there."""
    os.makedirs(path, exist_ok=True)


def get_code_owner(fn: Any) -> Any:
    """Return the function inside of methods, decorated and partial functions and callable objects."""
    from .source import unwrapped

    return list(unwrapped(fn))[-1]


def decompile_ensure(fn: CodeType, overwite_fn_name: str | None = None) -> str:
    """Return source of a code object; of one that is malformed a function that only says so."""
    from .bytecode.errors import DecompilationError

    try:
        return Decompiler(fn).decompile(overwite_fn_name=overwite_fn_name)
    except DecompilationError:
        return get_function_signature(fn, overwite_fn_name) + "    'Failed to decompile.'\n"


def fix_irregular_code(old_bytecode: CodeType, src_code: str) -> str:
    """Return the source of a function, changed so that its code can take the place of ``old_bytecode``.

    It gets the same free variables, and at least the same local and cell variables.
    """
    from textwrap import indent

    name = src_code.partition("(")[0].split()[-1]
    free = "".join(f"    {each} = None\n" for each in old_bytecode.co_freevars)

    def enclosed(source: str) -> str:
        return f"def __helper_outer_function():\n{free}{indent(source, '    ')}" if free else source

    made = next(code for code in collect_all_code_objects(compile(enclosed(src_code), "<source>", "exec"))
                if code.co_name == name)
    cells = sorted({*old_bytecode.co_cellvars} - {*made.co_cellvars})
    local = sorted({*old_bytecode.co_varnames} - {*made.co_varnames, *made.co_cellvars})
    new = [f"    {each} = None\n" for each in local]
    new += [f"    def __helper_for_cellvars(): return {', '.join(cells)}\n"] if cells else []
    head, line_end, body = src_code.partition("\n")
    return enclosed("".join([head, line_end, *new, body]))


def patched_load_by_key_path(key: str, path: str, *args: Any, **kwargs: Any) -> Any:
    """Load a module that Inductor generated, as torch does (and ``prepare_debug`` sees)."""
    from .capture.torch_private.private_api import KERNEL_MODULE

    return KERNEL_MODULE.get()(key, path, *args, **kwargs)


def get_current_compiled_fn_name() -> str:
    """Return the name of the graph that torch made last: ``__compiled_fn_1``."""
    from .capture.torch_private import private_api

    return f"__compiled_fn_{int(repr(private_api.UNIQUE_IDS.get()).strip('count()')) - 1}"


def write_code_to_file_template(src: str, path_template: str) -> str:
    """Write a text to the first of ``path_template % "0"``, ``"1"``, ... that is not there or has it; return that."""
    from . import budgets, reading

    number = 0
    while True:
        path = path_template % str(number)
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(src)
            return path
        except FileExistsError:
            if reading.text(path, budgets.CODE) == src:
                return path
        number += 1


class _Data:
    """What depyf knows of the ``prepare_debug`` that is on, or was last, when it is asked."""

    def __getitem__(self, key: str) -> Any:
        from .link.sessions import active_sessions, ended_sessions

        sessions = active_sessions() or ended_sessions()
        return {"dump_src_dir": sessions[-1].directory if sessions else os.path.abspath("dumped_src"),
                "is_inside_prepare_debug": bool(active_sessions()),
                "unpatched_load_by_key_path": patched_load_by_key_path}[key]


data = _Data()

_UTILS = "collect_all_code_objects decompile_ensure get_code_owner get_function_signature safe_create_directory"
#: The names by module: they are here, or in depyf.
_NAMES = {
    "utils": _UTILS,
    "code_transform": "fix_irregular_code",
    "explain": "",
    "explain.enable_debugging": "debug prepare_debug patched_load_by_key_path",
    "explain.enhance_logging": "install uninstall",
    "explain.global_variables": "data",
    "explain.utils": f"{_UTILS} get_current_compiled_fn_name write_code_to_file_template",
    **dict.fromkeys(("explain.patched_boxed_run", "explain.patched___call__", "explain.patched__exec_with_source",
                     "explain.patched_lazy_format_graph_code"), ""),
    "explain.patched_load_by_key_path": "patched_load_by_key_path"}
_GONE = {
    "use depyf.decompile(f) for source, the module dis for instructions":
        "Instruction convert_instruction nop_instruction nop_unreachable_bytecode propagate_line_nums "
        "simplify_finally_statement remove_some_temp",
    "use depyf.explain.dump_src(f), or read the records.jsonl of a dump":
        "_extract_artifacts _collect_compiled_subgraphs append_guard_code CodeProxy CacheResult "
        "DynamoOptimizationResult",
    "use depyf.explain.interactive(f)": "interactive_explain",
    "use depyf.prepare_debug, which needs no patch of this function":
        "patched__exec_with_source patched_boxed_run patched___call__ patched_lazy_format_graph_code",
    "use depyf.prepare_debug(dir, link=True)": "DebuggableHook",
    "use torch._dynamo.convert_frame.register_bytecode_hook": "enable_bytecode_hook",
    "use depyf.install()": "pytorch_bytecode_src_hook",
    "use depyf.code_transform.fix_irregular_code(code, source)": "prepare_freevars_for_compile",
    "use unittest.mock.patch.object": "patch",
    "use textwrap.indent": "add_indentation",
    "use textwrap.dedent": "remove_indentation",
    "use filelock.FileLock": "lock_on_file"}


def find(module: str, name: str) -> Any:
    """Return what an old name in a module is: an old module, or what took its place.

    Raises:
        AttributeError: there was no such name, or it is gone.
        ImportError: it is gone, and imported by ``from ... import``, which would replace the message of an
            AttributeError. (``hasattr`` and ``pickle`` expect that.)
    """
    inner = sys.modules.get(f"{module}.{name}")
    names = _NAMES.get(module.removeprefix("depyf."))
    if inner is not None:
        return inner
    if names is not None and name in names.split():
        return globals()[name] if name in globals() else getattr(importlib.import_module("depyf"), name)
    for instead, gone in _GONE.items() if names is not None else ():
        if name in gone.split():
            caller = sys._getframe(2)
            importing = caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_FROM"]
            raise (ImportError if importing else AttributeError)(
                f"{module}.{name} of depyf 0.20 is gone: {instead}", name=name)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


class _OldModule(ModuleType):
    __all__: list[str]

    def __getattr__(self, name: str) -> Any:
        return find(self.__name__, name)


def enter_modules() -> None:
    """Enter the old modules in ``sys.modules``, those that no file of this package is."""
    for name, names in _NAMES.items():
        if name != "explain":
            module = _OldModule(f"depyf.{name}", "Names of depyf up to 0.20: see depyf.old_names.")
            module.__all__ = names.split()
            module.__spec__ = ModuleSpec(module.__name__, None, origin=__file__)
            sys.modules.setdefault(module.__name__, module)
