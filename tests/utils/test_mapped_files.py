"""Arrays of container files mapped into memory: aligned, equal, and checked like others."""

import os
import pickle
import zipfile

import numpy as np
import pytest
from checks import memory_below, refused
from container_cases import forge, is_mapped, npy

from structsolve.utils import container
from structsolve.utils.container import read, write

RNG = np.random.default_rng(0)
ARRAYS = {
    "few": np.arange(7.0),
    "floats": RNG.normal(size=3001).astype(np.float32),
    "halves": RNG.normal(size=5000).astype(np.float16),
    "none": np.zeros((0, 3)),
    "integers": np.arange(2003),
    "columns": np.asfortranarray(RNG.normal(size=(40, 50))),
}


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "m.structsolve", "model", {"alpha": 0.5}, ARRAYS)
    return tmp_path / "m.structsolve"


@pytest.mark.parametrize("huge", [2**30, 100])  # the latter with the fields of files beyond 4 GB
def test_mapped_arrays_are_aligned_and_those_of_a_plain_read(path, monkeypatch, huge):
    monkeypatch.setattr(container, "_HUGE", huge)
    write(path, "model", {"alpha": 0.5}, ARRAYS)
    meta, plain = read(path, "model")
    again, arrays = read(path, "model", mapped=ARRAYS)
    assert meta == again and list(plain) == list(arrays)
    for name, array in arrays.items():
        assert type(array) is np.ndarray and is_mapped(array) == (array.nbytes >= 4096)
        assert array.flags.writeable != is_mapped(array)
        assert array.flags.f_contiguous == ARRAYS[name].flags.f_contiguous
        assert array.ctypes.data % 64 == 0 or not is_mapped(array)
        np.testing.assert_array_equal(array, ARRAYS[name])
        np.testing.assert_array_equal(array, plain[name])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(array)), array)


def test_only_what_is_named_is_mapped(path):
    _, arrays = read(path, "model", mapped=("halves", "unknown"))
    assert [name for name, array in arrays.items() if is_mapped(array)] == ["halves"]


def test_maps_outlive_the_file_that_is_replaced(path):
    _, arrays = read(path, "model", mapped=("floats",))
    write(path, "model", {}, {})
    os.unlink(path)
    np.testing.assert_array_equal(arrays["floats"], ARRAYS["floats"])


def test_maps_take_no_memory(path):
    write(path, "model", {}, {"w": np.zeros(4_000_000)})
    with memory_below(8e6):
        _, arrays = read(path, "model", mapped=("w",))
    assert arrays["w"].nbytes == 32e6


def test_files_of_before_the_alignment_are_copied(path):
    values = np.arange(1000.0)
    forge(path, npy(values), {"shape": [1000]})
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("arrays/0.npy").header_offset + 30 + len("arrays/0.npy")
    assert start % 8
    _, arrays = read(path, "model", mapped=("a",))
    assert arrays["a"].flags.aligned and not is_mapped(arrays["a"])
    np.testing.assert_array_equal(arrays["a"], values)


def test_cut_files_are_refused(path):
    whole = path.read_bytes()
    for size in [*range(0, len(whole), 997), *range(len(whole) - 60, len(whole))]:
        path.write_bytes(whole[:size])
        refused(r"m\.structsolve", read, path, "model", mapped=ARRAYS)


@pytest.mark.filterwarnings("ignore")  # a damaged header makes numpy warn before the checksum fails
def test_changed_bytes_are_seen(path):
    whole = path.read_bytes()
    rejected = tried = 0
    for place in [*range(0, len(whole), 499), *range(len(whole) - 1500, len(whole), 7)]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        tried += 1
        try:
            _, arrays = read(path, "model", mapped=ARRAYS)
        except ValueError:
            rejected += 1
        else:
            assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)
    assert rejected > 0.8 * tried
