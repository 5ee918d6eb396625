"""An exported program as ``torch.export.save`` writes it, in JSON -> its text as torch prints it.

    {"target": "torch.ops.aten.relu.default", "inputs": [{"arg": {"as_tensor": {"name": "x"}}, ...}], ...}
    relu: "f32[s77, 32]" = torch.ops.aten.relu.default(x)

Format: torch/_export/serde/schema.py. The one key of a value names its kind: ``{"as_int": 2}``.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..model.graph import SHORT_DTYPES
from ..torch_text.met import frames_in

# By the numbers of the format.
_DTYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16", 29: "float8_e4m3fn",
    30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu", 34: "uint32", 35: "uint64"}
_LAYOUTS = {1: "sparse_coo", 2: "sparse_csr", 3: "sparse_csc", 4: "sparse_bsr", 5: "sparse_bsc", 6: "_mkldnn",
            7: "strided"}
_MEMORY_FORMATS = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
_ENUMS = {"as_scalar_type": _DTYPES, "as_layout": _LAYOUTS, "as_memory_format": _MEMORY_FORMATS}
#: Functions of sympy that are operators in Python.
_OPERATORS = {"Add": " + ", "Mul": "*", "Pow": "**", "FloorDiv": "//", "PythonMod": " % ", "Mod": " % "}


def exported_program(program: Mapping[str, Any]) -> str:
    """Return the text of a program, as torch prints an ``ExportedProgram``.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, IndexError: it is not as torch writes it.
    """
    module = program["graph_module"]
    signature = module["signature"]
    inputs = [_described(each) for each in signature["input_specs"]]
    outputs = [_described(each) for each in signature["output_specs"]]
    graph = _graph("GraphModule", module["graph"], [name for name, _ in inputs])
    ranges = ", ".join(
        f"{name}: VR[{'-int_oo' if each['min_val'] is None else each['min_val']}, "
        f"{'int_oo' if each['max_val'] is None else each['max_val']}]"
        for name, each in program["range_constraints"].items())
    specs = ["# inputs", *(f"{name}: {role}" for name, role in inputs), "",
             "# outputs", *(f"{name}: {role}" for name, role in outputs)]
    return "\n".join((
        "ExportedProgram:", textwrap.indent("\n".join(graph), "    "), "",
        "Graph signature:", textwrap.indent("\n".join(specs), "    "), "", f"Range constraints: {{{ranges}}}", ""))


def _described(spec: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of an input or an output and what it is: ``("b_scale", "BUFFER target='scale' ...")``."""
    (kind, fields), = spec.items()
    argument = fields.get("arg")
    name = fields["name"] if argument is None else argument["name"] if "name" in argument else _value_text(argument)
    target = next((f" target={each!r}" for key, each in fields.items() if key.endswith("_name")), "")
    persistent = f" persistent={fields['persistent']}" if "persistent" in fields else ""
    constant = f" value={_value_text(fields['value'])}" if "value" in fields else ""
    return name, {"user_input": "USER_INPUT", "constant_input": "USER_INPUT"}.get(kind, kind.upper()) + (
        target + persistent + constant)


def _graph(name: str, graph: Mapping[str, Any], inputs: list[str]) -> list[str]:
    """Return the lines of the class of a graph; the graphs that its operators call are classes in it."""
    types = {}
    for each, meta in graph["tensor_values"].items():  # `f32[s77, 32]`; the device where that is not the CPU
        dtype, device = _DTYPES[meta["dtype"]], meta["device"]
        where = "" if device["type"] == "cpu" else device["type"] + (
            f":{device['index']}" if device["index"] is not None else "")
        types[each] = f"{SHORT_DTYPES.get(dtype, dtype)}[{', '.join(map(_value_text, meta['sizes']))}]{where}"
    for values in (graph["sym_int_values"], graph["sym_bool_values"], graph.get("sym_float_values", {})):
        types |= {each: f"Sym({_value_text(value)})" for each, value in values.items()}

    def typed(each: str) -> str:
        return f'{each}: "{types[each]}"' if each in types else each

    lines = [f"class {name}(torch.nn.Module):", f"    def forward({', '.join(['self', *map(typed, inputs)])}):"]
    place = ""
    inner_graphs = []
    for node in graph["nodes"]:
        found = frames_in(node["metadata"].get("stack_trace", ""))[-1:]
        here = "".join(f"# File: {at.filename}:{at.line} in {at.function}, code: {at.text}" for at in found)
        if here and here != place:
            lines += [""] * (place != "") + [f"        {here}"]
        place = here or place
        lines += [f"        {each}" for each in _statements(node, typed)]
        inner_graphs += [argument["arg"]["as_graph"] for argument in node["inputs"] if argument["arg"].get("as_graph")]
    lines.append(f"        return ({', '.join(map(_value_text, graph['outputs']))}"
                 f"{',' * (len(graph['outputs']) == 1)})")
    for inner in inner_graphs:
        names = [_value_text(each) for each in inner["graph"]["inputs"]]
        lines += ["", *(f"    {each}" for each in _graph(inner["name"], inner["graph"], names))]
    return lines


def _statements(node: Mapping[str, Any], typed: Callable[[str], str]) -> Iterator[str]:
    """Yield the statement of a node; for several results one more each, as torch prints them."""
    arguments = []
    for each in node["inputs"]:
        text = _value_text(each["arg"])
        arguments.append(f"{each['name']} = {text}" if each.get("kind") == 2 else text)
        if "as_graph" in each["arg"]:
            yield f"{text} = self.{text}"
    call = f"{node['target'].removeprefix('_')}({', '.join(arguments)})"
    results = node["outputs"]
    if len(results) == 1:
        if "as_tensors" not in results[0]:
            yield f"{typed(_value_text(results[0]))} = {call}"
            return
        results = results[0]["as_tensors"]
    name = node.get("name") or "_".join(["results", *(_value_text(each) for each in results[:1])])
    yield f"{name} = {call}"
    for number, each in enumerate(results):
        result = each["name"] if "name" in each else _value_text(each)
        if result != "None":
            yield f"{typed(result)} = {name}[{number}]"


def _value_text(value: Any) -> str:
    """Return a value as Python: ``{"as_ints": [1, 2]}`` is ``[1, 2]``, ``{"as_tensor": {"name": "x"}}`` is ``x``."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value_text, value))}]"
    if not isinstance(value, dict):
        return repr(value)
    if "class_fqn" in value or value.keys() in ({"name"}, {"name", "graph"}):
        return str(value["name"])
    (kind, content), = value.items()
    match kind:
        case "as_scalar_type" | "as_layout" | "as_memory_format":
            return f"torch.{_ENUMS[kind][content]}"
        case "as_none":
            return "None"
        case "as_expr":
            return _expression(ast.parse(content["expr_str"], mode="eval").body)
        case "as_name" | "as_operator":
            return str(content)
        case "as_float" if isinstance(content, str):  # (JSON has no infinity)
            return f"float({content!r})"
        case "as_device":
            index = "" if content["index"] is None else f", index={content['index']}"
            return f"device(type={content['type']!r}{index})"
        case "as_complex":
            return repr(complex(content["real"], content["imag"]))
        case "as_string_to_argument":
            return "{" + ", ".join(f"{key!r}: {_value_text(each)}" for key, each in content.items()) + "}"
    return _value_text(content)


def _expression(node: ast.expr) -> str:
    """Return an expression of sympy as people write it: ``Mul(Integer(2), Symbol('s25', ...))`` is ``2*s25``."""
    if not isinstance(node, ast.Call):
        return ast.unparse(node)
    name = ast.unparse(node.func)
    if name in ("Symbol", "Integer", "Float") and isinstance(node.args[0], ast.Constant):
        return str(node.args[0].value)
    parts = [_expression(each) for each in node.args]
    if name == "Integer":
        return parts[0]
    if name not in _OPERATORS:
        return f"{name}({', '.join(parts)})"
    # (Another operation is in parentheses, and the same one unless its operands may be grouped as they like.)
    free = name in ("Add", "Mul")
    closed = [f"({part})" if part.startswith("-") and not free or isinstance(each, ast.Call) and (
        inner := ast.unparse(each.func)) in _OPERATORS and not (free and inner == name) else part
        for each, part in zip(node.args, parts)]
    return _OPERATORS[name].join(closed if name != "Add" else parts)
