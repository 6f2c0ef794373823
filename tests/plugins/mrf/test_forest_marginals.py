"""CRF on label sets and graphs without cycles: their marginals against enumeration, training."""

import numpy as np
import pytest
from forest_cases import FORESTS, ForestMRF

from structsolve import StructuredSVM
from structsolve.plugins.mrf.messages._sum_product import ForestSumProduct
from structsolve.plugins.multilabel import MultilabelStructure
from structsolve.structure.ask import ask_projection, make_layout
from structsolve.testing import check_structure
from structsolve.testing._case import Case
from structsolve.testing._projections import check_projections


@pytest.mark.parametrize("structure", FORESTS, ids=repr)
def test_marginals_against_enumeration(structure):
    for number in range(2):
        case = Case(structure, number, number, 3)
        projection = ask_projection(case.space, "entropy")(make_layout(case.space, case.examples))
        assert isinstance(projection, ForestSumProduct)
        case.enumerate()
        check_projections(case)


@pytest.mark.slow
def test_the_whole_kit():
    check_structure(ForestMRF(directed=True), n_cases=2)
    check_structure(MultilabelStructure(edges="tree"), n_cases=2)


def test_crf_trains():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    Y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(40, 4)) > 0).astype(int)
    options = {"surrogate": "crf", "alpha": 0.1, "tol": 1e-4, "max_iter": 200}
    model = StructuredSVM(MultilabelStructure(edges="tree"), **options).fit(X, Y)
    assert model.stop_reason_ == "converged"
    # A tree without weights for pairs says the same as no pairs.
    plain = StructuredSVM(MultilabelStructure(edges="none"), **options).fit(X, Y)
    assert model.history_[-1]["primal"] <= plain.history_[-1]["primal"] + 1e-3
    whole = StructuredSVM(MultilabelStructure(edges="full"), **options).fit(X, Y)
    assert whole.history_[-1]["primal"] <= model.history_[-1]["primal"] + 1e-3
