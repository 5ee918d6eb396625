"""``depyf fits``: a dump is asked, without torch. ``DEPYF_UPDATE_GOLDEN=1`` writes the text in ``golden`` anew."""

import dataclasses
import os
import pathlib
import subprocess
import sys

import pytest

from depyf import cli
from depyf.fitting.conditions import tried
from depyf.fitting.given import Given, Symbol, TensorValue, described_call, known_names, known_state
from depyf.fitting.oracle import fit
from depyf.fitting.written import arguments
from depyf.records import store
from depyf.records.model import (
    CacheEntry,
    Capture,
    CodeText,
    Compilation,
    CompiledFunction,
    CompileId,
    Frame,
    Guard,
    GuardFailure,
    SourceLocation,
    TransformedCode,
)

GOLDEN = pathlib.Path(__file__).parent / "golden" / "dump.txt"
LINE = SourceLocation("/home/me/model.py", 14, "forward", "y = self.up(x) * n")
STATE = "check_global_state(grad_mode={}, default_dtype=torch.float32)"


def version(number, rows, *others, tried=0, grad=True):
    tensor = f"check_tensor(L['x'], dtype=torch.float32, device='cpu', size=({rows}, 4), stride=(4, 1), requires_grad=False)"
    guards = [Guard(STATE.format(grad), "", "GLOBAL_STATE", ""), Guard(tensor, "L['x']", "TENSOR_MATCH", "", LINE)]
    guards += [Guard(each, source, "EQUALS_MATCH" if "== 2.0" in each else "LAMBDA_GUARD", "", LINE)
               for source, each in others]
    ids = CompileId(0, number)
    code = TransformedCode(ids, "forward", CodeText("", "exact"), None, ("self", "x", "n"))
    return CacheEntry(ids, tuple(guards), code, (), tried=tried)


SELF = ("L['self'].depth", "L['self'].depth == 3")
SCALE = ("L['n']", "L['n'] == 2.0")
ENTRIES = (
    version(0, 8, SELF, SCALE, tried=1),
    version(1, None, SELF, SCALE, ("L['x']", "2 <= L['x'].size()[0]"), tried=0),
    version(2, 8, SELF, SCALE, tried=2, grad=False),
)


@pytest.fixture
def dump(tmp_path):
    text = CodeText("def forward(self, x, n=2.0): ...", "exact")
    frame = Frame("Decoder_forward", "forward", SourceLocation("/home/me/model.py", 12, "forward"), text, True,
                  ("self", "x", "n"), (), ENTRIES, signature="self, x, n=2.0", title="Decoder.forward")
    resume = Frame("__resume_at_20_1", "torch_dynamo_resume_in_forward_at_15", None, text, False, ("x",), (),
                   (CacheEntry(CompileId(1, 0), (), ENTRIES[0].transformed, ()),), title="Decoder.forward")
    capture = Capture((CompiledFunction("Decoder_forward", (frame, resume)),))
    (tmp_path / store.FILE).write_text("".join(store.lines(capture)))
    return str(tmp_path)


#: Arguments of the command, its exit status.
CALLS = [
    ("Decoder.forward", 3),
    ("Decoder.forward --args x=f32[2,4]", 3),
    ("Decoder.forward --args x=f32[2,4] --state grad_mode=True", 3),
    ("Decoder.forward --args x=f32[2,4] --same", 3),
    ("Decoder.forward --args x=f32[2,4] --same --state grad_mode=True default_dtype=torch.float32", 0),
    ("forward --args x=f32[1,4] n=2.0 self.depth=4", 1),
    ("0/1 --args x=f16[1,4] n=3.0 --same --state grad_mode=False", 1),
    ("forward --args x=f32[2,4] --same --state grad_mode=True default_dtype=torch.float32 --sizes x.0=1,2,8 x.1=4,5 n=3",
     1),
    ("forward --args x=f32[2,4] --same --sizes x.0=1,2", 1),
    ("__resume_at_20_1", 0),
    ("Encoder", 2),
    ("forward --args y", 2),
    ("forward --args x=f32[2,4] --sizes y.0=1", 2),
    ("forward --args x=f32[2,4] --sizes x.2=1", 2),
    ("forward --args x=f32[2,4] --state gradmode=True", 2),
]


def test_text(dump, capsys):
    told = []
    for asked, status in CALLS:
        assert cli.main(["fits", dump, *asked.split(" ")]) == status, asked
        shown = capsys.readouterr()
        told.append(f"$ depyf fits dump {asked}\n{shown.out}{shown.err}(exit status {status})\n")
    text = "\n".join(told)
    if os.environ.get("DEPYF_UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_no_torch_is_loaded(dump):
    code = ("import sys; sys.modules['torch'] = None; from depyf import cli; "
            f"sys.exit(cli.main(['fits', {dump!r}, 'forward', '--args', 'x=f32[1,4]', 'n=3.0']))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_version_that_contradicts_nothing_is_taken_for_the_same(dump, capsys):
    """Of two versions that say other things of the same object neither is taken to hold."""
    cli.main(["fits", dump, "forward", "--args", "x=f32[8,4]", "--same"])
    text = capsys.readouterr().out
    assert "[0/1]  fits if 1 condition holds on what was not given: 1 on torch's state" in text
    assert "self" not in text


def test_that_two_globals_are_one_object_is_no_state_of_torchs_and_stays_the_same():
    one, other = (version(number, rows, ("", "2 <= L['x'].size()[0]"), *more) for number, rows, more in (
        (0, 8, ()), (1, None, [("", "G['torch'].nn is G['__import_nn']")])))
    frame = a_frame((one, other))
    call = described_call(frame, arguments(["x=f32[4,4]"]), {})
    assert fit(frame, call, same=True).version == "0/1"
    (undecided,) = [each.undecided for each in fit(frame, call).versions if each.name == "0/1"]
    assert dict(undecided) == {"torch's state": 1, "globals": 1}


def test_a_condition_whose_text_lacks_its_value_is_not_the_same():
    """Of modes of `__torch_function__` torch compares which are on; each version has the same text."""
    modes = "___check_torch_function_mode_stack()"
    one, other = (version(number, 8) for number in (0, 1))
    one, other = (dataclasses.replace(each, guards=(*each.guards, Guard(modes.lstrip("_"), "", "", modes))) for each in (one, other))
    again = Compilation(CompileId(0, 1), "forward", guard_failures=(GuardFailure(CompileId(0, 0), modes),))
    frame = a_frame((one, other))
    call = described_call(frame, arguments(["x=f32[8,4]"]), {})
    assert fit(frame, call, same=True).version == "0/0"
    assert dict(fit(frame, call, True, [again]).versions[0].undecided) == {"torch's state": 1}


def test_what_cannot_be_written_is_asked_in_the_program():
    """Which object something is no text can tell: then nothing is asked for that would not help."""
    from depyf.fitting.conditions import Finding
    from depyf.fitting.oracle import Fit, VersionFit, advice

    guard = Guard("check_same_object(L['fn'], 'function')", "L['fn']", "ID_MATCH", "")
    open_ = Finding(guard, None, missing="fn (which object it is)")
    answer = Fit("f", None, (VersionFit("0/0", None, open=(open_,)),))
    assert advice(answer, answer) == (
        "Only the running program can answer, as it is on which object fn is: depyf.fits(compiled, ...).")


def test_a_name_that_the_function_lacks_is_refused_with_the_closest_one(dump, capsys):
    assert cli.main(["fits", str(dump), "Decoder.forward", "--args", "xs=f32[8,4]"]) == 2
    assert "has no xs; did you mean x? It has" in capsys.readouterr().err


def test_the_answer_says_that_the_run_did_not_end(dump, capsys):
    """There may be versions that were not recorded."""
    command = ["fits", dump, "Decoder.forward", "--args", "x=f32[1,4]"]
    cli.main(command)
    assert "did not end" not in capsys.readouterr().out
    records = pathlib.Path(dump) / store.FILE
    records.write_text("".join(each for each in records.read_text().splitlines(True) if '"end"' not in each[:20]))
    cli.main(command)
    assert capsys.readouterr().out.endswith(f"\nT{store.NOT_ENDED[1:]}.\n")


def test_a_keyword_argument_has_its_own_name():
    tensor = "check_tensor(L['kwargs']['input_ids'], dtype=torch.float32, device='cpu', size=(4,), stride=(1,))"
    code = TransformedCode(CompileId(0, 0), "forward", CodeText("", "exact"), None, ("x", "kwargs"))
    entry = CacheEntry(CompileId(0, 0), (Guard(tensor, "L['kwargs']['input_ids']", "TENSOR_MATCH", ""),), code, ())
    frame = Frame("forward", "forward", LINE, CodeText("", "exact"), True, ("x", "kwargs"), (), (entry,), "x, **kwargs")
    assert known_names(frame, {"x": 1, "input_ids": 2}) == {"x": 1, "kwargs['input_ids']": 2}
    with pytest.raises(ValueError, match="has no input_idz; did you mean input_ids"):
        known_names(frame, {"input_idz": 2})


def test_names_of_attributes_and_sizes_that_no_version_asks_for():
    frame = a_frame()
    for name in ("self.depth", "x.shape[0]", "x.size()[0]", "n"):
        assert list(known_names(frame, {name: 4})) == [name.replace("shape", "size()")]
    with pytest.raises(ValueError, match=r"has no self.dpth; did you mean self.depth\?"):
        known_names(frame, {"self.dpth": 4})


def test_names_of_torchs_state():
    frame = a_frame()
    assert known_state(frame, {"grad_mode": True, "autocast": {}}) == {"grad_mode": True, "autocast": {}}
    named = known_state(frame, {"torch.is_grad_enabled()": False, "torch.get_num_threads()": 2})  # (as explain says)
    assert named == {"grad_mode": False, "num_threads": 2}
    with pytest.raises(ValueError, match=r"has no gradmode; did you mean grad_mode\?"):
        known_state(frame, {"gradmode": False})
    with pytest.raises(ValueError, match="say it with the dtype"):
        known_state(frame, {"torch.is_autocast_enabled('cpu')": True})


def test_autocast_is_compared_by_device_and_dtype():
    guard = Guard("check_global_state(autocast={'cpu': torch.bfloat16})", "", "GLOBAL_STATE", "")
    for dtype, holds in (("torch.bfloat16", True), ("torch.float16", False)):
        assert tried(guard, Given({}, {"autocast": {"cpu": Symbol(dtype, "torch.dtype")}})).holds is holds
    assert tried(guard, Given({}, {"autocast": {}})).holds is False


def test_what_was_given_is_not_taken_to_be_as_it_was():
    """An object that cannot be written (``f=...``) decides nothing; with ``--same`` neither."""
    entry = version(0, 8, ("L['f']", "check_same_object(L['f'], 'function')"),
                    ("L['c']", "check_type(L['c'], 'Config')"), ("L['c'].width", "L['c'].width == 3"))
    frame = a_frame((entry,))

    def served(*texts):
        return fit(frame, described_call(frame, arguments(["x=f32[8,4]", *texts])), same=True).served

    assert served() is True
    assert served("f=...") is None and served("c=...") is None and served("c.width=3") is True
    assert served("c.width=4") is False


def test_a_tensor_in_the_place_of_a_number_does_not_fit():
    guard = Guard("L['xs'][1] == 1", "L['xs'][1]", "EQUALS_MATCH", "")
    assert tried(guard, Given({"xs": [1, TensorValue((3,), (1,))]})).holds is False


@pytest.mark.parametrize(("state", "holds"), [
    # For a tensor made outside of inference mode and for one made in it: the versions for neither, one, and both.
    ({}, ((True, None, False), (False, True, None))),
    ({"inference_mode": False}, ((True, False, False), (False, True, False))),
    ({"inference_mode": True}, ((False, True, False), (False, False, True)))])
def test_a_version_is_for_a_part_of_inference_mode(state, holds):
    """Torch serves a tensor that was made in it, outside of it, by the version for other tensors in it."""
    raw = ("check_tensor(L['x'], Tensor, DispatchKeySet({}), torch.float32, device=None, requires_grad=False, "
           "size=[3], stride=[1])")
    text = "check_tensor(L['x'], dtype=torch.float32, device='cpu', size=(3,), stride=(1,), requires_grad=False)"
    keys = ("CPU, BackendSelect", ", ADInplaceOrView", ", AutogradCPU")
    versions = [Guard(text, "L['x']", "TENSOR_MATCH", raw.format("".join(keys[:number]))) for number in (3, 2, 1)]
    for written, expected in zip(("x=f32[3]", "x=f32[3](inference=True)"), holds):
        given = Given(arguments([written]), state)
        assert tuple(tried(version, given).holds for version in versions) == expected


def a_frame(entries=ENTRIES):
    text = CodeText("def forward(self, x, n=2.0): ...", "exact")
    return Frame("Decoder_forward", "forward", None, text, True, ("self", "x", "n"), (), entries,
                 signature="self, x, n=2.0", title="Decoder.forward")
