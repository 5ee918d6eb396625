"""File names: legal on every system, distinct, and the same in every run."""

from __future__ import annotations

import keyword
import unicodedata

from .model import CompileId

LONGEST = 120


def legal_identifier(name: str) -> str:
    """Make a Python identifier of any name (``<lambda>`` becomes ``lambda_``)."""
    # Identifiers are compared in normal form NFKC, and so are names in bytecode.
    normal = unicodedata.normalize("NFKC", name)
    if normal.isidentifier() and not keyword.iskeyword(normal):
        return _shortened(normal, name)
    cleaned = "".join(c if ("_" + c).isidentifier() else " " for c in normal)
    cleaned = "_".join(cleaned.split()).strip("_") or "anonymous"
    if keyword.iskeyword(cleaned):
        cleaned += "_"
    if not cleaned[0].isidentifier():
        cleaned = "_" + cleaned
    if name.startswith("__") and not cleaned.startswith("__"):
        cleaned = "__" + cleaned
    return _shortened(cleaned, name)


def _shortened(cleaned: str, name: str) -> str:
    if len(cleaned.encode()) <= LONGEST:
        return cleaned
    import hashlib  # (most names are short)

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    head = cleaned.encode()[: LONGEST - 9].decode("utf-8", "ignore")
    return f"{head}_{digest}"


def function_identifier(name: str) -> str:
    """Make a Python identifier of the name of a function: ``LlamaModel.forward`` -> ``LlamaModel_forward``."""
    return legal_identifier(name.replace(".", "_"))


class Numbers:
    """Counts names of one beginning: ``f_0``, ``f_1`` (letter case does not count)."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def next(self, base: str) -> str:
        """Return the next name with this beginning: ``f_0`` for the first ``f``."""
        number = self._counts.get(base.lower(), 0)
        self._counts[base.lower()] = number + 1
        return f"{base}_{number}"


class FileNames:
    """Hands out file names, each once (letter case does not count: some file systems ignore it)."""

    def __init__(self) -> None:
        #: Hashes of names, with those of the keys that they are of. (A long run has thousands, nearly all of them the
        #: usual ones of their keys. Were two hashes the same, a name would have a number that it need not have.)
        self._owners: dict[int, int] = {}
        self._unusual: dict[object, str] = {}

    def give(self, key: object, usual: str, known: str = "") -> str:
        """Return the name for ``key``, with a number if another key has taken that.

        Args:
            key: what the file is of.
            usual: the name, always the same for this key.
            known: the name that it has already, if it has one.
        """
        if key in self._unusual:
            return self._unusual[key]
        if self._owners.get(hash(usual.lower())) == hash(key):
            return usual
        wanted = known or usual
        stem, dot, suffix = wanted.partition(".")
        candidate, count = wanted, 1
        while hash(candidate.lower()) in self._owners:
            count += 1
            candidate = f"{stem}_{count}{dot}{suffix}"
        self._owners[hash(candidate.lower())] = hash(key)
        if candidate != usual:
            self._unusual[key] = candidate
        return candidate

    def of_stage(self, graph: str, stage: str, index: int, known: str = "", is_python: bool = True) -> str:
        """Return the file name of a text of a stage: ``__compiled_fn_1.Captured_Graph.0.py``, or ``known``."""
        usual = f"{legal_identifier(graph)}.{legal_identifier(stage)}.{index}.{'py' if is_python else 'txt'}"
        return self.give(("graph", graph, stage, index), usual, known)

    def of_kernel(self, graph: str, index: int, known: str = "") -> str:
        """Return the file name of a module that Inductor generated: ``__compiled_fn_1.kernel_0.py``, or ``known``."""
        return self.give(("kernel", graph, index), f"{legal_identifier(graph)}.kernel_{index}.py", known)

    def of_transformed(self, text_name: str, compile_id: CompileId, function_name: str, known: str = "") -> str:
        """Return the file name of transformed code, by the name in its text: ``__transformed_code_0_for_f.py``.

        Args:
            text_name: that name.
            compile_id: of the code.
            function_name: that it is of.
            known: the name, if it has one already.
        """
        if not text_name.startswith("__transformed_code_"):
            text_name = f"__transformed_code_0_for_{legal_identifier(function_name)}"
        number, _, of = text_name.removeprefix("__transformed_code_").partition("_for_")
        usual = f"__transformed_code_{number}_for_{legal_identifier(of)}.py"
        return self.give(("transformed", compile_id, function_name), usual, known)
