"""The table of private API: all that we use of torch and that its documents do not promise.

Every name of torch's that this package uses is here once; other code asks the table for the object
(:meth:`PrivateApi.get`). So the table is complete, ``depyf doctor`` can compare it with the torch that is
installed, and a test can remove each name in turn.

A name that is missing costs what its ``lost`` says, and nothing else.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import string
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, Literal

from ...torch_text.global_names import RESUME_CODE as RESUME_CODE_PREFIX
from ...values import frozen

State = Literal["present", "changed", "missing"]
Check = Callable[[Any], str]  #: Says what is other than expected of the object; ``""``: nothing.


class MissingPrivateApi(AttributeError):
    """The torch that is installed lacks a private API."""


@frozen
class PrivateApi:
    """One name of torch's that its documents do not promise."""

    # `module:qualified.name`, or a `module`: where it is, or was in other versions, with spaces between; the first
    # that is there counts
    places: str
    use: str  # what we do with it
    lost: str  # what a dump lacks without it; begins with "nothing" where that is all the same
    check: Check = lambda value: ""  # compares the object with what we expect of it
    key: str = ""  # the attribute, local variable or key meant, where the place is only the code that makes it
    since: str = "2.6 or earlier"  # the first torch that has it

    @property
    def name(self) -> str:
        """``torch._guards.CompileContext.current_trace_id``."""
        place = self.places.split()[0].replace(":", ".")
        return f"{place} [{self.key}]" if self.key else place

    @property
    def loses(self) -> bool:
        """True if a dump lacks something without it."""
        return not self.lost.startswith("nothing")

    @property
    def first_place(self) -> tuple[str, str]:
        """Its module and name in the newest torch, known without importing that."""
        module, _, name = self.places.split()[0].partition(":")
        return module, name

    @property
    def module(self) -> str:
        """The module that it is in."""
        return self._resolve()[0].partition(":")[0]

    @property
    def attribute(self) -> str:
        """The last part of its name."""
        return self._resolve()[0].rpartition(":")[2].rpartition(".")[2]

    def get(self) -> Any:
        """Return the object; raise :class:`MissingPrivateApi` if this torch has none."""
        return self._resolve()[2]

    def get_or(self, otherwise: Any) -> Any:
        """Return the object; another where this torch has none."""
        try:
            return self.get()
        except MissingPrivateApi:
            return otherwise

    def owner(self) -> Any:
        """Return the module or class that it is in; raise as :meth:`get`."""
        return self._resolve()[1]

    def present(self) -> bool:
        """Return whether this torch has the private API, in whatever form."""
        return self.get_or(MissingPrivateApi) is not MissingPrivateApi

    def imported(self) -> bool:
        """Return whether all modules that may have it are imported, so that asking for it imports none."""
        return all(place.partition(":")[0] in sys.modules for place in self.places.split())

    def as_expected(self) -> bool:
        """Return whether this torch has the private API, and in the form that we expect."""
        return self.state()[0] == "present"

    def state(self) -> tuple[State, str]:
        """Return the state of the private API in the torch that is installed, and what is amiss."""
        try:
            value = self.get()
        except MissingPrivateApi as error:
            return "missing", str(error)
        try:
            amiss = self.check(value)
        except Exception as error:
            amiss = f"could not be checked ({type(error).__name__}: {error})"
        return ("changed", amiss) if amiss else ("present", "")

    def _resolve(self) -> tuple[str, Any, Any]:
        why = ""
        for place in self.places.split():
            module, _, path = place.partition(":")
            try:
                owner, value = None, sys.modules.get(module) or importlib.import_module(module)
                for part in path.split(".") if path else ():
                    owner, value = value, getattr(value, part)
            except Exception as error:  # a module of torch's can fail in any way while it is imported
                why = why or (str(error) if isinstance(error, AttributeError) else f"{type(error).__name__}: {error}")
            else:
                return place, owner, value
        raise MissingPrivateApi(f"this torch has no {self.places.split()[0].replace(':', '.')} ({why})")


# --- checks ------------------------------------------------------------------------------------------
def takes(*names: str) -> Check:
    """Has parameters of these names (or ``**kwargs``)."""

    def check(value: Any) -> str:
        parameters = inspect.signature(value).parameters
        if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
            return ""
        absent = ", ".join(name for name in names if name not in parameters)
        return f"has no parameter {absent}" if absent else ""

    return check


def has(*names: str) -> Check:
    """Has these attributes, or is a class that declares them for its instances."""

    def check(value: Any) -> str:
        declared = getattr(value, "__annotations__", ())
        absent = ", ".join(name for name in names if not hasattr(value, name) and name not in declared)
        return f"has no {absent}" if absent else ""

    return check


def both(first: Check, second: Check) -> Check:
    """Is as two checks expect it."""
    return lambda value: first(value) or second(value)


def is_a(wanted: type) -> Check:
    """Is of this type."""
    return lambda value: "" if isinstance(value, wanted) else f"is of type {type(value).__name__}"


def mentions(*names: str) -> Check:
    """Has code, or methods with code, that mentions one of the names.

    It may be an attribute, a variable, a string or the default of a parameter there.
    """

    def check(value: Any) -> str:
        owners = value.__mro__ if isinstance(value, type) else ()
        functions = [inspect.unwrap(each) for owner in owners for each in vars(owner).values()] or [
            inspect.unwrap(value)]
        defaults = [each for function in functions for each in getattr(function, "__defaults__", None) or ()]
        if any(isinstance(each, str) and each in names for each in defaults):
            return ""
        codes = [code for each in functions if (code := getattr(each, "__code__", None)) is not None]
        for code in codes:
            if set(names) & {*code.co_names, *code.co_varnames, *(c for c in code.co_consts if isinstance(c, str))}:
                return ""
            codes += [const for const in code.co_consts if isinstance(const, CodeType)]
        return f"does not mention {' or '.join(names)}"

    return check


def _is_text(value: str, wanted: str) -> str:
    return "" if value == wanted else f"is now {value!r}"


# --- the table ---------------------------------------------------------------------------------------
BYTECODE_HOOK = PrivateApi(
    "torch._dynamo.convert_frame:register_bytecode_hook", "reports each code object that Dynamo made",
    "transformed code, full code, breakpoints in both, depyf.install()")
COMPILED_FRAME = PrivateApi(
    "torch._dynamo.convert_frame:_compile",
    "globals and locals of the frame being compiled: its resume functions, its ``self``; where depyf run begins",
    "resume functions are shown as functions of their own; compiled_codes of the dispatcher class; depyf run",
    takes("globals", "locals"))
COMPILE_ARGUMENTS = PrivateApi(
    "torch._dynamo.convert_frame:_compile",
    "what torch.compile was given for the frame being compiled: in its backend, as fullgraph=, and in hooks",
    "arguments of torch.compile", takes("compiler_fn", "one_graph", "hooks"), "compiler_fn, one_graph, hooks")
GUARD_FILTER = PrivateApi(
    "torch._dynamo.hooks:Hooks", "the function among options= that drops guards",
    "arguments of torch.compile, where it takes such an option", has("guard_filter_fn"), "guard_filter_fn",
    since="2.7")
GUARD_FILTER_OPTION = PrivateApi(
    "torch:compile", "whether torch.compile takes such an option",
    "nothing on a torch that keeps that function in its hooks", mentions("guard_filter_fn"), "guard_filter_fn",
    since="2.7")
COMPILE_INDUCTOR = PrivateApi(
    "torch:_TorchCompileInductorWrapper",
    "the options of Inductor that torch.compile was given, and whether sizes are open from the start",
    "mode=, options= and dynamic= of torch.compile", both(mentions("config"), mentions("dynamic")))
COMPILE_BACKEND = PrivateApi(
    "torch:_TorchCompileWrapper",
    "mode, options and dynamic that torch.compile was given for another backend than Inductor",
    "mode=, options= and dynamic= of torch.compile for other backends than Inductor",
    both(mentions("kwargs"), mentions("dynamic")))
INDUCTOR_MODES = PrivateApi(
    "torch._inductor:list_mode_options", "the options of Inductor that are those of a mode",
    "mode= of torch.compile: its options are shown instead")
COMPILING_DECORATORS = PrivateApi(
    "torch._utils_internal", "the module of the decorators between a frame and what compiles it",
    "callers of compiled functions where torch's event leaves them out")
GRAPH_NAME = PrivateApi(
    "torch._dynamo.bytecode_transformation:COMPILED_FN_PREFIX torch._dynamo.output_graph:OutputGraph",
    "the name of a compiled graph in transformed code", "links between transformed code and its graphs",
    lambda value: _is_text(value, "__compiled_fn") if isinstance(value, str) else mentions("__compiled_fn")(value),
    "__compiled_fn_")
RESUME_NAME = PrivateApi(
    "torch._dynamo.symbolic_convert:InstructionTranslator", "the name of a resume function in transformed code",
    "links between a function and its continuation", mentions("__resume_at_"), "__resume_at_")
RESUME_CODE = PrivateApi(
    "torch._dynamo.resume_execution:TORCH_DYNAMO_RESUME_IN_PREFIX", "which code objects are resume functions",
    "resume functions are shown as functions of their own",
    lambda value: _is_text(value, RESUME_CODE_PREFIX.removesuffix("_")), RESUME_CODE_PREFIX)
RESUME_FACTORY = PrivateApi(
    "torch._dynamo.output_graph:OutputGraph.install_resume_function_global "
    "torch._dynamo.codegen:PyCodegen.make_function_with_closure",
    "resume functions with free variables go by a name; up to 2.11 by one that depyf gives them",
    "a graph break in a closure: what comes before it may stay a dispatch loop or bytecode, linked to no file",
    takes("code"))
WRITTEN_CALL = PrivateApi(
    "torch._dynamo.bytecode_transformation:create_call_function", "the instructions that call by that name, up to 2.11",
    "the same, up to 2.11", takes("nargs", "push_null"))
WRITTEN_SWAP = PrivateApi(
    "torch._dynamo.bytecode_transformation:create_swap", "part of them", "the same, up to 2.11", takes("n"))
TRACED_CODE = PrivateApi(
    "torch._dynamo.bytecode_transformation:transform_code_object",
    "rewrites a function before it is traced; resume functions are named by offsets of that",
    "which branch a resume function continues, and the expressions of the values on the stack",
    takes("code", "transformations"))
COMPILE_ID = PrivateApi(
    "torch._guards:CompileContext.current_trace_id", "the id of the compilation that runs",
    "compile ids, and with them graphs and kernels", takes())
AOT_INDUCTOR = PrivateApi(
    "torch._inductor.virtualized:V", "whether AOTInductor compiles",
    "what AOTInductor makes of a program that was exported with strict=True", has("aot_compilation"))
TRACED_LINE = PrivateApi(
    "torch._guards:TracingContext.set_current_loc", "the line that Dynamo traces",
    "which lines were traced and left nothing in a graph, and which were never reached", takes("filename", "lineno"))
NEVER_COMPILE = PrivateApi(
    "torch._dynamo.trace_rules:add", "keeps Dynamo from compiling our own functions",
    "nothing is lost; backward graphs compiled inside a compiled frame may compile our hooks, too")
DYNAMO = "torch._dynamo."  #: How the names of Dynamo's modules begin.

TRACE_LOG = PrivateApi(
    "torch._logging._internal:trace_log", "the logger of torch's structured trace",
    "joint, forward, backward and post-grad graphs, graph breaks, reasons for recompiles, dynamic shapes, times",
    lambda value: _is_text(value.name, "torch.__trace"), "torch.__trace")
TRACE_STRUCTURED = PrivateApi(
    "torch._logging._internal:trace_structured", "writes the structured trace; events that nobody wants are left out",
    "nothing is lost; compiling takes longer, as torch prints graphs that nobody asked for",
    takes("name", "metadata_fn", "payload_fn"))
SHOWN_GRAPH = PrivateApi(
    "torch.fx._utils:LazyString torch._dynamo.utils:LazyString",
    "what lazy_format_graph_code makes of a graph that a backend passes to it",
    "graphs that a backend shows by lazy_format_graph_code, and BEFORE_PRE_GRAD")
AOT_CONTEXT = PrivateApi(
    "torch._functorch.aot_autograd:get_aot_compilation_context", "the number of AOTAutograd's compilation that runs",
    "a backward graph of a direct call of compile_fx that is compiled later gets files under another name", takes())
INTERN_TABLE = PrivateApi(
    "torch._logging.structured:INTERN_TABLE", "file names for the numbers in the structured trace",
    "names of files in stacks", is_a(dict))
MODULE_STACK = PrivateApi(
    "torch._dynamo.output_graph:SubgraphTracer", "the modules that a node of a graph was called in",
    "the outline of graphs by module", mentions("nn_module_stack"), "nn_module_stack")
GRAPH_INPUTS = PrivateApi(
    "torch._dynamo.output_graph:SubgraphTracer", "what the inputs of a captured graph are in the frame",
    "what the user calls the parameters of graphs", mentions("grapharg"), "grapharg")
RECOMPILE_REASONS = PrivateApi(
    "torch._dynamo.guards:get_and_maybe_log_recompilation_reasons "
    "torch._dynamo.guards:get_and_maybe_log_recompilation_reason",
    "the frame about to be compiled again", "the value that a failed guard saw", takes("frame"), "frame")
GRAPH_BREAK_LOG = PrivateApi(
    "torch._dynamo.symbolic_convert:InstructionTranslatorBase.log_graph_break",
    "the stack of a graph break with all its frames",
    "calls of functions of the same name (forward by forward) on the way to a graph break", takes("exc"), "exc",
    since="2.7")
SYMBOLIC_LOCALS = PrivateApi(
    "torch._dynamo.symbolic_convert:InstructionTranslatorBase.__init__", "the local variables at a graph break",
    "types, shapes and dtypes at graph breaks, and advice that needs them", mentions("symbolic_locals"),
    "symbolic_locals")
TENSOR_BASE = PrivateApi(
    "torch._C:TensorBase._base", "the tensor that a local variable at a graph break is a view of",
    "proofs of advice on branches that assign to views", key="_base")
STORAGE_ID = PrivateApi(
    "torch._C:StorageBase._cdata", "whether local variables at a graph break share memory",
    "proofs of advice on branches", key="_cdata")
LAZY_CACHE = PrivateApi(
    "torch._dynamo.variables.lazy:LazyVariableTracker.__init__",
    "a local variable at a graph break that torch has not looked at", "types, shapes and dtypes of such variables",
    mentions("_cache"), "_cache")
TRACED_ARRAY = PrivateApi(
    "torch._dynamo.variables.tensor:NumpyNdarrayVariable",
    "whether a local variable at a graph break is an array of NumPy's", "advice on branches on arrays",
    key="NumpyNdarrayVariable")
CAPTURED_GRAPH = PrivateApi(
    "torch._dynamo.output_graph:OutputGraph.call_user_compiler",
    "the graph that a backend is given, and what it gives back", "captured graphs, and breakpoints in them",
    takes("self", "gm"))
BACKEND_ID = PrivateApi(
    "torch._dynamo.output_graph:OutputGraph.compile_and_call_fx_graph",
    "the name of a graph, known before code calls it",
    "torch's name of graphs whose compilation failed or outlived the block", mentions("backend_id"), "backend_id",
    since="2.8")
BACKEND_CHAIN = PrivateApi(
    "torch._dynamo.convert_frame:ConvertFrame.__init__", "the backend inside torch's wrappers of it",
    "the backend's name; breakpoints under depyf.debug()",
    mentions("_torchdynamo_orig_backend", "_torchdynamo_orig_callable"), "_torchdynamo_orig_backend")
DDP_BACKEND = PrivateApi(
    "torch._dynamo.backends.distributed:DDPOptimizer.__init__",
    "the backend inside the one that divides graphs for DistributedDataParallel",
    "the backend's name for a module in DistributedDataParallel", mentions("backend_compile_fn"), "backend_compile_fn")
ORIGINAL_CALLABLE = PrivateApi(
    "torch._dynamo.eval_frame:innermost_fn", "the user's function inside what torch.compile returns",
    "depyf.explain.dump_src", mentions("_torchdynamo_orig_callable"), "_torchdynamo_orig_callable")
AOT_GRAPHS = PrivateApi(
    "torch._dynamo.backends.common:aot_module_simplified", "the graphs that aot_eager and its like run",
    "breakpoints in graphs of aot_eager (the graphs themselves are there)",
    takes("fw_compiler", "bw_compiler", "inference_compiler"))
AOT_EAGER_CODE = PrivateApi(
    "torch._dynamo.backends.debugging:boxed_nop", "runs a graph of aot_eager as code",
    "breakpoints in graphs of aot_eager, which this torch interprets (the graphs themselves are there)",
    mentions("_BoxedCodeGen"), "_BoxedCodeGen", since="2.11")
EXPORT = PrivateApi(
    "torch.export._trace:_export", "exports a module",
    "the programs that torch.export returns, and why an export failed", takes("mod", "args"))
KERNEL_MODULE = PrivateApi(
    "torch._inductor.codecache:PyCodeCache.load_by_key_path", "modules that Inductor wrote",
    "kernels, and breakpoints in them", takes("key", "path"))
UNFUSED = PrivateApi(
    "torch._inductor.debug:log_ir_pre_fusion", "logs Inductor's operations before it fuses them",
    "the operations of Inductor before it fuses them, among the internal stages", takes("nodes"))
FUSED = PrivateApi(
    "torch._inductor.debug:log_ir_post_fusion", "logs Inductor's operations after it fused them",
    "the operations of Inductor after it fused them, among the internal stages", takes("nodes"))
UNIQUE_IDS = PrivateApi(
    "torch._dynamo.bytecode_transformation:_unique_id_counter", "counts the names that Dynamo gives",
    "nothing; depyf.explain.utils.get_current_compiled_fn_name of depyf 0.20", is_a(itertools.count))
CACHE_KEY = PrivateApi(
    "torch.compiler.config:cache_key_tag", "separates entries of torch's compile caches that were made under depyf",
    "graphs on a warm cache that was filled without depyf (caches=\"bypass\" shows them)", is_a(str))
NO_CACHES = PrivateApi(
    "torch._inductor.config:force_disable_caches", "switches torch's compile caches off",
    "prepare_debug(caches=\"bypass\")", is_a(bool))
NO_CACHES_WARNING = PrivateApi(
    "torch._dynamo.pgo:warn_once", "torch's warning of that, which is none of the program's",
    "nothing is lost; torch warns of caches that depyf switched off", takes("msg"))
POST_GRAD_KEPT = PrivateApi(
    "torch._inductor.output_code:CompiledFxGraph",
    "entries of torch's compile caches contain the graph after Inductor's passes",
    "the use of torch's compile caches (caches=\"use\" uses them, without AFTER_POST_GRAD graphs)",
    has("inductor_post_grad_graph_str"), "inductor_post_grad_graph_str", since="2.9")
SHORT_PATHS = PrivateApi(
    "torch.utils._traceback:shorten_filename", "how torch cuts paths in guards", "full paths of some files in guards",
    takes("base"))
CACHE_ENTRIES = PrivateApi(
    "torch._dynamo.eval_frame:_debug_get_cache_entry_list",
    "compiled versions of a function, in the order in which they are tried",
    "the order of entries; depyf.explain.dump_src", takes("code"))
SEEN_CODES = PrivateApi(
    "torch._dynamo.convert_frame:input_codes", "functions that torch was asked to compile, whatever came of it",
    "whether a resume function that was not compiled was called", has("__contains__"))
HAS_TENSOR = PrivateApi(
    "torch._dynamo.convert_frame:has_tensor_in_frame",
    "whether torch finds a tensor among the variables of a frame; it compiles nothing where it finds none",
    "why torch left a resume function to plain Python without a word", takes("frame"))
GENERATOR = PrivateApi(
    "torch._dynamo.convert_frame:is_generator",
    "whether a function is a generator function, which torch does not compile",
    "why torch left a function to plain Python without a word", takes("code"))
CACHE_ENTRY = PrivateApi(
    "torch._C._dynamo.eval_frame:_CacheEntry", "code, id and guards of an entry",
    "guards in full code on a torch that does not write them into its trace; depyf.explain.dump_src",
    has("code", "compile_id", "guard_manager"))
ENTRY_BACKEND = PrivateApi(
    "torch._C._dynamo.eval_frame:_CacheEntry.backend", "which backend an entry is of",
    "nothing, unless functions are compiled with several backends: their linking inside debug(), depyf.fits and "
    "depyf.compare",
    since="2.11")
BACKENDS = PrivateApi(
    "torch._dynamo.eval_frame:cached_backends",
    "the backends of the process: which one an entry is of, where there is no other",
    "nothing on a torch whose entries have their backend", is_a(dict))
GUARD_CHECK = PrivateApi(
    "torch._dynamo.guards:GuardManagerWrapper.check_verbose",
    "torch's own answer whether a compiled version fits a call, and which guard fails",
    "depyf.compare does not say which version serves a call", takes("x"))
GUARD_REASON = PrivateApi(
    "torch._dynamo.guards:get_guard_fail_reason_helper", "which of the conditions on sizes a call does not meet",
    "depyf.fits shows all conditions on sizes of a version that one of them rules out",
    takes("guard_manager", "f_locals", "compile_id", "backend"))
BUILD_GUARDS = PrivateApi(
    "torch._dynamo.guards:CheckFunctionManager.build_guards",
    "guards of a version before those are left out that the program drops", "depyf.dropped_guards()",
    takes("guard_filter_fn"), since="2.7")
MAKE_GUARDS = PrivateApi(
    "torch._dynamo.guards:CheckFunctionManager.__init__", "guards of a version as they are used",
    "depyf.dropped_guards()", takes("guard_filter_fn"), since="2.7")
TORCH_FUNCTION_ON = PrivateApi(
    "torch.overrides:_enable_torch_function", "torch's state as a call has it, while guards are tested",
    "depyf.dropped_guards()", since="2.7")
CURRENT_STANCE = PrivateApi(
    "torch._dynamo.eval_frame:_stance", "what torch.compiler.set_stance says",
    "depyf.fits takes it that torch compiles what fits no version", has("stance"))
SET_STANCE = PrivateApi(
    "torch._dynamo.decorators:_set_stance", "when the program sets another stance",
    "the note on it: calls that run in plain Python are not compiled", key="skip_guard_eval_unsafe")
RECOMPILE_LIMIT = PrivateApi(
    "torch._dynamo.config:recompile_limit torch._dynamo.config:cache_size_limit",
    "the number of versions at which torch stops compiling a function",
    "depyf.fits does not say that torch would not compile another version", is_a(int))
COMPILATION_METRICS = PrivateApi(
    "torch._dynamo.utils:get_compilation_metrics", "how torch's last attempts to compile a function ended",
    "depyf.fits says that a version serves a call of a function that torch has skipped since")
NUMPY_RANDOM = PrivateApi(
    "torch._dynamo.config:use_numpy_random_stream", "whether compiled code draws NumPy's random numbers as NumPy does",
    "depyf.compare takes other random numbers of NumPy's for an error", is_a(bool))
COMPILED_CALL = PrivateApi(
    "torch.nn:Module.compile", "what a module runs whose own ``compile`` was called",
    "depyf.compare takes such a module for one that is not compiled", mentions("_compiled_call_impl"),
    "_compiled_call_impl")
ADD_VERSION = PrivateApi(
    "torch._C._dynamo.eval_frame:_load_precompile_entry",
    "code with the lines of the dump, in place of a compiled version inside depyf.debug()",
    "such code runs outside of depyf.debug() as well, so warnings and tracebacks name lines of the dump", since="2.8")
ADDED_VERSIONS = PrivateApi(
    "torch._C._dynamo.eval_frame:_debug_get_precompile_entries",
    "whether a program has entered such versions of its own", ADD_VERSION.lost, since="2.8")
REMOVE_VERSIONS = PrivateApi(
    "torch._C._dynamo.eval_frame:_reset_precompile_entries", "takes them out again", ADD_VERSION.lost, since="2.8")
READABLE_GRAPH = PrivateApi(
    "torch.fx.graph_module:GraphModule.print_readable", "graphs as text",
    "captured graphs, and graphs of aot_eager as they run", takes("print_output", "include_stride", "include_device"))
STANCE = PrivateApi(
    "torch._dynamo.eval_frame:_callback_from_stance", "what happens to a frame that fits no compiled version",
    "depyf.debug() does not say which function ran uncompiled", takes("callback"))
STANCE_ANSWER = PrivateApi(
    "torch._dynamo.types:ConvertFrameReturn", "the answer: run the frame as it is", STANCE.lost,
    takes("frame_exec_strategy", "apply_to_code"), since="2.7")
EXECUTION_STRATEGY = PrivateApi(
    "torch._dynamo.types:FrameExecStrategy", "part of that answer", STANCE.lost, since="2.7")
FRAME_ACTION = PrivateApi(
    "torch._dynamo.types:FrameAction", "part of that answer", STANCE.lost, has("DEFAULT", "RUN_ONLY"), since="2.7")
PUBLIC_STANCE = PrivateApi(
    "torch.compiler:set_stance", "runs compiled code and compiles nothing, where the answer above is not there",
    "depyf.debug() lets torch compile; breakpoints in what is compiled already are hit all the same")
OPERATOR_IN_EAGER = PrivateApi(
    "torch._higher_order_ops.utils:_hop_compile_and_call",
    "compiles the functions that torch.cond and the like get, also in eager Python",
    "depyf.compare and --check: in eager Python torch.cond has no gradients", takes("fn", "args"), since="2.13")
IS_SKIPPED = PrivateApi(
    "torch._dynamo.trace_rules:check", "whether Dynamo would compile a function at all", STANCE.lost)
BYTECODE_LOG = PrivateApi(
    "torch._dynamo.convert_frame:bytecode_log", "torch's log of bytecode", "depyf.install()",
    lambda value: _is_text(value.name, "torch._dynamo.convert_frame.__bytecode"),
    "torch._dynamo.convert_frame.__bytecode")
NO_DISPATCH_MODES = PrivateApi(
    "torch.utils._python_dispatch:_disable_current_modes",
    "keeps the user's dispatch modes from seeing how depyf looks at values",
    "nothing is lost; under debug(stop_on=...) a TorchDispatchMode of the user's sees our operations, too")
DISPATCH_MODE = PrivateApi(
    "torch.utils._python_dispatch:TorchDispatchMode",
    "each operation of a call in float64, too, to measure how far rounding takes a value",
    "depyf.compare allows what torch.testing.assert_close allows")
PYTREE = PrivateApi(
    "torch.utils._pytree", "the tensors among an operation's arguments", "the same",
    has("tree_leaves", "tree_map_only"))
NEGATED = PrivateApi("torch:_neg_view", "values of a tensor that is negated when it is read", "the same")
STORAGE_REFERENCE = PrivateApi(
    "torch.multiprocessing.reductions:StorageWeakRef", "which memory is still in use", "the same")
NO_TORCH_FUNCTION = PrivateApi(
    "torch._C:DisableTorchFunction", "the same for torch function modes",
    "nothing is lost; under debug(stop_on=...) a TorchFunctionMode of the user's sees our operations, too")
FAKE_TENSOR = PrivateApi(
    "torch._subclasses.fake_tensor:FakeTensor", "tensors without numbers",
    "debug(stop_on=...) may say that the values of a fake tensor could not be looked at")
SUBCLASS = PrivateApi(
    "torch.utils._python_dispatch:is_traceable_wrapper_subclass", "the tensors that a tensor subclass is made of",
    "debug(stop_on=...) does not look into tensor subclasses", key="__tensor_flatten__")
COMPILE_FX = PrivateApi(
    "torch._inductor.compile_fx:compile_fx", "Inductor, one stage at a time",
    "depyf.compare sees no AOT graphs and no kernels", takes("model_", "example_inputs_", "inner_compile"),
    "inner_compile")
AOT_AUTOGRAD = PrivateApi(
    "torch._dynamo.backends.common:aot_autograd",
    "backward graphs without decompositions, to find where gradients begin to differ",
    "depyf.compare names no node for a wrong gradient")
POST_GRAD = PrivateApi(
    "torch._inductor.compile_fx:_recursive_post_grad_passes", "the graph that Inductor makes kernels of",
    "depyf.compare does not look at kernels one by one", takes("gm"))
DYNAMO_SETTINGS = PrivateApi(
    "torch._dynamo.config", "sizes that depyf.compare shows torch are not remembered",
    "a function that was compared may be compiled for dynamic shapes earlier", has("patch", "automatic_dynamic_shapes"))
INDUCTOR_SETTINGS = PrivateApi(
    "torch._inductor.config", "random numbers as eager PyTorch draws them, and no caches, while depyf.compare runs",
    "depyf.compare finds dropout different", has("patch", "fallback_random", "fx_graph_cache"))
CHANGED_OPTIONS = PrivateApi(
    "torch._inductor.config:codegen_config", "the options that are part of the key of Inductor's cache",
    "why a graph was not in the cache is said without the options")
INDUCTOR_OPTIONS = PrivateApi(
    "torch._inductor.config:_config", "the defaults of these options",
    "options that were set to their default are shown as changed", is_a(dict))
AUTOGRAD_SETTINGS = PrivateApi(
    "torch._functorch.config", "no cache of AOTAutograd's while depyf.compare runs",
    "depyf.compare may find no AOT graphs", has("patch", "enable_autograd_cache"))
RESET_CODE = PrivateApi(
    "torch._C._dynamo.eval_frame:reset_code", "takes back what depyf.compare compiled",
    "entries of depyf.compare stay in the cache of a function (no other backend uses them)")
DELETED_GUARDS = PrivateApi(
    "torch._dynamo.guards:DeletedGuardManagerWrapper", "the same for functions that the user has compiled, too",
    RESET_CODE.lost, takes("reason"))
FX_CACHE_WRITE = PrivateApi(
    "torch._inductor.codecache:FxGraphCache._write_to_local_cache",
    "what is compiled only to be judged is not written to torch's compile cache",
    "depyf.compare may leave entries in torch's compile cache, as the call itself would", takes("key", "content"))
AOT_CACHE_WRITE = PrivateApi(
    "torch._functorch._aot_autograd.autograd_cache:AOTAutogradCache._write_to_local_cache",
    "the same for AOTAutograd's cache", FX_CACHE_WRITE.lost, takes("key", "content"))
FRAME_NUMBERS = PrivateApi(
    "torch._dynamo.convert_frame", "the number of the next compilation, as it was before one that is only judged",
    "calls that are judged in the program's process leave gaps in the numbers of compilations",
    has("FRAME_COUNTER", "FRAME_COMPILE_COUNTER"))
COUNTERS = PrivateApi(
    "torch._dynamo.utils:counters", "torch's counts of what it compiled, for the same",
    "calls that are judged in the program's process count in torch's counters", is_a(dict))
SIZES_SEEN = PrivateApi(
    "torch._dynamo.pgo:get_code_state", "the sizes that torch has seen, for the same",
    "calls that are judged in the program's process may have later ones compiled for dynamic shapes earlier")
PROFILE_WRITE = PrivateApi("torch._dynamo.pgo:put_code_state", "the same for sizes that were seen", FX_CACHE_WRITE.lost)

#: How names of attributes begin that torch leaves on functions, modules and tensors that it compiles.
LEFT_BY_TORCH = ("_dynamo", "_torchdynamo", "torchdynamo", "__compiled", COMPILED_CALL.key, "_is_torch_compile",
                 "_isolate_recompiles_id")
#: How the modules begin whose objects are the compiler's own.
COMPILER_MODULES = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch._C", "torch.fx", "torch._subclasses",
                    "torch._guards")
COMPILED_AUTOGRAD = "torch._dynamo.compiled_autograd"  #: The module that compiles backward passes when they run.
#: How the modules begin that compile, and those of them that run what was compiled.
COMPILING_MODULES = ("torch._inductor", "torch._functorch.aot_autograd", "torch._functorch._aot_autograd",
                     "torch._functorch.compilers", "torch._dynamo.backends")
RUNNING_MODULES = ("torch._inductor.output_code", "torch._functorch._aot_autograd.runtime_wrappers")
#: All of them, in the order in which a compilation meets them.
TABLE: tuple[PrivateApi, ...] = tuple(each for each in dict(globals()).values() if isinstance(each, PrivateApi))


# --- versions of torch that the tool was tried with --------------------------------------------------
# What works on a torch is decided by what it has, never by its number. The numbers are here for people: results on an
# untried torch are worth a second look.
#: The oldest (older ones are refused) and the newest of them, and some between.
TESTED: tuple[tuple[int, int], ...] = ((2, 6), (2, 9), (2, 11), (2, 13), (2, 15))
_warned: set[str] = set()


class TorchTooOld(RuntimeError):
    """The torch that is installed cannot be watched; the message says what to do."""


def numbers(version: str) -> tuple[int, int] | None:
    """``2.13.0+cpu`` -> ``(2, 13)``; ``None`` for what is no version."""
    major, _, rest = version.partition(".")
    minor = rest[: len(rest) - len(rest.lstrip(string.digits))]
    return (int(major), int(minor)) if major.isdecimal() and minor else None


def support_status(version: str) -> str:
    """One line about a torch that is newer than those that the tool was tried with; ``""`` for any other.

    Raises:
        TorchTooOld: it is older than the oldest of them.
    """
    release, oldest, newest = numbers(version), TESTED[0], TESTED[-1]
    if release is None or oldest <= release <= newest:
        return ""
    tested = [".".join(map(str, each)) for each in (oldest, newest)]
    if release < oldest:
        raise TorchTooOld(f"depyf cannot watch torch {version}: it is tested with {' to '.join(tested)}. "
                          "Run: pip install --upgrade torch")
    return (f"torch {version} is newer than the newest that this depyf was tested with "
            f"({tested[-1]}); `depyf doctor` shows what is different")


def warn_once(text: str) -> bool:
    """Note that a text is said; return whether it had not been said in this process."""
    new = text not in _warned
    _warned.add(text)
    return new
