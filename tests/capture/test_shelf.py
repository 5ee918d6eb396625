"""What lies on the shelf is what was put there, whatever else happens."""

import os
import random

import pytest

from depyf.capture import shelf as module
from depyf.capture.shelf import AT_HAND, Kept, Shelf


def test_values_come_back_as_they_were_and_can_be_changed(tmp_path):
    kept = Kept(Shelf(str(tmp_path)))
    expected = {}
    random.seed(0)
    for number in range(500):
        key = random.randrange(60)
        kept.setdefault(key, []).append(number)
        expected.setdefault(key, []).append(number)
        assert len(kept._at_hand) <= AT_HAND
    assert list(kept) == list(expected) and len(kept) == len(expected)  # in the order in which they came
    assert list(kept.all()) == list(expected.values())
    assert len(kept._at_hand) <= AT_HAND
    assert os.listdir(tmp_path) == []  # the file has no name


def test_without_a_shelf_all_stay():
    kept = Kept()
    for number in range(50):
        kept[number] = [number]
    assert all(kept[number] is kept.looked_at(number) for number in range(50))


def test_what_is_not_complete_stays_until_it_is(tmp_path):
    kept = Kept(Shelf(str(tmp_path)), complete=lambda value: value["done"])
    values = [{"done": False} for _ in range(40)]
    for number, value in enumerate(values):
        kept[number] = value
    assert all(kept.looked_at(number) is value for number, value in enumerate(values))
    for value in values:
        value["done"] = True
    for number in range(40, 80):
        kept[number] = {"done": True}
    assert len(kept._at_hand) <= AT_HAND
    assert list(kept.all()) == [{"done": True}] * 80


def test_what_is_taken_out_is_gone(tmp_path):
    kept = Kept(Shelf(str(tmp_path)))
    for number in range(30):
        kept[number] = number
    assert kept.pop(3) == 3 and kept.pop(29) == 29 and kept.pop(3, None) is None
    with pytest.raises(KeyError):
        kept[3]
    assert 3 not in kept and list(kept) == [number for number in range(29) if number != 3]


class FullDisk:
    """Takes half of some values."""

    def __init__(self, file, full):
        self.file, self.full = file, full

    def write(self, data):
        if self.full():
            self.file.write(data[: len(data) // 2])
            raise OSError("no space left")
        return self.file.write(data[:5])  # (a disk may take a part)

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    random.seed(1)
    real = module.tempfile.TemporaryFile
    monkeypatch.setattr(module.tempfile, "TemporaryFile", lambda **how: FullDisk(
        real(**how), lambda: random.random() < 0.3))
    kept = Kept(Shelf(str(tmp_path)))
    for number in range(200):
        kept[number] = [number] * 10
    assert list(kept.all()) == [[number] * 10 for number in range(200)]
    assert any(place is not None for place in kept._places.values())


def test_no_disk_at_all(tmp_path):
    kept = Kept(Shelf(str(tmp_path / "gone")))
    for number in range(50):
        kept[number] = number
    assert list(kept.all()) == list(range(50))


def test_what_cannot_be_written_stays(tmp_path):
    kept = Kept(Shelf(str(tmp_path)))
    values = [lambda: None for _ in range(30)]
    for number, value in enumerate(values):
        kept[number] = value
    assert list(kept.all()) == values


def test_a_closed_shelf_says_so(tmp_path):
    shelf = Shelf(str(tmp_path))
    place = shelf.put("value")
    assert shelf.take(place) == "value"
    shelf.close()
    with pytest.raises(EOFError, match="closed"):
        shelf.take(place)
