"""Caches and packages of compiled functions that torch saved are read without torch, and nothing of them is run."""

import os
import pickle
import re
import struct
import subprocess
import sys
import zlib

import pytest

torch = pytest.importorskip("torch")

from depyf.capture import saved_files  # noqa: E402
from depyf.capture.pickled import Object, read_pickle  # noqa: E402
from depyf.cli import main  # noqa: E402
from depyf.records.store import GUARDS_OF_FILE, RecordsError  # noqa: E402
from depyf.report import report  # noqa: E402
from torch_forks import torch_python  # noqa: E402

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from depyf.cli import main; sys.exit(main())"
PROGRAM = '''
import torch

def f(x, y):
    z = x.sin() @ y
    print("between")
    return z.cos() + 1

def train(x, w):
    return (x * w).relu()

def save(path):
    data, _ = torch.compiler.save_cache_artifacts()
    with open(path, "wb") as file:
        file.write(data)

w = torch.ones(3, requires_grad=True)
torch.compile(train)(torch.ones(2, 3), w).sum().backward()
save("training.bin")

with torch._dynamo.config.patch(caching_precompile=True):
    compiled = torch.compile(f)
    compiled(torch.ones(3, 3), torch.ones(3, 3))
    compiled(torch.ones(4, 4), torch.ones(4, 4))
    save("package.bin")

torch.compile(train, fullgraph=True).aot_compile(((torch.ones(2, 3), w), {})).save_compiled_function("function.bin")
'''


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with ``training.bin``, ``package.bin`` and ``function.bin``."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "program.py").write_text(PROGRAM)
    subprocess.run([*torch_python(), "program.py"], cwd=folder, check=True, capture_output=True,
                   env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")})
    return folder


def reported(path, folder):
    """Return the files that are made of a file, without torch, with their texts."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, "report", str(path), "-o", str(folder)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {each.name: each.read_text() for each in folder.iterdir() if each.suffix in (".py", ".txt", ".md")}


@pytest.mark.slow
@pytest.mark.torch_since((2, 13), "torch has no `aot_compile`")
def test_what_a_saved_cache_has_is_shown(saved, tmp_path):
    files = reported(saved / "training.bin", tmp_path / "dump")
    assert files["index.md"].startswith("# What is in the file\n") and "1 graph in the file." in files["index.md"]
    assert "No graph breaks" not in files["index.md"] and "0.00 s" not in files["index.md"]
    assert "torch.ops.aten.relu.default" in files["aot_0.Joint_graph.0.py"]
    assert "torch.ops.aten.relu.default" in files["aot_0.Forward_graph.0.py"]
    assert {"aot_0.Backward_graph.0.py", "aot_0.AFTER_POST_GRAD.0.py", "aot_0.AFTER_POST_GRAD.1.py"} <= files.keys()
    assert "async_compile.cpp_pybinding" in files["aot_0.kernel_0.py"]
    assert "inputs: x, w\ncompiled for: cpu\n" in files["aot_0.contents.0.txt"]
    assert "compilation: [0/0]" in files["aot_0.contents.0.txt"]
    assert "\ninductor_config[max_autotune]: False\n" in files["aot_0.key.0.txt"]
    assert "it has entries of Inductor's cache (2), AOTAutograd's cache (1)" in files["notes.txt"]


@pytest.mark.slow
@pytest.mark.torch_since((2, 13), "torch has no `aot_compile`")
def test_one_entry_of_a_cache_on_the_disk(saved):
    entry = next((saved / "cache" / "fxgraph").glob("*/*/*"))
    graph, = saved_files.read(str(entry)).graphs
    assert graph.name == "inductor_0" and [each.stage for each in graph.stages] == ["AFTER_POST_GRAD", "key", "contents"]
    assert graph.kernels[0].text and graph.phases[0].name == "Inductor"


@pytest.mark.slow
@pytest.mark.torch_since((2, 13), "torch has no `aot_compile`")
def test_a_package_has_the_code_and_the_guards_of_each_version(saved, tmp_path):
    files = reported(saved / "package.bin", tmp_path / "dump")
    full = files["full_code_for_f_0.py"]
    assert "1 function with 4 versions, 5 graphs in the file." in files["index.md"]
    assert "    z = x.sin() @ y\n" in full  # (the source that the package has: the file is not read)
    assert "check_tensor(x, 'f32[3, 3] on cpu')" in full
    assert "#   x.shape[0]: 3 -> any, 2 or more\n" in full
    assert "def __transformed_code_1_for_f(x, y):\n" in full and "transformed code of version [0/1]: equivalent" in full
    assert full.count("\ndef __resume_at_") == 1, "one code, which each version calls by another name"
    assert GUARDS_OF_FILE[1:40] in full
    assert f"Python {sys.version.split()[0]}, torch {torch.__version__}" in files["notes.txt"]
    assert "lines 4 to 7 of module `__main__`" in files["notes.txt"]
    assert sum(name.startswith("__compiled_fn_") and "Forward_graph" in name for name in files) == 4


@pytest.mark.slow
@pytest.mark.torch_since((2, 13), "torch has no `aot_compile`")
def test_a_function_that_was_compiled_ahead_of_time(saved, tmp_path):
    files = reported(saved / "function.bin", tmp_path / "dump")
    assert re.search(r"\n    return __compiled_fn_\d+\(x, w\)\[0\]\n", files["full_code_for_train_0.py"])
    assert "check_tensor(w, 'f32[3] on cpu, requires grad')" in files["full_code_for_train_0.py"]


@pytest.mark.slow
@pytest.mark.torch_since((2, 13), "torch has no `aot_compile`")
def test_what_a_file_does_not_say_is_not_judged(saved, capsys):
    assert main(["check", str(saved / "package.bin"), "--max-breaks", "0"]) == 2
    assert "does not say what was compiled when" in capsys.readouterr().err
    assert main(["explain", str(saved / "package.bin"), "--json"]) == 0
    assert '"breaks": null' in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.torch_since((2, 13), "torch has no `aot_compile`")
def test_which_version_of_a_package_serves_a_call(saved, capsys):
    for sizes, version in (("3,3", "[0/0]"), ("5,5", "[0/1]")):
        status = main(["fits", str(saved / "package.bin"), "f", "--same", "--args", f"x=f32[{sizes}]", f"y=f32[{sizes}]"])
        out = capsys.readouterr().out
        assert status == 0 and f"version {version} serves" in out and "adds some when it loads a version" in out


@pytest.mark.slow
@pytest.mark.torch_since((2, 13), "torch has no `aot_compile`")
@pytest.mark.parametrize("name", ["training.bin", "package.bin", "function.bin"])
def test_a_damaged_file_is_refused_or_read_in_part(saved, tmp_path, name):
    data = (saved / name).read_bytes()
    broken = tmp_path / "broken.bin"
    for at in range(20, len(data), len(data) // 40):
        for damaged in (data[:at], data[:at] + b"\xff\x80(" + data[at + 3 :]):
            if name != "function.bin":
                damaged = zlib.crc32(damaged[4:]).to_bytes(4, "big") + damaged[4:]
            broken.write_bytes(damaged)
            try:
                saved_files.read(str(broken))
            except RecordsError as error:
                assert "is damaged" in str(error)


@pytest.mark.slow
@pytest.mark.torch_since((2, 13), "torch has no `aot_compile`")
def test_a_function_of_torch_2_15_begins_with_its_format(saved, tmp_path):
    data = (saved / "function.bin").read_bytes()
    path = tmp_path / "function.bin"
    path.write_bytes(data if data.startswith(b"PT2AOT") else b"PT2AOT\x01" + data)
    capture = saved_files.read(str(path))
    assert len(capture.unwritten.bytecodes) == 1 and len(capture.graphs) == 1


def test_another_checksum_is_a_damaged_file(tmp_path):
    path = tmp_path / "artifacts.bin"
    path.write_bytes(b"\0\0\0\0" + (1).to_bytes(8, "big"))
    with pytest.raises(RecordsError, match="its checksum is another"):
        saved_files.read(str(path))


class Runs:
    """Removes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.remove, (self.path,)


def test_nothing_of_a_pickle_is_run(tmp_path):
    witness = tmp_path / "witness"
    witness.write_text("")
    read = read_pickle(pickle.dumps({"a": Runs(str(witness)), "b": [1, 2.5, b"x", ("y", None, True)]}))
    assert witness.exists() and read["a"].name.endswith(".remove") and read["a"].arguments == (str(witness),)
    assert read["b"] == [1, 2.5, b"x", ("y", None, True)]


def test_a_pickle_of_others_is_no_file_of_torch(tmp_path):
    path = tmp_path / "other.pkl"
    path.write_bytes(pickle.dumps({"a": 1}))
    assert saved_files.read(str(path)) is None
    with pytest.raises(RecordsError):
        report(str(path), str(tmp_path / "dump"))
    assert not (tmp_path / "dump").exists()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_objects_with_attributes_and_items(protocol):
    value = pickle.loads(pickle.dumps(OSError("x")))
    value.extra = [1, 2, 3, {4}, frozenset({5}), 2**80, range(3)]
    read = read_pickle(pickle.dumps(value, protocol))
    assert isinstance(read, Object) and read.name.endswith("OSError") and read.arguments == ("x",)
    *numbers, some, others, large, _ = read.get("extra")
    assert numbers == [1, 2, 3] and large == 2**80 and {type(some), type(others)} <= {list, Object}


@pytest.mark.parametrize("data, message", [
    (b"\x80\x04", "without an end|damaged"), (b"\x80\x04.", "damaged"), (b"\x80\x04e.", "damaged"), (b"\x80\x04\x85.", "of 0"),
    (b"\x80\x04X" + struct.pack("<I", 10**9) + b"a.", "damaged")])
def test_a_damaged_pickle_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        read_pickle(data)


def test_a_tuple_that_is_in_itself_many_times_costs_no_time():
    data = b"\x80\x04)" + b"2\x86" * 60 + b"."  # (each has two of the one before)
    code = b"\x80\x04ctorch._dynamo.package\nSerializedCode\n)\x81}X\x09\0\0\0co_consts" + data[2:-1] + b"sb."
    from depyf.capture.saved_caches import _fields

    with pytest.raises(ValueError, match="parts of constants"):
        _fields(read_pickle(code))
