"""Arguments as people write them on the command line."""

import pytest

from depyf.fitting.given import Symbol, TensorValue, contiguous, shown, type_name
from depyf.fitting.written import NotAValue, arguments, numbers


def read(*texts):
    return {name: shown(value) for name, value in arguments(texts).items()}


def test_forms():
    assert read("x=f32[3,4]", "n=4", "flag=True", "mode='train'", "r=-0.5", "none=None") == {
        "x": "f32[3, 4]", "n": "4", "flag": "True", "mode": "'train'", "r": "-0.5", "none": "None"}
    assert read("s=i64[]", "xs=[f32[2], bf16[2]]", "d={'a': b8[1]}", "self.training=False", "xs[0].k=inf") == {
        "s": "i64[]", "xs": "[f32[2], bf16[2]]", "d": "{'a': b8[1]}", "self.training": "False", "xs[0].k": "inf"}
    assert read("d=torch.float32", "c=torch.device('cuda:1')") == {
        "d": "torch.float32", "c": "device(type='cuda', index=1)"}


def test_options_of_a_tensor():
    text = "f32[3, 4](stride=(1, 3), device='cuda:0', grad=True)"
    given = arguments([f"x={text}"])["x"]
    assert (given.stride, given.device, given.requires_grad) == ((1, 3), "cuda:0", True)
    assert shown(given) == text
    assert arguments(["x=float32[3,4]"])["x"].stride == (4, 1)


def test_a_name_means_the_same_object():
    given = arguments(["x=f32[2]", "y=x", "z=f32[2]"])
    assert given["x"] is given["y"] and given["x"] is not given["z"]


@pytest.mark.parametrize("text, message", [
    ("x", "x=f32"), ("x=f32[a]", "not known"), ("x=g32[1]", "not known"), ("x=f32[-1]", "0 or more"),
    ("x=f32[2](gard=True)", "gard is not known"), ("x=f32[2](stride=(1, 2))", "1 sizes and 2 strides"),
    ("x=train", "train is not known"), ("1+=2", "no argument"), ("x=__import__('os').getpid()", "not known")])
def test_what_is_no_value(text, message):
    with pytest.raises(NotAValue, match=message):
        arguments([text])


def test_sizes():
    assert numbers("x.0=1,2,8") == (("x.0",), (1, 2, 8))
    assert numbers("x.0, y.-1=4") == (("x.0", "y.-1"), (4,))
    for text in ("x.0", "x.0=a", "x.0=", "=1", "x,,y=1"):
        with pytest.raises(NotAValue, match="x.0=1,2,8,16"):
            numbers(text)


@pytest.mark.parametrize("shape, stride, other, expected", [
    ((2, 3), (3, 1), (4, 3), (3, 1)),  # contiguous
    ((2, 3), (1, 2), (4, 3), (1, 4)),  # transposed
    ((2, 8, 4, 4), (128, 1, 32, 8), (1, 8, 4, 4), (128, 1, 32, 8)),  # channels last
    ((2, 3), (0, 1), (4, 3), (0, 1)),  # expanded
    ((2, 3), (6, 2), (2, 5), (6, 2)),  # every other
])
def test_layout_is_kept(shape, stride, other, expected):
    assert TensorValue(shape, stride).with_shape(other).stride == expected


def test_small_ones():
    assert contiguous((3, 0, 2)) == (2, 2, 1)
    assert type_name(TensorValue((), (), cls="Parameter")) == "torch.nn.parameter.Parameter"
    assert type_name(Symbol("torch.float32", "torch.dtype")) == "torch.dtype"
    assert len(shown("x" * 200)) == 80
