"""The circumstances of the recompiles of a run: those of a function found once, those of a recompile beside them."""

from __future__ import annotations

from dataclasses import replace

from ...advice.recompile_circumstances import Circumstances
from ...records.model import Compilation
from ..run_index import RunIndex
from .arguments import arguments
from .callers import is_called_by_library
from .failed_guards import failed_guards
from .fixed_sizes import fixed_sizes
from .function_versions import FunctionVersions
from .new_version import NewVersions
from .open_sizes import open_sizes
from .program_files import ProgramFiles
from .variable_uses import variable_uses


class CircumstancesOfRun:
    """The circumstances of the recompiles of one run."""

    def __init__(self, run: RunIndex) -> None:
        self.run = run
        self._files = ProgramFiles(run.source)
        self._new_versions = NewVersions(run)
        self._of_functions: dict[tuple[int, int], Circumstances] = {}

    def of(self, compilation: Compilation) -> Circumstances:
        """Return the circumstances of a recompile."""
        key = compilation.compile_id.frame_key
        if key not in self._of_functions:  # (the same for all versions of a function, of which there may be hundreds)
            self._of_functions[key] = self._of_function(compilation)
        known = self._of_functions[key]
        return replace(
            known, failed=failed_guards(self.run, compilation, self._files),
            version=self._new_versions.of(compilation, known.fixed, known.open),
            all_static=(compilation.arguments or {}).get("dynamic") == "False",
            in_library=is_called_by_library(compilation))

    def _of_function(self, compilation: Compilation) -> Circumstances:
        """Return what is the same for all recompiles of the function that was compiled."""
        versions = FunctionVersions(self.run, compilation)
        return Circumstances(
            fixed=fixed_sizes(versions, self._files), open=open_sizes(versions, self._files),
            uses=variable_uses(self.run, compilation, self._files), arguments=arguments(self.run, compilation))
