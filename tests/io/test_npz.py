"""Archives of NumPy: round trips, and the error of every kind of broken file."""

import io
import zipfile

import numpy as np
import pytest
from checks import refused
from data import data_file, needs_data
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from small_files import put, same_folder

from structsolve.io import read_examples
from structsolve.io.archives import ArchiveReader
from structsolve.io.npz import read_npz, write_npz

lengths = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@same_folder
@given(
    lengths,
    st.booleans(),
    st.sampled_from([np.float64, np.float32, np.int8, np.bool_]),
    st.sampled_from(["int", "str"]),
    st.integers(0, 2**32),
)
def test_npz_round_trip(tmp_path, lengths, is_sparse, dtype, kind, seed):
    rng = np.random.default_rng(seed)
    X = [(rng.integers(-1, 2, (n, 3)) * rng.random((n, 3)) * 9).astype(dtype) for n in lengths]
    y = [rng.integers(0, 9, n) for n in lengths]
    y = [np.array([f"é{k}" for k in one]) for one in y] if kind == "str" else y
    given_X = [sparse.csr_matrix(x) for x in X] if is_sparse else X
    for pair in ((given_X, y), (given_X[0], y[0]), (given_X, None)):
        write_npz(tmp_path / "a.npz", *pair)
        read_X, read_y = read_npz(tmp_path / "a.npz")
        one = not isinstance(pair[0], list)
        for a, b in zip([read_X] if one else read_X, [X[0]] if one else X, strict=True):
            assert sparse.issparse(a) == is_sparse
            dense = a.toarray() if is_sparse else a
            assert dense.dtype == dtype
            np.testing.assert_array_equal(dense, b)
        if pair[1] is None:
            assert read_y is None
        else:
            for a, b in zip([read_y] if one else read_y, [y[0]] if one else y, strict=True):
                np.testing.assert_array_equal(a, b)


def test_npz_classes_and_csr_of_ones(tmp_path):
    np.savez(
        tmp_path / "a.npz",
        X_indices=np.array([0, 1, 1], np.int16),
        X_indptr=np.array([0, 2, 3]),
        X_shape=np.array([2, 2]),
        y=np.array([1, 0], np.int8),
        classes=np.array(["a", "b"]),
    )
    X, y = read_npz(tmp_path / "a.npz")
    assert X.toarray().tolist() == [[1, 1], [0, 1]]
    assert y.tolist() == ["b", "a"]


ok = {"X": np.eye(3), "y": np.arange(3)}
csr = {
    "X_data": np.ones(2),
    "X_indices": np.array([0, 1]),
    "X_indptr": np.array([0, 1, 2]),
    "X_shape": np.array([2, 2]),
}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"features": np.eye(2)}, r"found the arrays features; expected 'X', or 'X_data"),
        ({"X": np.ones(3)}, r"found X of shape \(3,\); expected two dimensions"),
        ({"X": np.array([["a"]])}, "found X of type <U1; expected numbers"),
        ({"X": np.ones((0, 3))}, r"X of shape \(0, 3\); expected at least one row"),
        ({"X": np.array([[None]], object)}, "not a readable .npz file: Object arrays"),
        (ok | {"y": np.arange(2)}, r"found y of shape \(2,\); expected 3"),
        (ok | {"classes": np.array(["a"])}, "outside of classes; expected integers below 1"),
        (ok | {"offsets": np.array([0, 3, 3])}, "expected offsets that rise from 0 to 3"),
        (ok | {"offsets": np.array([0, 2])}, "expected offsets that rise from 0 to 3"),
        (ok | {"offsets": np.array([0.0, 3.0])}, "offsets of shape .* and type float64"),
        (csr | {"X_indices": np.array([0, 5])}, "sparse arrays that do not fit together"),
        (csr | {"X_indptr": np.array([0, 2, 1])}, "sparse arrays that do not fit together"),
        (csr | {"X_shape": np.array([2])}, r"found X_shape \[2\]"),
        (csr | {"X_indices": np.array([0.0, 1.0])}, "not integers"),
        (csr | ok, "found X and X_data, X_indices, X_indptr, X_shape; expected features once"),
        (ok | {"y_json": np.array(["0"] * 3)}, "found y_json and y; expected labels once"),
    ],
)
def test_npz_faults(tmp_path, arrays, message):
    np.savez(tmp_path / "bad.npz", **arrays)
    refused(rf"bad\.npz: .*{message}", read_npz, tmp_path / "bad.npz")


@pytest.mark.pandas
def test_frames_with_columns_in_another_order(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(np.eye(2), columns=["a", "b"])
    told = "example 1: found the columns .*'b', 'a'.*; expected"
    refused(told, write_npz, tmp_path / "a.npz", [frame, frame[["b", "a"]]])


def test_dense_examples_beside_sparse_ones(tmp_path):
    write_npz(tmp_path / "a.npz", [np.eye(2), sparse.csr_matrix(2 * np.eye(2))])
    assert [x.toarray()[0, 0] for x in read_npz(tmp_path / "a.npz")[0]] == [1, 2]


def test_archives_with_labels_twice(tmp_path):
    path, ranks, labels = tmp_path / "a.npz", np.tile([1, 0], (3, 1)), np.array(["[0]"] * 3)
    np.savez(path, X=np.eye(3), y_json=labels, rank=ranks, label_names=["u", "v"])
    assert ArchiveReader().fit(str(path))[1] == [[0]] * 3
    assert ArchiveReader(target="rank").fit(str(path))[1].tolist() == ranks.tolist()
    np.savez(path, X=np.eye(3), rank=ranks, label_names=["u"])
    refused("found 1 label_names, expected 2, one for each column", ArchiveReader().fit, str(path))


def test_npz_cut_short_at_any_place(tmp_path):
    write_npz(tmp_path / "a.npz", np.eye(20), np.arange(20))
    whole = (tmp_path / "a.npz").read_bytes()
    for size in range(0, len(whole), 37):
        with pytest.raises(ValueError, match=r"cut\.npz: .*whole \.npz file; it was cut short"):
            read_npz(put(tmp_path, "cut.npz", whole[:size]))
    np.save(tmp_path / "one.npy", np.eye(2))
    refused(r"one\.npy: found a broken archive", read_npz, tmp_path / "one.npy")


def test_npz_refuses_objects_and_unequal_lengths(tmp_path):
    with pytest.raises(ValueError, match="y: found an object array"):
        write_npz(tmp_path / "a.npz", np.eye(2), np.array(["a", None], object))
    with pytest.raises(ValueError, match="example 1: found 2 labels; expected 1"):
        write_npz(tmp_path / "a.npz", [np.eye(2), np.ones((1, 2))], [[1, 2], [1, 2]])
    for X, y, told in (
        (np.eye(3), [1, 2], r"y has the shape \(2,\); expected a label for each of 3 rows"),
        ([np.eye(2), np.ones((2, 3))], None, r"example 1: found the columns \[0, 1, 2\]; expected"),
    ):
        refused(told, write_npz, tmp_path / "a.npz", X, y)
    refused("X: found no sequences", write_npz, tmp_path / "a.npz", [])
    refused("example 1: found no rows", write_npz, tmp_path / "a.npz", [np.eye(2), np.eye(2)[:0]])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "x",
    [
        (np.ones((4, 1)), [(0, 1, 2), (1, 2, 3)]),  # six ends of three edges
        (np.ones((4, 1)), [(0,), (0, 1)]),
        (np.ones((2, 1)), [-1.0, 0.5]),
        (np.ones((2, 3, 1)), [0, 1]),
        {"edges": [[0, 1]]},
        [[1.0]],
        np.ones(2),
    ],
)
def test_npz_refuses_examples_of_other_forms(tmp_path, x):
    X = [x, x]
    refused(
        r"X, example 0: found .*expected .*files \.ndjson hold", write_npz, tmp_path / "a.npz", X
    )
    write_npz(tmp_path / "a.npz", [(np.ones((2, 1)), [])])  # a graph without edges
    ((_, edges),), _ = read_npz(tmp_path / "a.npz")
    assert edges.shape == (0, 2)


@needs_data
def test_iris_archive():
    X, y = read_examples(data_file("mc-iris", "data.npz"))
    assert X.shape == (150, 4)
    assert sorted(set(y.tolist())) == ["Iris-setosa", "Iris-versicolor", "Iris-virginica"]


@pytest.mark.parametrize("shape", [(10**12, 1), (-2, -3), (2**40, 2**40)])
def test_npz_arrays_that_declare_more_than_they_hold(tmp_path, shape):
    header = io.BytesIO()
    fields = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, fields)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue() + b"\0" * 48)
    refused(r"a\.npz: .*does not hold", read_examples, tmp_path / "a.npz")
