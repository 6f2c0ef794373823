"""The vector kernels: every version against NumPy, all versions against each other.

Run as a script, this file computes with the version that STRUCTSOLVE_SIMD asks for and writes the
results to the file named on the command line.
"""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from programs import by_instructions

VERSIONS = ["plain", "avx2", "avx512"]
WIDTHS = [*range(1, 71), 260]  # and one that is read in whole rows
LONG = {4: 700, 8: 1, 12: 500, 26: 300, 33: 200}  # chains whose messages are rescaled on the way
ROWS, COLUMNS = 3, 7


def inputs(k):
    """Return features (dense, sparse, all ones), weights, and scores of a chain with k states."""
    rng = np.random.default_rng(k)
    dense = rng.normal(size=(ROWS, COLUMNS))
    sparse = sp.csr_matrix(dense * (rng.random(dense.shape) < 0.4))
    weights = rng.normal(size=(COLUMNS + 1, k))
    length = LONG.get(k, 1 + k % 6)
    scores = {"transition": (k, k), "start": (k,), "end": (k,), "node": (length, k)}
    return dense, sparse, weights, {n: rng.normal(size=shape) for n, shape in scores.items()}


def designs(dense, sparse):
    return {
        "dense f64": dense,
        "dense f32": dense.astype(np.float32),
        "csr f64": sparse,
        "csr f32": sparse.astype(np.float32),
        "csr ones": (sparse != 0).astype(float),
    }


def compute():
    """Return all results by name, for all widths."""
    from structsolve import Examples
    from structsolve.part_layout import PartLayout
    from structsolve.plugins.chain._oracle import ChainKBest, ChainMaxMarginals, ChainOracle
    from structsolve.plugins.chain._projections import ChainSumProduct
    from structsolve.potentials import calls as potential_calls
    from structsolve.potentials.features import FeatureRows
    from structsolve.potentials.weight_layout import Block, WeightLayout
    from structsolve.structure import calls
    from structsolve.utils.arrays import padded

    results = {}
    for k in WIDTHS:
        dense, sparse, weights, scores = inputs(k)
        W = np.zeros((COLUMNS + 1, padded(k)))
        W[:, :k] = weights
        for name, X in designs(dense, sparse).items():
            for intercept in (0, 2.5):
                features = FeatureRows(X, padded(k), intercept)
                rows = W[: COLUMNS + (intercept > 0)].ravel()
                results[f"{k} {name} {intercept}"] = [
                    potential_calls.row_score(features, r, rows)[:k] for r in range(ROWS)
                ]
        length = len(scores["node"])
        layout = WeightLayout(
            [
                Block(n, "node" if n == "node" else "shared", s.shape[n == "node" :])
                for n, s in scores.items()
            ],
            1,
        )
        theta = np.zeros(layout.theta_size(length, length - 1))
        for name, view in layout.theta_views(theta, length, length - 1).items():
            view[...] = scores[name]
        bound_to = PartLayout(layout, Examples(np.array([0, length])))
        label, value, _ = calls.argmax(ChainOracle(bound_to), 0, theta)
        results[f"{k} label"], results[f"{k} value"] = label, value
        results[f"{k} max-marginals"] = calls.max_marginals(
            ChainMaxMarginals(bound_to), 0, theta, k
        )
        results[f"{k} kbest"] = calls.kbest(ChainKBest(bound_to), 0, theta, 4)[0]
        marginals, total, _ = calls.project(ChainSumProduct(bound_to), 0, theta)
        results[f"{k} log-partition"] = total
        for name, view in layout.theta_views(marginals, length, length - 1).items():
            results[f"{k} {name} marginals"] = view
    return results


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return results of every version for this processor, each from a process of its own."""
    return by_instructions(__file__, tmp_path_factory.mktemp("kernels"), VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_scores(results, version):
    for k in WIDTHS:
        dense, sparse, weights, _ = inputs(k)
        for name, X in designs(dense, sparse).items():
            X = (X.toarray() if sp.issparse(X) else X).astype(float)
            for intercept in (0, 2.5):
                expected = X @ weights[:-1] + intercept * weights[-1]
                np.testing.assert_allclose(
                    results[version][f"{k} {name} {intercept}"],
                    expected,
                    rtol=1e-12,
                    atol=1e-12,
                    err_msg=f"{name}, width {k}",
                )


@pytest.mark.parametrize("version", VERSIONS)
def test_recursions(results, version):
    ours = results[version]
    for k in WIDTHS:
        scores = inputs(k)[3]
        unary = scores["node"].copy()
        unary[0] += scores["start"]
        unary[-1] += scores["end"]
        best = total = unary[0]
        for row in unary[1:]:
            best = (best[:, None] + scores["transition"]).max(axis=0) + row
            total = np.logaddexp.reduce(total[:, None] + scores["transition"], axis=0) + row
        assert ours[f"{k} value"] == pytest.approx(best.max(), rel=1e-13)
        assert ours[f"{k} log-partition"] == pytest.approx(np.logaddexp.reduce(total), rel=1e-13)
        label = ours[f"{k} label"]
        reached = unary[np.arange(len(label)), label].sum()
        reached += scores["transition"][label[:-1], label[1:]].sum()
        assert reached == pytest.approx(best.max(), rel=1e-13)
        np.testing.assert_allclose(ours[f"{k} max-marginals"].max(axis=1), best.max(), rtol=1e-12)
        nodes, pairs = ours[f"{k} node marginals"], ours[f"{k} transition marginals"]
        np.testing.assert_allclose(nodes.sum(axis=1), 1, rtol=1e-13)
        # The edges' tables add up to the marginals of both of their nodes.
        np.testing.assert_allclose(
            pairs.sum(axis=1), nodes[:-1].sum(axis=0), rtol=1e-11, atol=1e-12
        )
        np.testing.assert_allclose(pairs.sum(axis=0), nodes[1:].sum(axis=0), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_versions_agree(results, version):
    """Maximisation adds and compares with equal bits; products and sums agree up to rounding."""
    for name, ours in results[version].items():
        other = results["avx512"][name]
        if name.split()[1] in ("label", "value", "kbest"):
            np.testing.assert_array_equal(ours, other, err_msg=name)
        else:
            np.testing.assert_allclose(ours, other, rtol=1e-11, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("shift", [0.0, -3.25, 700.0])
def test_exponentials_to_the_last_bits(shift):
    """Softmax of pairs is a thin layer over the exponential kernel."""
    from structsolve.plugins.multiclass import MulticlassStructure
    from structsolve.structure import calls
    from structsolve.structure.ask import make_layout

    k = 4096
    space, _ = MulticlassStructure().make_space(np.zeros((1, 1)), [0], classes=range(k))
    layout = make_layout(space, space.pack(np.zeros((1, 1))))
    theta = shift - np.linspace(0, 707, k) ** 1.1 / 2
    marginals, value, _ = calls.project(space.make_projection("entropy")(layout), 0, theta)
    total = np.exp(theta - theta.max()).sum()
    np.testing.assert_allclose(marginals * total, np.exp(theta - theta.max()), rtol=2e-15)
    assert value == pytest.approx(shift + np.log(total), rel=1e-15)
    assert calls.argmax(space.make_oracle()(layout), 0, theta)[0] == [0]


if __name__ == "__main__":
    np.savez(sys.argv[1], **compute())
