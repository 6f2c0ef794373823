"""The fuzzer of certificates: a sample of its fits, and a check that it detects planted faults."""

import numpy as np
import pytest
from fuzz import certificates, recomputed
from fuzz.worker import run_cases

import structsolve
from structsolve import Problem, StructuredSVM

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_a_sample_of_the_fits():
    """`.ci/fuzz SECONDS certificates` runs as many as time allows."""
    tally = run_cases("certificates", range(120))
    assert not tally.lines
    assert tally.cases - tally.refused > 30  # the others are refused, or certify nothing


def test_a_sample_of_the_liars():
    """Oracles, relaxations, programs: most faults are noticed; others are false certificates."""
    tally = run_cases("liars", range(60))
    assert tally.refused > 45 and all(" certified, " in line for line in tally.lines)


@pytest.fixture
def fitted():
    structure = structsolve.get_structure("chain")
    X, Y = structure.sample(0)
    model = StructuredSVM(structure, alpha=0.1, tol=1e-6).fit(X, Y)
    written = recomputed.write_out(Problem(model.space_, model.space_.pack(X, Y)), "hamming")
    return model, written


def faults(model, written):
    return certificates.check(model, written, "margin", False, 0, True, True)


def test_what_is_true_passes(fitted):
    assert not faults(*fitted)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"primal": 0.99}, "below the objective"),
        ({"primal": 1.01}, "is not the objective"),
        ({"dual": 1.001}, "above the optimum"),
        ({"dual": 1.2}, "above the objective"),
        ({"gap": 1.5}, "is not"),
    ],
)
def test_what_is_not_is_seen(fitted, changed, told):
    model, written = fitted
    record = model.history_[-1]
    for key, factor in changed.items():
        record[key] = record[key] * factor + (key == "gap") * 0.1
    if "gap" not in changed:
        record["gap"] = record["primal"] - record["dual"]
    if told == "above the optimum":  # weights that are not the best, told for what they are
        model._model.weights += 0.05 * (model._model.weights != 0)
        record["primal"] = written.primal(model._model.weights, 0.1, "margin", False)
        record["gap"] = record["primal"] - record["dual"]
    assert any(told in fault for fault in faults(model, written))


def test_values_of_smooth_surrogates_are_those_of_the_problem(fitted):
    """Reference and loops agree at weights that no solver has chosen."""
    _, written = fitted
    rng = np.random.default_rng(0)
    for name in ("crf", "sparsemap", "max-min", "unit-margin"):
        problem = Problem(written.problem.space, written.problem.examples, surrogate=name)
        own = recomputed.write_out(problem, "hamming")
        w = np.zeros(problem.dim)
        for block in problem.space.layout.blocks:  # not what pads them
            view = problem.space.layout.view(w, block.name)
            view[...] = rng.normal(size=view.shape)
        value = problem.primal(w, 0.1)[0]
        assert own.primal(w, 0.1, name, False) == pytest.approx(value, rel=1e-6)
