"""The psi of bi-criteria surrogates: values, slopes, properties; errors of check_psi."""

import copy
import pickle

import numpy as np
import pytest
from checks import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import psi as reference

import structsolve
from structsolve import CostMatrix
from structsolve.search import psi as native
from structsolve.search.check import check_psi
from structsolve.search.psi import BetaPsi, GeneralizedPsi, LogPsi, ProbLossPsi, PythonPsi, RatioPsi
from structsolve.surrogates import BiCriteria

PAIRS = {
    "margin": (GeneralizedPsi(1, 0), reference.margin()),
    "slack": (GeneralizedPsi(1, 1), reference.slack()),
    "generalized:1,0.5": (GeneralizedPsi(1, 0.5), reference.generalized(1, 0.5)),
    "generalized:0.5,0.5": (GeneralizedPsi(0.5, 0.5), reference.generalized(0.5, 0.5)),
    "generalized:0.25,0": (GeneralizedPsi(0.25, 0), reference.generalized(0.25, 0)),
    "generalized:2,1.5": (GeneralizedPsi(2, 1.5), reference.generalized(2, 1.5)),
    "beta:0": (BetaPsi(0), reference.margin()),
    "beta:0.25": (BetaPsi(0.25), reference.beta(0.25)),
    "beta:1": (BetaPsi(1), reference.slack()),
    "log": (LogPsi(), reference.log()),
    "probloss": (ProbLossPsi(), reference.convex_probloss()),
    "probloss:original": (ProbLossPsi(False), reference.probloss()),
    "micro-f1": (RatioPsi(), reference.micro_f1()),
}
CHECKED = [name for name in PAIRS if name != "micro-f1"]
every = pytest.mark.parametrize("name", PAIRS)

# From the smallest relevant values to the largest; g = 0 has separate tests.
margins = st.one_of(
    st.floats(-50, 50), st.sampled_from([0.0, -1e4, 1e4, 1e-9, -1e-9, -745.0, 710.0])
)
losses = st.one_of(st.floats(1e-6, 50), st.sampled_from([1.0, 1e-4, 1e4, 3.0]))


class Given:
    """A psi of two functions; slopes are differences unless given."""

    def __init__(self, value, slopes=None, affine=False, convex=False):
        self.value, self.affine, self.convex = value, affine, convex
        self.given = slopes

    def partials(self, h, g):
        if self.given is not None:
            return self.given(h, g)
        step = 1e-6 * max(1, abs(h), abs(g))
        low = max(g - step, 0.0)
        return (
            (self.value(h + step, g) - self.value(h - step, g)) / (2 * step),
            (self.value(h, g + step) - self.value(h, low)) / (g + step - low),
        )


def side(name, g):
    """Micro-F1 has negative g."""
    return -g if name == "micro-f1" else g


@every
@settings(max_examples=40)
@given(h=margins, g=losses)
def test_values_and_slopes(name, h, g):
    ours, theirs = PAIRS[name]
    g = side(name, g)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        value, slopes = float(theirs.value(h, g)), [float(s) for s in theirs.slopes(h, g)]
    scale = 1e-12 * max(1.0, abs(h), abs(g)) ** 2
    assert ours(h, g) == pytest.approx(value, rel=1e-10, abs=scale)
    assert ours.slopes(h, g) == pytest.approx(slopes, rel=1e-9, abs=1e-9)


@every
@pytest.mark.parametrize("h", [-1e4, -2.0, 0.0, 1e-9, 3.0, 1e4])
def test_labels_without_loss(name, h):
    """g = 0: values as in the reference, and slopes that are not NaN."""
    ours, theirs = PAIRS[name]
    assert ours(h, 0.0) == pytest.approx(float(theirs.value(h, 0.0)), abs=1e-15)
    assert not np.isnan(ours.slopes(h, 0.0)).any()
    dh = ours.slopes(h, 0.0)[0]
    assert np.isfinite(dh) and dh >= 0
    if name != "micro-f1":
        assert dh == pytest.approx(float(theirs.slopes(h, 0.0)[0]), abs=1e-15)
    assert ours(0.0, 0.0) == 0


@every
def test_what_they_say_of_themselves(name):
    ours, theirs = PAIRS[name]
    assert (ours.affine, ours.convex) == (theirs.affine, theirs.convex)
    assert ours.product == (name == "slack")
    assert isinstance(ours.name, str) and ours.name


@every
@pytest.mark.parametrize("h", [-1e4, -40.0, 40.0, 1e4])
@pytest.mark.parametrize("g", [1e-12, 1e-4, 1.0, 1e4])
def test_far_out_nothing_overflows(name, h, g):
    ours, g = PAIRS[name][0], side(name, g)
    assert np.isfinite(ours(h, g))
    slopes = np.array(ours.slopes(h, g))
    assert not np.isnan(slopes).any() and slopes[0] >= 0


@every
def test_copies(name):
    """clone() of scikit-learn copies parameters deeply; processes pickle them."""
    ours = PAIRS[name][0]
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert other(1.5, side(name, 2.0)) == ours(1.5, side(name, 2.0))
        assert other.name == ours.name


@pytest.mark.parametrize(
    "alpha, beta", [(0, 0), (-1, -1), (1, -0.1), (0.5, 1), (2.5, 1), (np.nan, 0), (1, np.nan),
                    (np.inf, np.inf), (np.inf, 0)]
)  # fmt: skip
def test_generalized_refuses(alpha, beta):
    refused("0 <= alpha - beta <= 1", GeneralizedPsi, alpha, beta)


@pytest.mark.parametrize("beta", [-0.1, 1.1, np.nan, np.inf])
def test_beta_refuses(beta):
    refused("expected a number from 0 to 1", BetaPsi, beta)


@pytest.mark.parametrize(
    "alpha, beta, message",
    [
        (0.5, 1, "psi falls as g grows"),
        (2.5, 1, "psi is not quasi-concave"),
        (1, -0.1, "h=0, g=0. returned nan"),
    ],
)
def test_the_pairs_refused_are_not_quasi_concave_or_fall(alpha, beta, message):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
        check_psi(as_user(reference.generalized(alpha, beta)), pairs=20_000)


def as_user(psi):
    """A reference psi in the form a user would write."""

    def slopes(h, g):
        with np.errstate(all="ignore"):
            dh, dg = psi.slopes(h, g)
        return float(dh), float(np.nan_to_num(dg, nan=0.0))

    def value(h, g):
        with np.errstate(all="ignore"):
            return float(psi.value(h, g))

    return PythonPsi(Given(value, slopes, psi.affine, psi.convex))


# ---- check_psi -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.parametrize("seed", range(3))
def test_good_ones_pass(name, seed):
    ours, theirs = PAIRS[name]
    check_psi(ours, random_state=seed)
    check_psi(as_user(theirs), random_state=seed)


GOOD = {
    "minimum": Given(lambda h, g: min(g, max(h + g, 0.0))),
    "square": Given(lambda h, g: max(h + 1, 0.0) ** 2 * g, convex=True),
    "capped": Given(lambda h, g: min((h + 1) * g, 4.0)),
    "zero": Given(lambda h, g: 0.0, affine=True),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_ones_of_users_pass(name):
    check_psi(PythonPsi(GOOD[name]))


BAD = {
    "falls in h": (
        Given(lambda h, g: (2 - h / 10) * g, lambda h, g: (-g / 10, 2 - h / 10)),
        "falls as h grows at h=",
    ),
    "falls in h, slope hidden": (
        Given(lambda h, g: (2 - h / 10) * g, lambda h, g: (g / 10, 2 - h / 10)),
        "falls as h grows at h=",
    ),
    "falls in g": (Given(lambda h, g: (h + 1) * g * np.exp(-g)), "falls as g grows at h="),
    "not quasi-concave": (
        Given(lambda h, g: max(h, 0) ** 2 + g**2, lambda h, g: (2 * max(h, 0), 2 * g)),
        r"not quasi-concave: psi\(h=.*lies between",
    ),
    "wrong slope in h": (
        Given(lambda h, g: (h + 1) * g, lambda h, g: (g / 2, h + 1)),
        "derivative with respect to h at h=",
    ),
    "wrong slope in g": (
        Given(lambda h, g: (h + 1) * g, lambda h, g: (g, h)),
        "derivative with respect to g at h=",
    ),
    "slopes exchanged": (
        Given(lambda h, g: (h + 1) * g, lambda h, g: (h + 1, g)),
        "derivative|falls",
    ),
    "infinite": (Given(lambda h, g: np.inf if h > 5 else (h + 1) * g), r"psi\(h=.*is inf"),
    "not 0 at the truth": (Given(lambda h, g: (h + 1) * (g + 1)), r"psi\(h=0, g=0\) is 1"),
    "no affine function": (
        Given(lambda h, g: g * np.logaddexp(h, 0), affine=True),
        "says that it is affine in h, which it is not at h=",
    ),
    "no convex function": (
        Given(lambda h, g: g * np.tanh(h / 4) + g, convex=True),
        "says that it is convex in h, which it is not at h=",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_ones_are_refused_with_the_point(name):
    psi, message = BAD[name]
    refused(message, check_psi, PythonPsi(psi))
    with pytest.raises(ValueError, match=message):
        structsolve.StructuredSVM(
            "multiclass", surrogate=BiCriteria(psi), max_iter=1, loss=CostMatrix([[0, 9], [9, 0]])
        ).fit([[0.0], [1.0]], [0, 1])


def test_nan_and_nonsense():
    for answer in (np.nan, None, "much", [1, 2]):
        with pytest.raises(ValueError, match=r"psi: value\(h=-?\d+, g=0\) returned"):
            check_psi(PythonPsi(Given(lambda h, g, answer=answer: answer)))
    for answer in (None, 1.0, (1.0,), (1, 2, 3), ("a", "b"), (np.nan, 0.0)):
        bad = Given(lambda h, g: (h + 1) * g, lambda h, g, answer=answer: answer)
        refused(r"psi: partials\(h=.*\) returned", check_psi, PythonPsi(bad))


def test_what_is_no_psi_at_all():
    for wrong in (3, "slack", None, object(), lambda h, g: g):
        refused(r"expected an object with value\(h, g\)", PythonPsi, wrong, error=TypeError)
        with pytest.raises(TypeError, match=r"expected an object with value\(h, g\)"):
            structsolve.StructuredSVM("multiclass", surrogate=BiCriteria(wrong)).fit(
                [[0.0], [1.0]], [0, 1]
            )


def test_the_base_class_says_what_is_missing():
    with pytest.raises(NotImplementedError, match=r"does not implement value"):
        native.Psi()(0, 0)
    with pytest.raises(NotImplementedError, match=r"does not implement partials"):
        native.Psi().slopes(0, 0)


def test_a_ratio_of_negative_losses_is_no_psi_of_losses():
    """It is 0 for all g >= 0: an objective without data."""
    with pytest.raises(ValueError, match="micro-f1"):
        structsolve.StructuredSVM("multiclass", surrogate=BiCriteria(RatioPsi())).fit(
            [[0.0], [1.0]], [0, 1]
        )


# ---- Python psis that fail later -----------------------------------------------------------------


class Fails:
    """Slack rescaling that changes after some calls.  check_psi sees only the valid part."""

    affine = True

    def __init__(self, method, what):
        self.method, self.what, self.armed = method, what, False

    def _maybe(self, method, answer):
        if self.armed and method == self.method:
            if isinstance(self.what, Exception):
                raise self.what
            return self.what
        return answer

    def value(self, h, g):
        return self._maybe("value", (h + 1) * g)

    def partials(self, h, g):
        return self._maybe("partials", (g, h + 1))


@pytest.mark.parametrize("structure", ["multiclass", "chain"])
@pytest.mark.parametrize("method", ["value", "partials"])
@pytest.mark.parametrize("what", [np.nan, None, "x", (1, 2, 3), ZeroDivisionError("by zero")])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_psi_that_fails_in_a_search(structure, method, what, n_jobs):
    psi = Fails(method, what)
    X, Y = [[[1.0], [0.0]], [[0.0], [1.0]]] * 3, [[0, 1], [1, 0]] * 3
    if structure == "multiclass":
        X, Y = [row for x in X for row in x], [label for y in Y for label in y]
    problem = structsolve.Problem(
        *structsolve.get_structure(structure).make_space(X, Y), surrogate=BiCriteria(psi)
    )
    psi.armed = True
    refused(f"psi: {method}", problem.bounds, np.zeros(problem.dim), n_jobs)
    psi.armed = False
    assert problem.bounds(np.zeros(problem.dim))[0].max() >= 1


class FailsWhereLossesAre(Fails):
    """As given, but correct at g = 0."""

    def partials(self, h, g):
        return super().partials(h, g) if g else (g, h + 1)


@pytest.mark.parametrize("answer", [(np.nan, 1.0), (1.0, np.nan)])
def test_numbers_that_are_none_are_named_with_their_point(answer):
    psi = FailsWhereLossesAre("partials", answer)
    X, y = [[1.0], [0.0]], [0, 1]
    problem = structsolve.Problem(
        *structsolve.get_structure("multiclass").make_space(X, y), surrogate=BiCriteria(psi)
    )
    psi.armed = True
    refused(r"psi: partials\(h=0, g=(0.5|1)\) returned nan", problem.bounds, np.zeros(problem.dim))


@pytest.mark.parametrize("length, refuses", [(5, False), (40, True)])
def test_psi_is_checked_up_to_the_largest_loss_of_the_data(length, refuses):
    """A psi that falls beyond g = 30 works if no label is so wrong."""

    class Falls:
        affine = True

        def value(self, h, g):
            return (h + 1) * g if g <= 30 else (h + 1) * max(60 - g, 0)

        def partials(self, h, g):
            return self.value(1, g) - self.value(0, g), (h + 1) * (1 if g <= 30 else -1)

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(size, 2)) for size in (3, length)]
    given = structsolve.get_structure("chain").make_space(X, [np.arange(len(x)) % 2 for x in X])
    BiCriteria(Falls()).make_psi()
    if refuses:
        refused("psi falls as g grows", structsolve.Problem, *given, surrogate=BiCriteria(Falls()))
        return
    problem = structsolve.Problem(*given, surrogate=BiCriteria(Falls()))
    assert problem.surrogate.plane.largest_loss(problem.labels) == length
