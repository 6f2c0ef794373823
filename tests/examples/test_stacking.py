"""Matrices stacked as one CSR matrix, and arrays split into answers, against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from structsolve import Sequences, StructuredSVM
from structsolve.examples import packing
from structsolve.examples.stacking import dense_to_csr, distinct_pairs, pieces, stack_csr
from structsolve.potentials.features import FeatureRows

DTYPES = st.sampled_from([np.float64, np.float32])
SIZES = st.lists(st.integers(0, 5), min_size=1, max_size=20)


def matrices(sizes, n_columns, dtype, seed, density=0.3):
    rng = np.random.default_rng(seed)
    return [
        ((rng.random((n, n_columns)) < density) * rng.normal(size=(n, n_columns))).astype(dtype)
        for n in sizes
    ]


@settings(max_examples=300)
@given(
    SIZES, st.integers(0, 6), DTYPES, st.integers(0, 999), st.booleans(), st.booleans(), st.data()
)
def test_stacked_like_scipy(sizes, n_columns, dtype, seed, wide, shuffled, data):
    rows = [sp.csr_matrix(x) for x in matrices(sizes, n_columns, dtype, seed)]
    if shuffled and any(x.nnz for x in rows):
        picked = data.draw(st.sampled_from([x for x in rows if x.nnz]))
        order = np.random.default_rng(seed).permutation(picked.indptr[1])
        picked.indices[: picked.indptr[1]] = picked.indices[order]
    expected = sp.vstack(rows, format="csr")
    for x in rows:
        if wide:
            x.indices, x.indptr = x.indices.astype(np.int64), x.indptr.astype(np.int64)
        if seed % 2:  # longer than the last pointer says
            x.data, x.indices = np.append(x.data, 7).astype(dtype), np.append(x.indices, 99)
            x.indices = x.indices.astype(x.indptr.dtype)
    values, indices, indptr, canonical, offsets = stack_csr(rows)
    assert offsets.tolist() == np.cumsum([0, *(x.shape[0] for x in rows)]).tolist()
    assert values.dtype == dtype and indices.dtype == indptr.dtype == np.int32
    np.testing.assert_array_equal(indptr, expected.indptr)
    np.testing.assert_array_equal(indices, expected.indices)
    np.testing.assert_array_equal(values, expected.data)
    whole = sp.csr_matrix((values, indices, indptr), shape=expected.shape)
    assert canonical == whole.has_canonical_format


def test_matrices_out_of_the_ordinary_are_left_to_scipy():
    plain = sp.csr_matrix(np.eye(3))
    for other in (
        plain.astype(np.float32),
        plain.astype(np.int64),
        plain.astype(complex),
        sp.csr_matrix((plain.data, plain.indices.astype(np.int64), plain.indptr.astype(np.int64))),
    ):
        if other.indices.dtype == plain.indices.dtype and other.dtype == plain.dtype:
            other.indices, other.indptr = (
                a.astype(np.int64) for a in (other.indices, other.indptr)
            )
        assert stack_csr([plain, other]) is None
    assert stack_csr([plain], 4) is None and stack_csr([plain], 3, 4) is None
    assert stack_csr([plain, sp.csr_matrix((3, 4))]) is None
    strided = plain.copy()
    strided.data = np.repeat(strided.data, 2)[::2]
    assert stack_csr([strided]) is None
    longer = plain.copy()
    longer.data, longer.indices = np.append(longer.data, 5.0), np.append(longer.indices, 1)
    mixed, offsets = packing.stack_rows([longer, plain.astype(np.float32), sp.coo_array(plain)])
    np.testing.assert_array_equal(mixed.toarray(), np.vstack([np.eye(3)] * 3))
    assert offsets.tolist() == [0, 3, 6, 9]


def test_columns_beyond_32_bits_are_refused():
    wide = sp.coo_array((np.ones(2), ([0, 1], [1, 2**32 + 1])), shape=(2, 2**33)).tocsr()
    assert stack_csr([wide]) is None
    message = "X, example 0 has 8589934592 features, expected at most 2147483647,.*FeatureHasher"
    refused(message, packing.stack_rows, [wide])
    refused(message.replace(", example 0", ""), packing.single_rows, wide)
    refused("8589934592 columns, expected at most 2\\^31 - 1", FeatureRows, wide)


@pytest.mark.parametrize(
    "indptr, indices, size",
    [([0, 5], [0], 1), ([1, 1], [0], 1), ([0, 2, 1], [0, 1], 2), ([0, 9, 1], [0], 1), ([], [], 0)],
)
@pytest.mark.parametrize("wide", [np.int32, np.int64])
def test_broken_matrices_are_named(indptr, indices, size, wide):
    broken = sp.csr_matrix((2, 3))
    broken.indptr, broken.indices = np.array(indptr, wide), np.array(indices, wide)
    broken.data = np.ones(size)
    fine = sp.csr_matrix(np.eye(3))
    fine.indptr, fine.indices = fine.indptr.astype(wide), fine.indices.astype(wide)
    refused("matrix 1: indptr", stack_csr, [fine, broken])


@pytest.mark.parametrize("column", [-1, 3, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("wide", [np.int32, np.int64])
def test_indices_that_are_no_columns_are_named(column, wide):
    fine, broken = sp.csr_matrix(np.eye(3)), sp.csr_matrix(np.eye(3))
    for x in (fine, broken):
        x.indices, x.indptr = x.indices.astype(wide), x.indptr.astype(wide)
    broken.indices[1] = column
    refused("matrix 1: an index is not from 0 to 2", stack_csr, [fine, broken])
    refused("X, example 1: the sparse matrix is broken", packing.stack_rows, [fine, broken])


@settings(max_examples=300)
@given(SIZES, st.integers(0, 6), DTYPES, st.integers(0, 999), st.floats(0, 1), st.floats(0, 1))
def test_dense_matrices_with_few_values(sizes, n_columns, dtype, seed, share, density):
    rows = matrices(sizes, n_columns, dtype, seed, share)
    if seed % 3 == 0 and rows[0].size:
        rows[0][0, 0] = np.nan if seed % 2 else -0.0
    expected = np.concatenate(rows)
    stacked = dense_to_csr(rows, density)
    nonzero = np.count_nonzero(expected)
    assert (stacked is None) == (nonzero > int(density * expected.size) or not expected.size)
    if stacked is not None:
        values, indices, indptr = stacked
        assert values.dtype == dtype and len(values) == len(indices) == indptr[-1] == nonzero
        whole = sp.csr_matrix(stacked, shape=expected.shape)
        assert whole.has_canonical_format
        np.testing.assert_array_equal(whole.toarray(), expected + 0.0)


def test_the_first_values_speak_for_the_rest():
    X = np.zeros((1000, 100))
    X[:200, :30] = 1
    assert dense_to_csr([X], 0.25) is None
    assert dense_to_csr([X[::-1].copy()], 0.25) is not None
    full = np.ones((300, 100))
    assert dense_to_csr([np.zeros((300, 100)), full, full], 0.25) is None


def test_dense_matrices_out_of_the_ordinary():
    zeros = np.zeros((3, 2))
    for others in (
        [zeros, zeros.astype(np.float32)],
        [zeros.astype(np.float16)],
        [np.asfortranarray(np.zeros((3, 2)))],
        [zeros, np.zeros((3, 3))],
        [np.zeros(3)],
        [zeros.tolist()],
        [],
    ):
        assert dense_to_csr(others, 1.0) is None
    X, _ = packing.stack_rows([zeros, zeros.astype(np.float32), np.asfortranarray(zeros)])
    assert X.shape == (9, 2)


@given(
    st.lists(st.integers(0, 5), max_size=20),
    st.sampled_from([np.int32, np.float64, "U3", object]),
    st.sampled_from([(), (3,), (0,), (2, 2)]),
    st.booleans(),
)
def test_pieces_are_slices(sizes, dtype, rest, reverse):
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    shape = (int(offsets[-1]), *rest)
    flat = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    flat = flat[::-1] if reverse else flat
    cut = pieces(flat, offsets)
    for piece, a, z in zip(cut, offsets[:-1], offsets[1:], strict=True):
        expected = flat[a:z]
        np.testing.assert_array_equal(piece, expected)
        assert piece.dtype == flat.dtype and piece.shape == expected.shape
        assert piece.strides == expected.strides or piece.size == 0
        assert piece.base is not None and not piece.flags.owndata
        assert piece.flags.writeable and piece.flags.c_contiguous == expected.flags.c_contiguous


def test_pieces_keep_the_array_alive_and_its_flags():
    flat = np.array(["a", "b", "c" * 100], dtype=object)
    cut = pieces(flat, [0, 1, 3])
    del flat
    assert [piece.tolist() for piece in cut] == [["a"], ["b", "c" * 100]]
    cut[1][0] = "z"
    assert cut[1][0] == "z" and cut[0].base is cut[1].base
    fixed = np.arange(4)
    fixed.flags.writeable = False
    assert not pieces(fixed, [0, 4])[0].flags.writeable


@pytest.mark.pandas
def test_data_frames_have_the_same_columns():
    pd = pytest.importorskip("pandas")
    frames = [pd.DataFrame(np.ones((2, 2)), columns=list(names)) for names in ("ab", "ab", "ba")]
    assert packing.stack_rows(frames[:2])[0].shape == (4, 2)
    refused(
        r"X, example 2: found a data frame with columns \['b', 'a'\], expected \['a', 'b'\]",
        packing.stack_rows,
        frames,
    )


def test_pieces_outside_the_array_are_refused():
    for offsets in ([0, 5], [-1, 2], [2, 1], [0, 3, 2]):
        refused("non-decreasing, 0 to 4", pieces, np.arange(4), offsets)
    assert pieces(np.arange(4), [0]) == []
    for wrong in (np.float64(3), np.array(1), [1, 2], None):
        with pytest.raises(TypeError):
            pieces(wrong, [0, 1])
    refused("plain", pieces, np.zeros((2, 2)).view(np.recarray), [0, 1], error=TypeError)


def test_distinct_pairs_agree_with_arrays():
    rng = np.random.default_rng(0)
    for _ in range(500):
        pairs, end = rng.integers(-1, 6, (rng.integers(0, 4), 2)), int(rng.integers(0, 6))
        good = len(pairs) and pairs.min() >= 0 and pairs.max() < end and (np.diff(pairs) != 0).all()
        fixed = pairs.astype(np.int64)
        fixed.flags.writeable = False
        rows = pairs.tolist()
        forms = [pairs, fixed, pairs.astype(np.int32), rows, list(map(tuple, rows))]
        for one in forms:
            answer = distinct_pairs(one, end)
            assert (answer is not None) == bool(good)
            if good:
                assert answer.dtype == np.int32 and answer.tolist() == pairs.tolist()
                assert answer.base is None


@pytest.mark.parametrize(
    "unusual",
    [
        [[0, True]], [[0, 1.0]], [[0, 1, 2]], [[0]], [0, 1], [[0, 1], None], [[0, 2**70]],
        [[-(2**70), 0]], ((0, 1),), None, "01", [["0", "1"]], {(0, 1)}, [np.array([0, 1])],
        [[np.int64(0), np.int64(1)]], np.array([0, 1]), np.array([[[0, 1]]]), np.array([[0, 1, 2]]),
        np.array([[0.0, 1.0]]), np.array([[0, 1], [1, 2]]).T, np.array([[0, 1]], ">i8"),
        np.array([[0, 1]], np.uint64), np.array([[False, True]]), np.array([[0, 1]], object),
        np.ma.masked_equal([[0, 1]], 1), np.zeros((2, 4), int)[:, ::2],
    ],
)  # fmt: skip
def test_distinct_pairs_leave_unusual_ones_to_arrays(unusual):
    assert distinct_pairs(unusual, 5) is None


@pytest.mark.pandas
def test_one_frame_and_missing_values_are_refused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"u": [0.0, 1.0], "v": [2.0, 3.0]})
    refused("X: found a data frame, expected a list of matrices", packing.stack_rows, frame)
    frame = frame.astype("Float64").mask(frame > 2)
    message = "'NAType'.; impute or drop missing values first"
    refused(message, packing.stack_rows, [frame], error=TypeError)


@pytest.mark.pandas
def test_stacked_rows_of_a_data_frame_keep_its_names():
    """Other orders of columns were taken by place, silently."""
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(6, 2)), columns=["a", "b"])
    X, y = Sequences(rows, [2, 3, 1]), [["p", "q"], ["p", "q", "q"], ["p"]]
    model = StructuredSVM("chain", tol=0.1).fit(X, y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    expected = [labels.tolist() for labels in model.predict(X)]
    assert [labels.tolist() for labels in model.predict(X[[2, 0]])] == [expected[2], expected[0]]
    turned = Sequences(rows[["b", "a"]], [2, 3, 1])
    for other in (turned, turned[[1, 2]]):
        refused("feature names should match", model.predict, other)
