"""The conformance kit passes valid structures and names the promise that a wrong one breaks."""

import numpy as np
import pytest
from checks import LOSS, refused
from edge_structures import EdgeChain
from python_structures import (
    BudgetSpace,
    PyChainStructure,
    RelaxedBudgetSpace,
    SubsetStructure,
    budget,
    py_chain,
)
from wrong_projections import (
    PROJECTIONS,
    BoundedStructure,
    ChancesStructure,
    ConcaveStructure,
    MatrixStructure,
)
from wrong_spaces import SPACES
from wrong_structures import (
    SLOW,
    WRONG,
    CountingStructure,
    OtherProjectionStructure,
    OwnLoss,
    OwnLossStructure,
    PowersStructure,
    SecondBest,
)

from structsolve import StructuredSVM, TaskLoss
from structsolve.lp import ask_oracle
from structsolve.plugins.chain.space import ChainStructure
from structsolve.solvers import BCFW
from structsolve.solvers.bcfw_run import BCFWRun
from structsolve.structure import calls
from structsolve.structure.ask import make_layout
from structsolve.testing import BrokenPromise, SlowOperator, check_structure
from structsolve.testing._case import Case
from structsolve.testing._operators import check_threads


@pytest.mark.parametrize(
    "structure",
    [
        "chain",
        "multiclass",
        ChainStructure(start_end=False),
        ChainStructure(transitions=False),
        EdgeChain(),
        EdgeChain(start_end=False, transitions=False),
    ],
    ids=repr,
)
def test_native_structures_pass(structure):
    check_structure(structure, n_cases=2)


@pytest.mark.parametrize(
    "structure", [PyChainStructure(), SubsetStructure()], ids=lambda structure: structure.name
)
def test_python_structures_pass(structure):
    check_structure(structure, n_cases=2)


@pytest.mark.parametrize("loss", ["zero-one", "normalized-hamming"])
def test_other_losses(loss):
    check_structure("chain", loss=loss, n_cases=1, only=LOSS)


@pytest.mark.parametrize("structure_class, message", WRONG + PROJECTIONS + SPACES)
def test_wrong_structures_are_caught(structure_class, message):
    with pytest.raises(BrokenPromise, match=message) as caught:
        check_structure(structure_class(), n_cases=2, solvers=())
    broken = caught.value
    assert "expected" in str(broken) or "clone" in str(broken)
    if broken.case is not None:
        assert f"random_state={broken.case.seed}" in str(broken)
        assert broken.structure is broken.case.structure


def test_own_loss_and_projection_pass():
    check_structure(OwnLossStructure(), loss="own", n_cases=2, solvers=("bcfw",))
    check_structure(OtherProjectionStructure(), n_cases=1, solvers=())


@pytest.mark.parametrize("cls", [ChancesStructure, BoundedStructure, ConcaveStructure])
def test_states_terms_and_samples_in_python_pass(cls):
    check_structure(cls(), n_cases=1, size=2, solvers=())


def test_own_matrix_of_costs_passes():
    check_structure(MatrixStructure(), loss="own", n_cases=2, solvers=("bcfw",))


def test_best_label_for_each_count_passes():
    check_structure(CountingStructure(), n_cases=2, solvers=())


@pytest.mark.parametrize("space_class", [BudgetSpace, RelaxedBudgetSpace])
def test_oracles_that_miss_labels_and_say_by_how_much_pass(space_class):
    check_structure(budget(space_class), n_cases=2)


def test_a_bound_below_a_label_is_caught_though_the_oracle_may_miss_labels():
    class Low(BudgetSpace):
        def argmax_bounded(self, examples, i, theta):
            label, bound = super().argmax_bounded(examples, i, theta)
            return label, 0.9 * bound

    with pytest.raises(BrokenPromise, match="Oracle.argmax .* bound"):
        check_structure(budget(Low), n_cases=2)
    with pytest.raises(BrokenPromise, match="reports the objective of its weights"):
        check_structure(budget(Low), n_cases=2, only=["parts"])


class TestTraining:
    """Solvers with false certificates, and problems that cannot be built."""

    @staticmethod
    def solver(**changes):
        class Liar(BCFW):
            name = "liar"

            def start(self, start):
                run_class = type("LiarRun", (BCFWRun,), changes)
                return run_class(self, start)

        return Liar()

    @pytest.mark.parametrize(
        "key, of_the_primal, message",
        [
            ("primal", 0.9, "'liar' .* reports the objective of its weights"),
            ("dual", 1.1, "'liar' .* has a dual below the primal"),
        ],
    )
    def test_records(self, key, of_the_primal, message):
        def certify(self):
            record = BCFWRun.certify(self)
            return {**record, key: record["primal"] * of_the_primal}

        with pytest.raises(BrokenPromise, match=message):
            check_structure("multiclass", n_cases=1, solvers=[self.solver(certify=certify)])

    def test_gap(self):
        with pytest.raises(BrokenPromise, match="'liar' .* closes the gap in"):
            check_structure(
                "multiclass",
                n_cases=1,
                solvers=[self.solver(weights=lambda self: 0 * self.loop.w, certify=_at_zero)],
            )

    def test_loss_that_no_solver_can_use(self):
        class NoCosts(PyChainStructure):
            space_class = type("NoCosts", (OwnLoss,), {"loss_costs": property()})

        with pytest.raises(BrokenPromise, match="Problem .* can be built with loss 'own'.*decompo"):
            check_structure(NoCosts(), loss="own", n_cases=1, solvers=("bcfw",))


def _at_zero(self):
    primal, _ = self.given.problem.primal(0 * self.loop.w, self.given.alpha)
    return {"primal": primal, "dual": 0.0, "gap": primal, "certified": True, "oracle_calls": 0}


def test_unknown_structure_lists_the_known_ones():
    refused(
        r"unknown structure 'chian' .did you mean 'chain'\?.; known: .*'chain'",
        check_structure,
        "chian",
    )


def test_bounds_relaxations_and_cones_pass():
    check_structure(PowersStructure(), n_cases=3, solvers=())


@pytest.mark.parametrize("random_state", [6, 7])
def test_what_broke_can_be_seen_again(random_state):
    structure = py_chain(argmax=SecondBest.space_class.argmax)
    again = r"example \d.*To see it again: check_structure\(structure, n_cases=1, size=2, random_st"
    with pytest.raises(
        BrokenPromise, match=rf"case 0, random_state {random_state}, {again}"
    ) as first:
        check_structure(structure, n_cases=3, size=2, random_state=random_state, solvers=())
    call = str(first.value).rpartition("To see it again: ")[2]
    with pytest.raises(BrokenPromise) as second:
        eval(call, {"check_structure": check_structure, "structure": structure})
    assert str(second.value) == str(first.value)
    broken = second.value
    assert broken.structure is structure
    _, value, _ = calls.argmax(broken.case.oracle, broken.example, broken.theta)
    assert value < (broken.case.mu[broken.example] @ broken.theta).max()


def test_parts_of_the_kit():
    check_structure(py_chain(kbest=None), n_cases=1, solvers=(), only=["oracle", "predict"])
    message = r"only has 'orakle', expected some of \('declaration', 'parts', 'oracle'"
    refused(message, check_structure, "chain", only=["orakle"])


@pytest.mark.parametrize("structure_class, message", SLOW)
def test_steep_costs_are_told(structure_class, message):
    with pytest.warns(SlowOperator, match=r"takes .* ms for a label of 4 entries and .*enumerate"):
        check_structure(
            structure_class(), n_cases=1, solvers=(), only=["sizes"], clock=structure_class.clock
        )


def test_costs_that_grow_as_a_cube_are_not_told(recwarn):
    """Answers take their time by a clock that counts nodes."""
    seconds, sizes = [0.0], []

    def argmax(self, examples, i, theta):
        sizes.append(len(examples.label(i)))
        seconds[0] += 2e-5 * sizes[-1] ** 3
        return np.array([theta["node"][v].argmax() for v in range(sizes[-1])])

    structure = py_chain(argmax=argmax)
    structure.start_end = structure.transitions = False
    check_structure(structure, n_cases=1, solvers=(), only=["sizes"], clock=lambda: seconds[0])
    assert max(sizes) > min(sizes)
    assert not [w for w in recwarn if w.category is SlowOperator]


class Late(TaskLoss):
    """A loss that needs an argument."""

    def __init__(self, costs):
        self.costs = costs


@pytest.mark.parametrize(
    "losses, text",
    [
        (5, "is 5, expected a dict of loss objects by name"),
        ({"a": 5}, r"has 5 as 'a', expected an object with bind\(\)"),
        ({"a": Late}, r"has <class .*Late'> as 'a', expected an object with bind\(\)"),
        ({1: Late(1)}, "has the name 1, expected a string"),
    ],
)
def test_wrong_losses_of_a_space_are_told(losses, text):
    structure = py_chain(losses=losses)
    message = f"structure 'py-chain': losses of its space {text}"
    refused(
        message, StructuredSVM(structure).fit, [[[0.0]], [[1.0]]], [["a"], ["b"]], error=TypeError
    )
    refused(
        f"losses breaks a promise: .*{message}", check_structure, structure, error=BrokenPromise
    )


class OneLong(ChainStructure):
    """Chains, one of which is a hundred times as long as the others."""

    def sample(self, random_state, n=4, size=3):
        X, Y = super().sample(random_state, n, 2)
        X[2], Y[2] = np.tile(X[2][:1], (200, 1)), np.resize(Y[2][:1], 200)
        return X, Y


def test_threads_are_as_long_at_work_for_every_example(monkeypatch):
    """Otherwise the longest runs alone, and is asked again until the kit gives up."""
    case = Case(OneLong(), 0, 0, 3)
    case.oracle = ask_oracle(case.space)(make_layout(case.space, case.examples))
    sizes = [case.layout.theta_size(*case.sizes(i)) for i in range(case.n)]
    case.padding = [np.zeros(size, dtype=bool) for size in sizes]
    repeated = []
    ask = Case.repeat_argmax

    def counting(self, i, theta, label, value, repeats):
        repeated.append((i, repeats))
        return ask(self, i, theta, label, value, repeats)

    monkeypatch.setattr(Case, "repeat_argmax", counting)
    check_threads(case)
    last = dict(repeated[-4:])
    assert last.keys() == {0, 1, 2, 3} and 10 * last[2] < min(last[i] for i in (0, 1, 3))
