"""What the version that a recompile made differs in from the earlier ones."""

from __future__ import annotations

from ...advice.recompile_circumstances import FixedSizes, NewVersion, OpenSizes
from ...records.model import Compilation
from ..markdown import code
from ..run_index import RunIndex
from ..version_differences import Difference


class NewVersions:
    """The versions that the recompiles of one run made."""

    def __init__(self, run: RunIndex) -> None:
        self.run = run
        self._equal_sizes: dict[tuple[tuple[int, int], str], list[str]] = {}

    def of(self, compilation: Compilation, fixed: FixedSizes, open_sizes: OpenSizes) -> NewVersion:
        """Return what the version that a recompile made differs in.

        Args:
            compilation: the recompile.
            fixed: what versions of the function hold for one value.
            open_sizes: what versions of it leave open.
        """
        return NewVersion(
            differs=any(_is_size(each) or not each.subject.startswith("self.")
                        for each in self.run.differences(compilation)),
            along=self._along(compilation), fixed_along=self._fixed_along(compilation, fixed, open_sizes),
            modules=self._modules(compilation, fixed), breaks_at=self._breaks_at(compilation))

    def _along(self, compilation: Compilation) -> tuple[str, ...]:
        """Return the sizes that go with the one that torch names first.

        Those that one version held for one value of, and the one compiled then leaves open, too; and those that are the
        same in a version.
        """
        along = [each.subject for each in self._other_sizes(compilation)
                 if int(each.was) > 1 and not each.now.isdigit()]
        subject = next((change.subject for change in self.run.changes(compilation)), "")
        return tuple(dict.fromkeys([*along, *self._sizes_equal_to(subject, compilation)]))

    def _fixed_along(self, compilation: Compilation, fixed: FixedSizes, open_sizes: OpenSizes) -> dict[str, str]:
        """Return the sizes that changed to another number and that no version leaves open, with what fixes them."""
        return {each.subject: fixed.places[each.subject] for each in self._other_sizes(compilation)
                if each.now.isdigit() and each.subject in fixed.places and each.subject not in open_sizes.ranges}

    def _other_sizes(self, compilation: Compilation) -> list[Difference]:
        """Return the sizes in which it differs, and of which the earlier version held one number."""
        return [each for each in self.run.differences(compilation) if _is_size(each) and each.was.isdigit()]

    def _sizes_equal_to(self, subject: str, compilation: Compilation) -> list[str]:
        """Return the sizes that are the same as one in any version of the function."""
        key = compilation.compile_id.frame_key, subject
        if key not in self._equal_sizes:  # (a function may have hundreds of versions)
            self._equal_sizes[key] = [
                size for version in self.run.versions_beside(compilation)
                for size, name in version.sizes.names.items()
                if size != subject and name == version.sizes.names.get(subject)]
        return self._equal_sizes[key]

    def _modules(self, compilation: Compilation, fixed: FixedSizes) -> dict[str, int]:
        """Return the fixed sizes that changed along with those of ``self``'s tensors.

        Another module was called.
        """
        subjects = [change.subject for change in self.run.changes(compilation)[:1] if change.subject in fixed.places]
        if not subjects or not any(each.subject.startswith("self.") and _is_size(each)
                                   for each in self.run.differences(compilation)):
            return {}
        modules = {tuple(one.text for one in version.conditions if one.tensor and one.root == "self")
                   for version in self.run.versions_beside(compilation)}
        return dict.fromkeys(subjects, len(modules))

    def _breaks_at(self, compilation: Compilation) -> str:
        """Return the place of a graph break in this version, where none before it has one; ``""`` for none."""
        this = compilation.compile_id
        if any(each.breaks for each in self.run.capture.compilations
               if each.compile_id.frame_key == this.frame_key and each.compile_id.key < this.key):
            return ""
        return next((code(self.run.short_place(broken.location)) for broken in compilation.breaks
                     if broken.location is not None), "")


def _is_size(difference: Difference) -> bool:
    return ".shape[" in difference.subject
