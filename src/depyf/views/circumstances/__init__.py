"""The circumstances of a recompile that advice on it depends on (:mod:`depyf.advice.recompile_circumstances`).

``of_run`` puts them together. Each other module here finds one part of them, or what several parts take:

    function_versions   the versions of the function      program_files    what the lines of a file do
    fixed_sizes         sizes held for one value          variable_uses    what its lines do with variables
    open_sizes          sizes left open, and conditions   arguments        what it takes, and where that is made
    open_ranges         the ranges of these               failed_guards    of one recompile: what did not fit
    callers             who calls the function            new_version      of one recompile: what was compiled then
"""
