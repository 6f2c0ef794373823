"""structsolve.utils.container: round trips, every kind of wrong file, and kills while writing."""

import io
import json
import os
import pickle
import signal
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from checks import memory_below, refused
from container_cases import forge, npy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from structsolve.utils import container
from structsolve.utils.atomic import replacing
from structsolve.utils.container import read, write

META = {"alpha": 0.1, "classes": ["a", "é"], "n": 2**127 + 1, "nothing": None}
ARRAYS = {"w": np.arange(3.0), "names": np.array(["x", "yé"]), "none": np.empty((0, 2), "f4")}
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX file modes, links or signals")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.structsolve"


@pytest.fixture
def small(path):
    write(path, "model", META, ARRAYS)
    return path


@pytest.fixture
def whole(small):
    return small.read_bytes()


def same(one, two):
    return (one.shape, one.dtype.str) == (two.shape, two.dtype.str) and (
        one.tobytes() == two.tobytes()
    )


def same_file(content):
    meta, arrays = content
    return (
        meta == META
        and list(arrays) == list(ARRAYS)
        and all(same(arrays[name], ARRAYS[name]) for name in ARRAYS)
    )


# ---- round trips -----------------------------------------------------------------------------


def equal_json(one, two):
    if isinstance(one, float) and isinstance(two, float):
        return one.hex() == two.hex()  # tells -0.0 from 0.0, and nan equals itself
    if isinstance(one, (list, tuple)):
        return type(two) is list and len(one) == len(two) and all(map(equal_json, one, two))
    if isinstance(one, dict):
        return list(one) == list(two) and all(equal_json(one[key], two[key]) for key in one)
    return type(one) is type(two) and one == two


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers(-(2**130), 2**130)
    | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(),
    hnp.datetime64_dtypes(),
    hnp.timedelta64_dtypes(),
    hnp.unicode_string_dtypes(max_len=5),
    hnp.byte_string_dtypes(max_len=5),
)
ARRAY = DTYPES.flatmap(
    lambda dtype: hnp.arrays(
        dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    )
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    meta=JSON,
    arrays=st.dictionaries(st.text(), ARRAY, max_size=3),
    fortran=st.booleans(),
    kind=st.sampled_from(["model", "checkpoint"]),
)
def test_round_trip(path, meta, arrays, fortran, kind):
    if fortran:
        arrays = {
            name: np.asfortranarray(array) if array.ndim else array
            for name, array in arrays.items()
        }
    write(path, kind, meta, arrays)
    read_meta, back = read(path, kind)
    assert equal_json(meta, read_meta)
    assert list(arrays) == list(back)
    for name, array in arrays.items():
        assert same(array, back[name])
        assert back[name].flags.writeable and back[name].flags.aligned
        assert back[name].flags.f_contiguous == array.flags.f_contiguous


def test_memory_orders_and_views(path):
    base = np.arange(24.0).reshape(4, 6)
    base.setflags(write=False)
    views = {
        "fortran": np.asfortranarray(base),
        "strided": base[::2, ::-1],
        "transposed": base.T,
        "zero-d": np.array(3),
        "broadcast": np.broadcast_to(1.5, (2, 3)),
        "list": [[1, 2]],
    }
    write(path, "model", None, views)
    back = read(path, "model")[1]
    for name, view in views.items():
        assert same(np.ascontiguousarray(view).reshape(np.shape(view)), back[name])
    assert back["fortran"].flags.f_contiguous and not back["fortran"].flags.c_contiguous


def test_large_array_in_pieces(path):
    array = np.random.default_rng(0).normal(size=(1000, 421))
    write(path, "model", {}, {"a": array, "b": array.T})
    back = read(path, "model")[1]
    assert same(back["a"], array) and same(back["b"], array.T)


def test_generator_state_continues(path):
    rng = np.random.default_rng(7)
    rng.normal(size=5)
    write(path, "checkpoint", {"rng": rng.bit_generator.state}, {})
    other = np.random.default_rng()
    other.bit_generator.state = read(path, "checkpoint")[0]["rng"]
    assert rng.integers(2**62, size=9).tolist() == other.integers(2**62, size=9).tolist()


def test_numpy_scalars_become_python(path):
    write(
        path,
        "model",
        {
            "a": np.float64(0.1),
            "b": np.int32(3),
            "c": np.bool_(True),
            np.str_("d"): np.str_("x"),
            "e": (np.float32(0.1),),
        },
        {},
    )
    meta = read(path, "model")[0]
    assert meta == {"a": 0.1, "b": 3, "c": True, "d": "x", "e": [float(np.float32(0.1))]}
    assert [type(value) for value in meta.values()] == [float, int, bool, str, list]


def test_same_content_same_bytes(small, tmp_path):
    write(tmp_path / "other", "model", META, ARRAYS)
    assert small.read_bytes() == (tmp_path / "other").read_bytes()


def test_other_tools_can_look_inside(small):
    with zipfile.ZipFile(small) as archive:
        assert archive.testzip() is None
        manifest = json.loads(archive.read("structsolve.json"))
        assert manifest["meta"] == META and manifest["arrays"][1]["shape"] == [2]
        assert np.load(io.BytesIO(archive.read("arrays/0.npy"))).tolist() == [0, 1, 2]


# ---- what cannot be written ------------------------------------------------------------------


@pytest.mark.parametrize(
    "meta, arrays, words",
    [
        (
            {"a": [1, {"b": np.ones(2)}]},
            {},
            r"meta\['a'\]\[1\]\['b'\] is a ndarray.*put it in arrays",
        ),
        ({1: 2}, {}, "meta has the key 1, an int"),
        ({"a": 1j}, {}, r"meta\['a'\] is a complex"),
        ({"a": np.complex128(1)}, {}, r"meta\['a'\] is a complex128"),
        ({"a": np.longdouble(1)}, {}, r"meta\['a'\] is a longdouble"),
        ({"a": {1}}, {}, "is a set"),
        (b"x", {}, "meta is a bytes"),
        ({}, {"x": np.array([None])}, r"arrays\['x'\] is a ndarray of dtype object"),
        ({}, {"x": [[1], [1, 2]]}, r"arrays\['x'\] is not an array"),
        ({}, {"x": np.zeros(2, "i4,f4")}, "of dtype"),
        ({}, {"x": np.ma.array([1, 2], mask=[0, 1])}, "masked"),
        ({}, {1: np.ones(2)}, "array name 1 is an int"),
    ],
)
def test_refuses_to_write(small, meta, arrays, words):
    before = small.read_bytes()
    refused(words, write, small, "model", meta, arrays, error=(TypeError, ValueError))
    assert small.read_bytes() == before and os.listdir(small.parent) == [small.name]


def test_sparse_matrix_is_refused_with_advice(path):
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(ValueError, match=r"csr_matrix of dtype object.*one by one"):
        write(path, "model", {}, {"x": sparse.csr_matrix(np.eye(2))})


def test_bad_targets(tmp_path):
    refused("choose one of model, checkpoint", write, tmp_path / "a", "weights", {}, {})
    refused("is a folder", write, tmp_path, "model", {}, {})
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write(tmp_path / "no" / "a", "model", {}, {})
    assert os.listdir(tmp_path) == []


@posix
def test_never_replaces_a_device():
    refused("not a regular file", write, "/dev/null", "model", {}, {})
    refused("not a regular file", read, "/dev/null", "model")


@pytest.mark.parametrize("stage", ["write", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_failure_leaves_the_old_file(small, monkeypatch, stage, error):
    def fail(*args, **kwargs):
        raise error

    if stage == "write":
        monkeypatch.setattr(np.lib.format, "write_array", fail)
    else:
        monkeypatch.setattr(os, stage, fail)
    with pytest.raises(type(error)):
        write(small, "model", {"new": 1}, ARRAYS)
    monkeypatch.undo()
    assert same_file(read(small, "model")) and os.listdir(small.parent) == [small.name]


@posix
def test_permissions_and_links(path, tmp_path):
    before = os.umask(0o027)
    try:
        write(path, "model", {}, {})
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(before)
    path.chmod(0o604)
    (tmp_path / "link").symlink_to(path)
    write(tmp_path / "link", "model", META, ARRAYS)
    assert (tmp_path / "link").is_symlink() and same_file(read(path, "model"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


# ---- what cannot be read ---------------------------------------------------------------------


def foreign():
    npz, other, word = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez(npz, w=np.ones(2))
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("structsolve.json", json.dumps({"format": "another"}))
    with zipfile.ZipFile(word, "w") as archive:
        archive.writestr("structsolve.json", "[1]")
    npy = io.BytesIO()
    np.save(npy, np.ones(2))
    rng = np.random.default_rng(0)
    return [
        (b"", "is empty"),
        (pickle.dumps({"w": 1}), "pickle, it seems"),
        (npz.getvalue(), "an .npz file, perhaps"),
        (other.getvalue(), "but not a structsolve"),
        (word.getvalue(), "but not a structsolve"),
        (npy.getvalue(), "is not a structsolve file"),
        (b"{}", "is not a structsolve file"),
        (b"PK\3\4" + rng.bytes(999), "cut short or damaged"),
        (b"P", "cut short or damaged"),
        (rng.bytes(5000), "is not a structsolve file"),
        (
            zipfile.ZipFile(empty := io.BytesIO(), "w").close() or empty.getvalue(),
            "but not a structsolve",
        ),
    ]


@pytest.mark.parametrize("content, words", foreign())
def test_foreign_files(path, content, words):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        read(path, "model")
    assert path.name in str(caught.value)


def test_missing_folder_and_kind(small, tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none", "model")
    refused("is a folder", read, tmp_path, "model")
    refused("is a model, expected a checkpoint", read, small, "checkpoint")
    assert same_file(read(str(small), "model"))


def test_newer_format(path, monkeypatch):
    monkeypatch.setattr(container, "FORMAT_VERSION", 2)
    monkeypatch.setattr(container, "__version__", "7.8.9")
    write(path, "model", META, ARRAYS)
    monkeypatch.undo()
    refused(r"by structsolve 7\.8\.9 in file format 2;.*upgrade", read, path, "model")


def test_cut_at_every_byte(small, whole):
    assert len(whole) < 3000
    for size in range(len(whole)):
        small.write_bytes(whole[:size])
        refused(r"m\.structsolve", read, small, "model")


@pytest.mark.filterwarnings("ignore")  # a damaged header makes numpy warn before the checksum fails
@pytest.mark.parametrize("mask", [0x01, 0xFF])
def test_every_byte_flipped(small, whole, mask):
    rejected = 0
    for place in range(len(whole)):
        small.write_bytes(whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :])
        try:
            assert same_file(read(small, "model"))
        except ValueError:
            rejected += 1
    assert rejected > 0.8 * len(whole)


@settings(
    deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.filterwarnings("ignore")
@given(data=st.data())
def test_patched_files(small, whole, data):
    """Overwrite, remove or insert runs of bytes."""
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, min(len(whole), start + 40)))
    small.write_bytes(whole[:start] + data.draw(st.binary(max_size=40)) + whole[stop:])
    try:
        assert same_file(read(small, "model"))
    except ValueError as error:
        assert "m.structsolve" in str(error)


def test_cut_file_that_ends_in_a_whole_one(path):
    write(path, "model", {"inner": True}, {})
    inner = np.frombuffer(path.read_bytes(), np.uint8)
    write(path, "model", {"inner": False}, {"a": inner, "b": np.zeros(9)})
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(inner.tobytes()) + inner.size])
    refused("cut short or damaged", read, path, "model")


TWO = np.ones(2)


@pytest.mark.parametrize(
    "payload, kwargs, words",
    [
        (npy(TWO, shape=(10**13,)), {"entry": {"shape": [10**13]}}, "does not hold"),
        (npy(TWO, shape=(10**30, 10**30)), {"entry": {"shape": [10**30] * 2}}, "does not hold"),
        (npy(TWO, shape=(-1, -2)), {"entry": {"shape": [-1, -2]}}, "negative|does not hold"),
        (npy(TWO, shape=(1,)), {"entry": {"shape": [1]}}, "does not hold"),
        (npy(TWO, shape=(10**13, 0)), {"entry": {"shape": [10**13, 0]}}, "does not hold"),
        (npy(TWO, descr="|O"), {}, "does not hold"),
        (npy(TWO, version=(2, 0)), {}, "not in the npy format 1.0"),
        (npy(TWO)[:-3], {}, "does not hold"),
        (npy(TWO) + b"x", {}, "does not hold"),
        (npy(TWO)[:20], {}, "damaged"),
        (b"", {}, "damaged"),
        (npy(TWO), {"entry": {"shape": [1, 2]}}, "not the array of the contents list"),
        (npy(TWO), {"entry": {"crc32": 1}}, "not the array of the contents list"),
        (npy(TWO), {"entry": {"dtype": "<i8"}}, "not the array of the contents list"),
        (npy(TWO), {"names": ("a", "a")}, "same name"),
        (npy(TWO), {"version": 0}, "format version is 0"),
        (npy(TWO), {"version": True}, "format version is True"),
        (npy(TWO), {"version": "2"}, "format version is '2'"),
        (npy(np.zeros(10**6)), {"compression": zipfile.ZIP_DEFLATED}, "compressed or too large"),
    ],
)
def test_forged_files(path, payload, kwargs, words):
    forge(path, payload, **kwargs)
    with memory_below(5e6):
        refused(words, read, path, "model")


def test_forgery_is_otherwise_accepted(path):
    forge(path, npy(TWO))
    assert read(path, "model")[1]["a"].tolist() == [1, 1]
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more", "x")
    refused("contents list", read, path, "model")


# ---- killed while writing --------------------------------------------------------------------

WRITER = """
import sys, numpy as np
from structsolve.utils.container import write
step = 0
while True:
    write(sys.argv[1], "checkpoint", {"step": step}, {"w": np.full(20000, step)})
    if step == 0:
        print("ready", flush=True)
    step += 1
"""


@posix
def test_killed_at_any_moment(path):
    root = str(Path(container.__file__).parents[2])  # of the package itself
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    rng = np.random.default_rng(0)
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths},
        ) as process:
            assert process.stdout.readline() == b"ready\n"
            for _ in range(20):
                meta, arrays = read(path, "checkpoint")  # a reader sees whole files, too
                assert (arrays["w"] == meta["step"]).all()
            time.sleep(rng.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
        meta, arrays = read(path, "checkpoint")
        assert (arrays["w"] == meta["step"]).all() and arrays["w"].size == 20000
    # A writer reaches the moment between naming the file and moving it some seconds later.
    for left in path.parent.iterdir():
        os.utime(left, (0, 0))
    write(path, "checkpoint", meta, arrays)
    assert os.listdir(path.parent) == [path.name]


@posix
def test_files_of_killed_writers_are_removed_by_the_next(path, monkeypatch):
    """Where the system has no unnamed files."""
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    stale, fresh, other = (path.parent / name for name in (".structsolve-a.tmp",
                           ".structsolve-b.tmp", ".structsolve-c"))  # fmt: skip
    for file in (stale, fresh, other):
        file.write_bytes(b"x")
    for file in (stale, other):
        os.utime(file, (0, 0))
    with replacing(path) as file:
        (mine,) = set(os.listdir(path.parent)) - {fresh.name, other.name}
        os.utime(path.parent / mine, (0, 0))
        write(path.parent / "second", "model", META, ARRAYS)  # it is locked, and stays
        assert (path.parent / mine).exists()
        file.write(b"y")
    assert path.read_bytes() == b"y" and fresh.exists() and other.exists() and not stale.exists()


def test_a_folder_is_no_file_to_write(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    for name in ("", ".", path.parent):
        told = pytest.raises(
            IsADirectoryError, match="^cannot write .*: expected the path of a file"
        )
        with told, replacing(name):
            pass
    with pytest.raises(IsADirectoryError, match="^cannot write '': expected the path of a file"):
        write("", "model", META, ARRAYS)
    assert not os.listdir(path.parent)


@posix
def test_temporary_files_follow_no_link(path, monkeypatch, tmp_path):
    """A file that someone put in place of the temporary one is not overwritten."""
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    monkeypatch.setattr(os, "urandom", lambda n: b"a" * n)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".structsolve-{(b'a' * 16).hex()}.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write(path, "model", META, ARRAYS)
    assert victim.read_text() == "mine"


def test_meta_that_is_nested_too_deeply(path):
    deep = []
    for _ in range(5000):
        deep = [deep]
    refused("nested too deeply", write, path, "model", deep, {})
