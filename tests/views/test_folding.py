"""Ranges of numbers, and layers in the paths of modules. (Layers in expressions: test_all_guards.py.)"""

import pytest

from depyf.model.folding import (
    expression_pattern,
    fold,
    layer_numbers,
    layer_pattern,
    layer_ranges,
    listed_numbers,
    up_to_layer,
)


@pytest.mark.parametrize("numbers, shortest, text", [
    ([0, 1, 2, 4, 6, 7], 3, "0-2, 4, 6, 7"), ([0, 1, 2, 4, 6, 7], 2, "0-2, 4, 6-7"), ([], 3, ""), ([5], 3, "5"),
    ([9, 8, 7, 3], 3, "9-7, 3"), ([1, 2, 3, 2, 1], 2, "1-3, 2-1"), ([3, 3], 2, "3, 3")])
def test_ranges_of_numbers(numbers, shortest, text):
    assert listed_numbers(numbers, shortest) == text


@pytest.mark.parametrize("path, numbers, pattern, whole", [
    ("layers.3", (3,), "layers.#", "layers.#"), ("a.10.b.2.up", (10, 2), "a.10.b.#.up", "a.#.b.#.up"),
    ("conv2d", (), "conv2d", "conv2d"), ("", (), "", "")])
def test_numbers_in_a_path(path, numbers, pattern, whole):
    assert (layer_numbers(path), layer_pattern(path), layer_pattern(path, every=True)) == (numbers, pattern, whole)


def test_layers_of_paths():
    assert layer_ranges(["a.5.b", "a.4.b", "a.3.b", "a.1.b"]) == "a.5-3, 1.b"
    assert up_to_layer("a.10.b.2.up", 0) == "a.10" and up_to_layer("a.10.b.2.up", 1) == "a.10.b.2"


def test_numbers_in_an_expression():
    assert expression_pattern("L['a']._modules['10'].b[2].c == [3, 4] + d[0:1] + e[") == (
        "L['a']._modules[#].b[#].c == [3, 4] + d[0:1] + e[")


def test_items_are_folded_in_the_order_of_the_first():
    assert fold([3, 1, 5, 2], lambda each: each % 2) == {1: [3, 1, 5], 0: [2]}
