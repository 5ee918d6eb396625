"""A file that torch saved (``model.pt2``) -> :class:`~depyf.records.model.Capture`.

A package of AOTInductor, or an archive of ``torch.export.save``: a zip. No torch is needed; nothing of the file is
imported or run. Formats: torch/export/pt2_archive, torch/_export/serde/schema.py.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .. import budgets
from ..reading import json_value, opened, text
from ..records import naming
from ..records.model import Capture, CompiledGraph, CompileId, GraphStage, SourceLocation
from ..records.store import FROM_FILE, RecordsError
from .exported_program import exported_program

_ZIP = b"PK"
#: What reading raises where a file is damaged, or has a value of another type than torch writes.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, TypeError,
            KeyError, IndexError, AttributeError, OverflowError)
_CHECKED = "inputs, as they are checked where AOTI_RUNTIME_CHECK_INPUTS=1 is set"
_LIBRARIES = "data/aotinductor/"
_EXPORTED = re.compile(r"(?:^|/)models/([^/]+)\.json$|(?:^|/)(serialized_exported_program)\.json$")
_CONSTANT = re.compile(r"constants_info_\[(\d+)\]\.(\w+) = (.*);")
_INPUT = re.compile(r'inputs_info_\[(\d+)\]\.name = "(.*)";')
_SPEC = re.compile(r'(in|out)_spec_ = R"\((.*?)\)"', re.DOTALL)
_VERSION = re.compile(r"^__version__ = ['\"](.*)['\"]$", re.MULTILINE)
#: A name in the metadata of a package, in words.
_FACTS = {"AOTI_DEVICE_KEY": "device", "AOTI_PLATFORM": "platform", "AOTI_MACHINE": "machine",
          "AOTI_CPU_ISA": "CPU instruction set", "AOTI_COMPUTE_CAPABILITY": "compute capability"}

#: What torch compiles for, by the names in the metadata (torch/_inductor/cpu_vec_isa.py), as Linux calls it.
_INSTRUCTIONS = {"AVX2": {"avx2", "fma", "f16c"}, "AVX512": {"avx512f", "avx512dq", "avx512vl", "avx512bw", "fma"}}


def read(path: str) -> Capture | None:
    """Read a file that torch saved; ``None`` for a file that is of none of these formats.

    Raises:
        RecordsError: it is of one of these formats, but damaged, or has nothing that torch saved.
    """
    try:
        with opened(path, budgets.RUN) as file:
            if file.read(len(_ZIP)) != _ZIP:
                return None
            with zipfile.ZipFile(file) as archive:
                return _archive(path, archive)
    except _DAMAGED as error:
        if isinstance(error, RecordsError):
            raise
        raise RecordsError(f"{path!r} is damaged, or is not as torch writes it ({type(error).__name__}: {error}); "
                           "give the file as torch saved it.") from error
    except OSError as error:
        raise RecordsError(f"{path!r} cannot be read ({error.strerror or error}).") from error


def _archive(path: str, archive: zipfile.ZipFile) -> Capture:
    sizes = {info.filename: info.file_size for info in archive.infolist() if not info.is_dir()}
    # (Where the end is missing, the end of an archive that is in this one was found.)
    if any(info.header_offset == 0 for info in archive.infolist()) is not bool(sizes):
        raise ValueError("its end is missing")
    notes: list[str] = []
    graphs: list[CompiledGraph] = []
    packages: dict[str, list[str]] = {}
    for name in sizes:
        if (_LIBRARIES in name) and "/" in (within := name.partition(_LIBRARIES)[2]):
            packages.setdefault(within.partition("/")[0], []).append(name)
        elif match := _EXPORTED.search(name):
            model = match[1] or "model"
            program = json_value(_member(archive, name))
            weights = [each for each in sizes if "/data/" in f"/{each}"]
            graphs.append(_graph(f"exported_{model}", "torch.export", [
                (naming.EXPORTED, exported_program(program)),
                ("contents", _contents(_exported_facts(program), {
                    "guards": program.get("guards_code", []), "files": _sized(sizes, [name, *weights])}))]))
            version, here = str(program.get("torch_version", "")), _installed_torch()
            if version and here:
                notes.append(
                    f"saved by torch {version}, which is the version here" if version == here else
                    f"saved by torch {version}; here is torch {here}, which refuses a file whose schema has another "
                    "major version; whether it loads this one was not tried")
    for model, names in packages.items():
        package = _Package(archive, names)
        graphs.append(_graph(f"aoti_{model}", "AOTInductor", [
            *package.codes, ("contents", _contents(package.facts(), {
                _CHECKED: [*package.inputs()], "constants": package.constants(), "files": _sized(sizes, names)}))]))
        notes += package.notes(model)
    if not graphs:
        raise RecordsError(
            f"{path!r} is an archive, but neither a package of AOTInductor (data/aotinductor/) nor one of "
            f"torch.export.save (models/*.json). It has {len(sizes)} files"
            + (f": {', '.join(list(sizes)[:4])}{', ...' * (len(sizes) > 4)}" if sizes else "") + ".")
    return Capture(graphs=tuple(graphs), notes=(f"{FROM_FILE}{path}", *dict.fromkeys(filter(None, notes))))


def _member(archive: zipfile.ZipFile, name: str) -> str:
    """Return the text of a file in an archive; raise ``ValueError`` where it is too large."""
    if too_many := budgets.LINE.exceeded(archive.getinfo(name).file_size):
        raise ValueError(f"{name}: {too_many}")
    return archive.read(name).decode()


def _graph(name: str, by: str, texts: Iterable[tuple[str, str]]) -> CompiledGraph:
    """Return ``(stage, text)`` as stages of a graph: torch's graphs are Python, other texts go by their names."""
    name, files = naming.legal_identifier(name), naming.FileNames()
    stages: list[GraphStage] = []
    for stage, each in texts:
        index, shown_as = sum(known.stage == stage for known in stages), "" if (
            stage in naming.ADJECTIVES) else naming.OF_EXPORTS.get(stage, stage)
        stages.append(GraphStage(stage, index, each, shown_as=shown_as,
                                 file=files.stage_file(name, stage, index, is_python=not shown_as)))
    return CompiledGraph(name, "", CompileId(-1, 0), "", tuple(stages), call=SourceLocation("", 0, by))


def _sized(sizes: Mapping[str, int], names: Iterable[str]) -> list[str]:
    return [f"{name}  {sizes[name]:,} bytes" for name in names]


def _contents(facts: Mapping[str, str], lists: Mapping[str, list[str]]) -> str:
    """Return what a file has, as a text: facts, and lists with their headings."""
    lines = [f"{name}: {value}" for name, value in facts.items() if value]
    for heading, each in lists.items():
        lines += ["", f"{heading} ({len(each)}):", *(f"    {line}" for line in each)] if each else []
    return "\n".join(lines) + "\n"


def _exported_facts(program: Mapping[str, Any]) -> dict[str, str]:
    version = program["schema_version"]
    facts = {"torch": str(program.get("torch_version", "")),
             "schema": f"{version['major']}.{version['minor']}",
             "operator sets": ", ".join(f"{name} {number}" for name, number in program["opset_version"].items()),
             "dialect": ", ".join(program.get("verifiers", ()))}
    for each in program["graph_module"]["module_call_graph"]:
        if each["fqn"] == "" and (called := each.get("signature")):
            return facts | _call_spec(called["in_spec"], called["out_spec"], called.get("forward_arg_names") or ())
    return facts


def _call_spec(inputs: str, outputs: str, names: Iterable[str]) -> dict[str, str]:
    """Return how a model is called and what it returns: ``(x), bias=...`` and ``{'out': ..., 'mean': ...}``."""
    (arguments, keywords) = json_value(inputs)[1]["children_spec"]
    shown = [_tree(each) for each in arguments["children_spec"]]
    keys = json_value(keywords["context"])
    shown += [f"{key}={_tree(each)}" for key, each in zip(keys, keywords["children_spec"])]
    return {"parameters": ", ".join(names), "called with": f"({', '.join(shown)})",
            "returns": _tree(json_value(outputs)[1])}


def _tree(spec: Mapping[str, Any]) -> str:
    """Return a tree of torch's pytree as Python, ``...`` for its leaves."""
    inner = [_tree(each) for each in spec["children_spec"]]
    match spec["type"]:
        case None:
            return "..."
        case "builtins.tuple":
            return f"({', '.join(inner)}{',' * (len(inner) == 1)})"
        case "builtins.list":
            return f"[{', '.join(inner)}]"
        case "builtins.dict":
            return "{" + ", ".join(f"{key!r}: {each}" for key, each in zip(json_value(spec["context"]), inner)) + "}"
    return f"{spec['type']}({', '.join(inner)})"


def _installed_torch() -> str:
    """Return the version of the torch that is installed, which is not imported; ``""`` for none.

    (That of the package's metadata lacks what it was built for: ``+cu130``.)
    """
    paths = (os.path.join(folder, "torch", "version.py") for folder in sys.path)
    path = next(filter(os.path.isfile, paths), None)
    found = _VERSION.search(text(path, budgets.WRITTEN, "replace")) if path else None
    return found[1] if found else ""


class _Package:
    """A model in a package of AOTInductor."""

    def __init__(self, archive: zipfile.ZipFile, names: list[str]) -> None:
        self.metadata: dict[str, str] = {}
        # the stages and texts of its generated code, as the run that made it shows them
        self.codes: list[tuple[str, str]] = []
        self.wrapper = ""
        for name in names:
            if name.endswith("_metadata.json"):
                self.metadata |= {str(key): str(value) for key, value in json_value(_member(archive, name)).items()}
            elif name.endswith((".cpp", ".py", ".cu", ".h")):
                code = _member(archive, name)
                is_wrapper = _INPUT.search(code) is not None or "AOTInductorModel::AOTInductorModel(" in code
                self.wrapper = code if is_wrapper else self.wrapper
                self.codes.append((naming.AOT_CODE if is_wrapper else "inductor_aot_kernel_code", code))
        self.codes.sort(key=lambda each: each[0] != naming.AOT_CODE)

    def facts(self) -> dict[str, str]:
        """Return the metadata, and how the model is called."""
        facts = {_FACTS.get(name, name): value for name, value in self.metadata.items() if value}
        specs = dict(_SPEC.findall(self.wrapper))
        if specs.keys() == {"in", "out"}:
            facts |= _call_spec(specs["in"], specs["out"], ())
        return facts

    def inputs(self) -> Iterator[str]:
        """Yield the inputs, with the types and sizes that the wrapper checks: ``x: float32[2 to 128, 16]``."""
        for _, name in _INPUT.findall(self.wrapper):
            escaped = re.escape(name)
            dtype = re.search(rf"{escaped}_expected_dtype = aoti_torch_dtype_(\w+)\(", self.wrapper)
            sizes = {int(at): fixed for fixed, at in re.findall(rf"\((\d+) != {escaped}_size\[(\d+)\]", self.wrapper)}
            for bound, word in (("<", "from"), (">", "to")):
                for at, limit in re.findall(rf"\({escaped}_size\[(\d+)\] {bound} (\d+)\)", self.wrapper):
                    sizes[int(at)] = f"{sizes.get(int(at), '')} {word} {limit}".strip()
            shown = ", ".join(sizes.get(at, "?") for at in range(max(sizes) + 1)) if sizes else "sizes not checked"
            yield f"{name}: {dtype[1] if dtype else 'type not checked'}[{shown}]"

    def constants(self) -> list[str]:
        """Return the parameters, buffers and other tensors of the model: name, kind, type, size."""
        known: dict[int, dict[str, str]] = {}
        for number, key, value in _CONSTANT.findall(self.wrapper):
            known.setdefault(int(number), {})[key] = value
        lines = []
        for each in known.values():
            kind = each.get("type", "").rpartition("::")[2].rstrip(")").lower()
            name = each.get("original_fqn", each.get("name", "")).strip('"')
            dtype = each.get("dtype", "").removeprefix("cached_torch_dtype_")
            device = each.get("device_type", "").removeprefix("cached_torch_device_type_")
            lines.append(f"{name}: {kind} {dtype}[{each.get('shape', '').strip('{}')}] on {device}, "
                         f"{int(each.get('data_size', 0)):,} bytes stored")
        return lines

    def notes(self, model: str) -> Iterator[str]:
        """Yield whether the model can run on this machine, as far as its metadata says."""
        found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
        here = {"AOTI_PLATFORM": sys.platform, "AOTI_MACHINE": platform.machine()}
        for name, value in filter(lambda each: each[1], self.metadata.items()):
            has = True if (name, value) == ("AOTI_DEVICE_KEY", "cpu") else None  # (None: not known)
            if name in here:
                has = here[name] == value
            elif name == "AOTI_CPU_ISA" and (wanted := _INSTRUCTIONS.get(value)) and os.path.exists("/proc/cpuinfo"):
                flags = re.search(r"^flags\s*: (.*)$", text("/proc/cpuinfo", budgets.WRITTEN, "replace"), re.MULTILINE)
                has = wanted <= set(flags[1].split()) if flags else None
            found[has].append(f"{_FACTS.get(name, name)} {value}" + (
                f" (here {here[name]})" if has is False and name in here else ""))
        for has, words in ((True, "was built for what this machine has"), (False, "was built for another machine"),
                           (None, "was built for what was not compared with this machine")):
            if found[has]:
                yield f"`{model}` {words}: {', '.join(found[has])}"
        yield f"`{model}`: the package does not name the torch that made it, so that is not compared"
