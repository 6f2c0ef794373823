"""Marginals of projective trees by vectors: every version against sums over trees without an arc.

Run as a script, this file computes with the version that STRUCTSOLVE_SIMD asks for and writes the
results to the file named on the command line.
"""

import sys
from functools import cache

import numpy as np
import pytest
from programs import by_instructions

VERSIONS = ["plain", "avx2", "avx512"]
SIZES = [*range(1, 11), 15, 16, 17, 24, 33]  # around whole vectors
KINDS = ["plain", "barred", "steep"]


def tables(n, kind):
    """Scores [head or root, word]."""
    rng = np.random.default_rng(n)
    scores = rng.normal(size=(n + 1, n))
    if kind == "steep":
        scores *= 8
    if kind == "barred":
        # A tree stays: every word depends on the one before.
        barred = rng.random(scores.shape) < 0.4
        barred[np.arange(n), np.arange(n)] = False
        scores[barred] = -np.inf
    return scores


def compute():
    """Return log-partitions and marginals by name."""
    from structsolve import get_structure
    from structsolve.batch import Scores, marginals, score_space

    results = {}
    for single in (False, True):
        space = score_space(get_structure("dependency", projective=True, single_root=single))
        for n in SIZES:
            arcs = ~np.eye(n + 1, n, -1, dtype=bool).T  # [word, head] without a word's own
            for kind in KINDS:
                node = tables(n, kind).T[arcs]
                given = Scores(node, examples=space.pack_sizes([n]))
                answer, value = marginals(space, given)
                table = np.zeros((n, n + 1))
                table[arcs] = answer.node.ravel()
                results[f"{single} {n} {kind}"] = table.T
                results[f"{single} {n} {kind} value"] = value
    return results


def log_sums_of_trees(scores, single):
    """Return the log of the sum over all trees for each table, by spans and their logs."""
    n = scores.shape[2]
    right = np.full((n + 1, n + 1, len(scores)), -np.inf)  # [left end, right end]
    left, arc_right, arc_left = right.copy(), right.copy(), right.copy()
    add, first, arcs = np.logaddexp.reduce, int(single), np.moveaxis(scores, 0, 2)
    for i in range(n + 1):
        right[i, i] = left[i, i] = 0
    for d in range(1, n + 1):
        for i in range(first, n + 1 - d):
            j = i + d
            joined = add(right[i, i:j] + left[i + 1 : j + 1, j])
            arc_right[i, j] = joined + arcs[i, j - 1]
            arc_left[i, j] = joined + arcs[j, i - 1] if i else -np.inf
            right[i, j] = add(arc_right[i, i + 1 : j + 1] + right[i + 1 : j + 1, j])
            left[i, j] = add(left[i, i:j] + arc_left[i:j, j])
    return add(left[1, 1:] + arcs[0] + right[1:, n]) if single else right[0, n]


@cache
def sums_of(n, kind, single):
    """Return :func:`log_sums_of_trees`, and arcs with the shares of trees that have them."""
    scores = tables(n, kind)
    # Every arc of short sentences, some of long ones.
    arcs = [divmod(arc, n) for arc in range(0, scores.size, 1 if n < 8 else 37)]
    arcs = [(h, word) for h, word in arcs if h != word + 1 and scores[h, word] > -np.inf]
    every = np.repeat(scores[None], 1 + len(arcs), axis=0)
    for table, arc in zip(every[1:], arcs):
        table[arc] = -np.inf
    total, *without = log_sums_of_trees(every, single)
    return total, [(*arc, -np.expm1(log_sum - total)) for arc, log_sum in zip(arcs, without)]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return results of every version for this processor, each from a process of its own."""
    return by_instructions(__file__, tmp_path_factory.mktemp("spans"), VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("single", [False, True])
def test_every_arc_weighs_what_trees_lose_without_it(results, version, single):
    for n in SIZES:
        for kind in KINDS:
            scores, ours = tables(n, kind), results[version][f"{single} {n} {kind}"]
            total, shares = sums_of(n, kind, single)
            value = results[version][f"{single} {n} {kind} value"]
            assert value == pytest.approx(total, rel=1e-13, abs=1e-12), f"{n} {kind}"
            np.testing.assert_allclose(ours.sum(axis=0), 1, rtol=1e-13, err_msg=f"{n} {kind}")
            assert (ours[scores == -np.inf] == 0).all()
            for head, word, share in shares:
                assert ours[head, word] == pytest.approx(share, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_versions_agree(results, version):
    for name, ours in results[version].items():
        np.testing.assert_allclose(
            ours, results["avx512"][name], rtol=1e-12, atol=1e-300, err_msg=name
        )


if __name__ == "__main__":
    np.savez(sys.argv[1], **compute())
