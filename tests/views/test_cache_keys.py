"""What is said of graphs that were not in Inductor's cache."""

import pytest

from depyf.records.model import (
    CacheKeyPart,
    CacheLookup,
    Capture,
    Compilation,
    CompiledGraph,
    CompileId,
    GraphStage,
)
from depyf.views import cache_keys


def run(*lookups):
    """Return a run of lookups ``(outcome, {part: digest}, options)``, a compilation each."""
    return Capture(compilations=tuple(
        Compilation(CompileId(0, number), caches=(CacheLookup(
            "fx_graph", outcome, "", tuple(CacheKeyPart(*part) for part in key.items()), options),))
        for number, (outcome, key, options) in enumerate(lookups)))


KEY = {"gm": "1", "example_inputs": "2", "inductor_config": "3", "custom": "4", "cache_key_tag": "5"}


@pytest.mark.parametrize("changed, options, words", [
    ({"example_inputs": "x"}, (), ["(the inputs): `[0/0]`.", "mark the sizes that change"]),
    ({"gm": "1", "inductor_config": "x"}, ("max_autotune = True",),
     ["(options of `torch._inductor.config`)", "because `max_autotune = True` is set now and was not"]),
    ({"inductor_config": "x"}, (), ["an option differs (some are set by environment variables"]),
    ({"custom": "x"}, (), ["(`custom`)", "make `custom` the same in both runs"]),
    ({"example_inputs": "x", "custom": "y"}, (), ["(the inputs and `custom`)"]),
    ({"cache_key_tag": "of depyf"}, (), ["though the key is that of the first run: `[0/0]`. It was emptied"]),
])
def test_between_two_runs(changed, options, words):
    lines = "\n".join(cache_keys.between(run(("hit", KEY, ())), run(("miss", {**KEY, **changed}, options))))
    for word in words:
        assert word in lines, lines


def test_nothing_is_said_of_what_was_found_or_never_there():
    assert cache_keys.between(run(("hit", KEY, ())), run(("hit", {**KEY, "custom": "x"}, ()))) == []
    assert cache_keys.between(run(("miss", KEY, ())), run(("miss", KEY, ()))) == []
    assert cache_keys.between(run(("miss", {}, ())), run(("miss", {}, ()))) == []


def test_graphs_stand_together_whose_options_changed_alike():
    """Forward and backward graph of one compilation have one id."""
    def of(functions):
        return Capture(
            compilations=tuple(Compilation(CompileId(number, 0), caches=tuple(CacheLookup(
                "fx_graph", "miss", "", tuple(CacheKeyPart(*part) for part in {
                    **KEY, "gm": f"{number}{direction}", "inductor_config": str(options)}.items()), options)
                for direction in range(2))) for number, options in enumerate(functions)),
            graphs=tuple(CompiledGraph(f"g{number}", "", CompileId(number, 0), "inductor", (
                GraphStage("Backward_graph", 0, ""),)) for number in range(len(functions))))

    lines = cache_keys.between(of([("max_autotune = True",), ("epilogue_fusion = False", "max_fusion_size = 2")]),
                               of([(), ("max_fusion_size = 1",)]))
    assert [line for line in lines if line.startswith(("Not in", "* because"))] == [
        "Not in Inductor's cache, as the key is another (options of `torch._inductor.config`): `[0/0]`.",
        "* because `max_autotune = True` was set and is not now",
        "Not in Inductor's cache, as the key is another (options of `torch._inductor.config`): `[1/0]`.",
        "* because `epilogue_fusion = False` was set and is not now; `max_fusion_size` was `2` and is `1`"]
