"""What ``make legible`` counts in a dump."""

import pathlib
import sys

import pytest

pytest.importorskip("transformers")
sys.path.append(str(pathlib.Path(__file__).parents[1] / "benchmarks"))
legible = pytest.importorskip("legible")

TRANSFORMED = """\
# fidelity: equivalent - proven to do the same; written in torch's
#   long form: self.odd (its class has a __getattr__); more
def __transformed_code_0_for_f(self):
    tmp_3 = self._modules['odd']._parameters['weight']
    return __compiled_fn_1(tmp_3)
"""
FULL = "def guards_0_for_f(self):\n    return (\n        True)\n\n\n" + f"x = '{'y' * 120}'\n"


def test_a_dump(tmp_path):
    (tmp_path / "__transformed_code_0_for_f.py").write_text(TRANSFORMED)
    (tmp_path / "full_code_for_f_0.py").write_text(FULL)
    (tmp_path / "__compiled_fn_1.kernel_0.py").write_text(FULL)
    (tmp_path / "guards_0_for_f.py").write_text("G['__import_torch_dot_nn']\n")
    dump = legible.read(tmp_path)
    assert dump.ugly["__transformed_code_0_for_f.py"] == {"`tmp_N`": 2, "`_modules[`": 1, "`_parameters[`": 1}
    assert dump.wide == {"full_code_for_f_0.py": 1}
    assert dump.transformed == {"__transformed_code_0_for_f.py": 5} and dump.guards == {"full_code_for_f_0.py": 3}
    assert dump.fidelities == {"equivalent": 1}
    assert dump.long_forms == [f"{tmp_path.name}, __transformed_code_0_for_f.py: written in torch's long form: self.odd "
                               "(its class has a __getattr__)"]


def test_what_is_missed(tmp_path):
    (tmp_path / "__transformed_code_0_for_f.py").write_text(TRANSFORMED)
    rows = {row.what: row for row in legible.figures([legible.read(tmp_path)])}
    assert rows["`tmp_N` in transformed and full code"].met is False
    assert rows["`tmp_N` in transformed and full code"].where == [f"`{tmp_path.name}/__transformed_code_0_for_f.py` 2"]
    assert rows["`_buffers[` in transformed and full code"].met
    assert rows["lines of transformed code, median over the models"].measured == "5"
    assert rows["lines of transformed code, llama of 48 layers"].met is None
    assert rows["transformed functions `exact` or `equivalent`"].measured == "1 of 1"
