"""Numbers in compiled code where the program has text: told where torch does it, and only there."""

import ast

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.records import store
from depyf.views.run_index import RunIndex
from depyf.views.user_source import _body, _handed_on, _place
from depyf.views.verdict import verdict


class Holder:
    def __init__(self):
        self.message = self.other = ""

    def note(self, value):
        self.message = f"{value:.2f}"


def set_here(holder, x, n):
    holder.message = f"{n:.3f}"
    return x * n


def set_elsewhere(holder, x, n):
    holder.note(n)
    return x * n


def with_text_around(holder, x, n):
    holder.message = f"n={n:.3f}"
    return x * n


def by_format(holder, x, n):
    holder.message = "{:.3f}".format(n)  # noqa: UP032
    return x * n


def a_number(holder, x, n):
    holder.message = n
    return x * n


def of_two_kinds(holder, x, n):
    holder.message = n
    other = Holder()
    other.message = f"{x.shape[0]}"
    return x * n


def without_naming_it(holder, x, n):
    setattr(holder, "message", n)  # noqa: B010
    holder.other = Holder()
    holder.other.message = f"{x.shape[0]}"
    return x * n


def returned(holder, x, n):
    return x * n, f"{n:.2f}"


def returned_as_it_is(holder, x, n):
    return x * n, n


def run(tmp_path, function, numbers):
    """Return the verdict, and whether compiled code gave a number where plain Python gives text."""
    torch._dynamo.reset()
    compiled, wrong = torch.compile(function, backend="eager"), False
    with depyf.prepare_debug(str(tmp_path), files="now", page=False):
        for number in numbers:
            holders = Holder(), Holder()
            try:
                results = [call(holder, torch.ones(2), number) for call, holder in zip((compiled, function), holders)]
            except torch._dynamo.exc.InternalTorchDynamoError as error:  # (2.15)
                pytest.skip(f"this torch raises an error of its own in its place: {error}")
            values = [(holder.message, *(result[1:] if isinstance(result, tuple) else ()))
                      for holder, result in zip(holders, results)]
            wrong = wrong or list(map(type, values[0])) != list(map(type, values[1]))
    return verdict(RunIndex(store.read(str(tmp_path)))), wrong


@pytest.mark.parametrize("numbers", [(1.5, 2.5, 3.5), (5, 6, 7)])
@pytest.mark.parametrize("function,what", [
    (set_here, 'sets `holder.message` to the number `n`, where your program has the text `f"{n:.3f}"`'),
    (set_elsewhere, 'sets `holder.message` to the number `n`, where your program has the text `f"{value:.2f}"`'),
    (returned, 'returns the number `n`, where your program has the text `f"{n:.2f}"`')])
def test_a_number_for_a_text_is_told(tmp_path, function, what, numbers):
    told, wrong = run(tmp_path, function, numbers)
    if not wrong:
        pytest.skip("this torch has no such error")
    (sentence,) = told
    assert sentence.startswith(f"`{function.__name__}` gives another value than plain Python in `[0/1]`: it {what} (`")
    texts = [path.read_text() for path in tmp_path.glob("__transformed_code_*.py")]
    assert sum("# not what plain Python does, by an error of torch's: it" in text for text in texts) == 1


@pytest.mark.parametrize("function", [
    with_text_around, by_format, a_number, of_two_kinds, without_naming_it, returned_as_it_is])
def test_nothing_else_is_told(tmp_path, function):
    told, wrong = run(tmp_path, function, (1.5, 2.5, 3.5))
    assert not wrong and not any("another value" in sentence for sentence in told)


def broken_inside(x, n):
    y = x * n
    print(f"step {n}: {y.sum().item():.2f}")
    return y


def broken_inside_of_another(x, n):
    y = x * n
    print("  ".join([f"{n:3d} of 9: {y.sum().item():.2f}"]))
    return y


def broken_inside_by_format(x, n):
    y = x * n
    print("step {}: {:.2f}".format(n, y.sum().item()))  # noqa: UP032
    return y


def broken_inside_with_text(x, n):
    y = x * len(n)
    print(f"step {n}: {y.sum().item():.2f}")
    return y


def broken_before(x, n):
    y = x * n
    total = y.sum().item()
    print(f"step {n}: {total:.2f}")
    return y


def run_until_it_raises(tmp_path, function, values):
    """Return the verdict, and whether a call raised an error that plain Python does not."""
    torch._dynamo.reset()
    compiled, raised = torch.compile(function, backend="eager"), False
    with depyf.prepare_debug(str(tmp_path), files="now", page=False):
        for value in values:
            function(torch.ones(2), value)
            try:
                compiled(torch.ones(2), value)
            except TypeError as error:
                raised = "expected str instance" in str(error)
            except torch._dynamo.exc.InternalTorchDynamoError as error:  # (2.15)
                pytest.skip(f"this torch raises an error of its own in its place: {error}")
    return verdict(RunIndex(store.read(str(tmp_path)))), raised


@pytest.mark.parametrize("function,text,piece", [
    (broken_inside, "step {n}: {y.sum().item():.2f}", "{n}"),
    (broken_inside_of_another, "{n:3d} of 9: {y.sum().item():.2f}", "{n")])
def test_a_number_that_is_handed_on_inside_of_an_f_string_is_told(tmp_path, function, text, piece):
    told, raised = run_until_it_raises(tmp_path, function, (5, 6, 7))
    if not raised:
        pytest.skip("this torch has no such error")
    sentence = told[0]
    assert sentence.startswith(
        f"`{function.__name__}` raises a `TypeError` that plain Python does not in `[0/1]`: it hands the number `n` on "
        f'over the graph break in `f"{text}"`, where your program has the text of `{piece}'), told
    texts = [path.read_text() for path in tmp_path.glob("__transformed_code_*.py")]
    assert sum("by an error of torch's: it hands the number" in one for one in texts) == 1


def test_what_only_begins_as_an_f_string_does_is_not_its_pieces():
    text, given = (ast.parse(each, mode="eval").body for each in ('f"step {n}: {y}!"', "('step ', n, 'step ', m, ': ', y)"))

    def handed(begin):
        return [ast.unparse(one) for _, one in _handed_on(text.values, given.elts[begin:])]

    assert [handed(begin) for begin in range(5)] == [[], [], ["m", "y"], [], []]
    assert [ast.unparse(one) for _, one in _handed_on(
        text.values, ast.parse("('step ', m, ': ', y, graph_out)", mode="eval").body.elts)] == ["m"]


@pytest.mark.parametrize("function,values", [
    (broken_inside_by_format, (5, 6, 7)), (broken_inside_with_text, ("a", "bc", "def")), (broken_before, (5, 6, 7))])
def test_what_hands_on_no_number_for_a_text_is_not_told(tmp_path, function, values):
    told, raised = run_until_it_raises(tmp_path, function, values)
    assert not raised and not any("hands the number" in sentence for sentence in told)


def test_code_of_any_depth_is_read():
    assert _body(f"def f():\n    return {'-' * 100_000}1\n") == []
    deep = ast.parse("+".join(["n"] * 500), mode="eval").body
    for _ in range(100_000):
        deep = ast.UnaryOp(ast.USub(), deep)
    assert _place(deep) == ""
