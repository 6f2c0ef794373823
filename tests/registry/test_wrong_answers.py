"""Answers of plugins that are no answers: the error names who gave them, and what is expected."""

import types
from dataclasses import replace

import numpy as np
import pytest
from checks import plugged, refused
from python_structures import PyChainSpace, py_chain

from structsolve import Named, StructuredSVM, TaskLoss, get_structure, hookimpl, registry
from structsolve.lp import Answer, Highs
from structsolve.plugins.chain.polytope import ChainPolytopes
from structsolve.solvers import SGD
from structsolve.solvers.checkpoint import check_state
from structsolve.surrogates import CutSurrogate

X, Y = get_structure("chain").sample(0, n=4, size=3)


class Counted(TaskLoss):
    """Errors."""

    def loss(self, space, examples, i, truth, label):
        return float(np.sum(truth != label))


def backend(change):
    class Changed(Highs):
        def program(self, polytope):
            solve = super().program(polytope).solve
            return types.SimpleNamespace(solve=lambda *given: change(solve(*given)))

    return Changed()


@pytest.mark.parametrize("made", [None, lambda layout: None])
def test_what_a_loss_binds_is_checked(made):
    loss = type("Odd", (Counted,), {"bind": lambda self, space: made})()
    with pytest.raises(TypeError, match="loss Odd: .*bind.*expected a"):
        StructuredSVM("chain", loss=loss).fit(X, Y)


def test_what_a_surrogate_binds_is_checked():
    surrogate = type("Odd", (CutSurrogate,), {"name": "odd", "bind": lambda self, task: None})()
    with pytest.raises(TypeError, match=r"surrogate Odd: bind\(task\) returned"):
        StructuredSVM("chain", surrogate=surrogate).fit(X, Y)


def test_a_linear_program_without_a_point_is_refused():
    with pytest.raises(ValueError, match="answered without a point"):
        StructuredSVM("chain", oracle=backend(lambda a: Answer(None, a.dual))).fit(X, Y)


def test_a_linear_program_answers_with_numbers():
    listed = backend(lambda a: Answer(list(a.x), a.dual))
    assert StructuredSVM("chain", oracle=listed, max_iter=2).fit(X, Y).n_iter_
    with pytest.raises(ValueError, match="as x, expected an array of float64"):
        StructuredSVM("chain", oracle=backend(lambda a: Answer(a.x + 0j, a.dual))).fit(X, Y)


def test_specname_declares():
    plugin = types.ModuleType("by_specname")

    @hookimpl(specname="structsolve_losses")
    def others():
        return [Named("Counted", Counted, "errors")]

    plugin.others = others
    with plugged(plugin):
        model = StructuredSVM("chain", solver=SGD(), max_iter=1).fit(X, Y)
        assert model.set_params(loss="Counted").score(X, Y) <= 1


def test_states_hold_numbers_of_numpy():
    check_state(({"t": 3, "on": True}, {}), ({"t": np.int64(3), "on": np.bool_(True)}, {}))


def test_an_error_of_program_names_the_backend():
    broken = type("Broken", (Highs,), {"program": lambda self, polytope: 1 / 0})()
    with pytest.raises(ValueError, match=r"program\(\) of LP backend .* raised ZeroDivisionError"):
        StructuredSVM("chain", oracle=broken).fit(X, Y)


def test_a_wrapper_of_declarations_is_reported():
    plugin = types.ModuleType("wraps_losses")

    @hookimpl(wrapper=True)
    def structsolve_losses():
        return (yield)

    plugin.structsolve_losses = structsolve_losses
    with pytest.warns(UserWarning, match="nothing calls a wrapper of it"):
        registry.default().register(plugin)
    registry.default().unregister(plugin)


@pytest.mark.parametrize(
    "order, told",
    [
        ([2, 1, 0], "kbest.* label 2 with score .* behind one with .*, expected the best first"),
        ([0, 1, 0], "expected the best first|twice, expected different labels"),
        ([0, 0, 1], "twice, expected different labels"),
    ],
)
def test_k_best_labels_are_different_and_sorted(order, told):
    def kbest(self, examples, i, theta, k):
        return PyChainSpace.kbest(self, examples, i, theta, k)[order]

    model = StructuredSVM(py_chain(kbest=kbest), max_iter=2).fit(X, Y)
    refused(told, model.predict_kbest, X, 3)


def test_k_best_labels_may_tie():
    def kbest(self, examples, i, theta, k):
        return PyChainSpace.kbest(self, examples, i, theta, k)[::-1]

    model = StructuredSVM(py_chain(kbest=kbest), alpha=1e9, max_iter=2).fit(X, Y)
    assert all(len(best) == 3 for best in model.predict_kbest(X, 3))


@pytest.mark.parametrize("value", [np.zeros(2), [0.0], "much", None])
def test_a_value_of_argmax_is_a_number(value):
    def argmax(self, examples, i, theta):
        return PyChainSpace.argmax(self, examples, i, theta), value

    with pytest.raises(ValueError, match=r"argmax\(\) of .*expected a number"):
        StructuredSVM(py_chain(argmax=argmax), max_iter=2).fit(X, Y)


@pytest.mark.parametrize("inside", [None, "x", np.array([True, False])])
def test_contains_answers_with_a_bool(inside):
    structure = py_chain(contains=lambda self, label, examples, i: inside)
    with pytest.raises(TypeError, match=r"contains\(\) of structure 'py-chain' returned .* a bool"):
        StructuredSVM(structure).fit(X, Y)


@pytest.mark.parametrize(
    ("surrogate", "told"),
    [
        ("margin", r"; loss\(\), without loss_costs\(\), does not decompose and"),
        ("slack", r"; loss\(\), without loss_costs\(\), does not decompose and"),
        ("max-min", r"; OnlyCosts, without costs\(\), on structure 'py-chain' is not"),
    ],
)
def test_what_a_loss_lacks_is_named(surrogate, told):
    methods = {"loss": lambda self, *given: 0.0, "costs": None, "loss_names": ("own",)}
    only = type("OnlyCosts", (Counted,), {"loss_costs": lambda self, *given: ({}, 0.0)})()
    loss = only if surrogate == "max-min" else "own"
    with pytest.raises(ValueError, match=told):
        StructuredSVM(py_chain(**methods), surrogate=surrogate, loss=loss).fit(X, Y)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda p: None, r"example 0: Odd.build\(\) returned None, expected a Polytope"),
        (lambda p: replace(p, decode=lambda x: p.decode(x) + 10**8), r"of integers, 0 \.\. 2"),
        (lambda p: replace(p, decode=lambda x: p.decode(x) - 3), r"of integers, 0 \.\. 2"),
        (lambda p: replace(p, decode=lambda x: p.decode(x) + 0.5), r"of integers, 0 \.\. 2"),
    ],
)
def test_what_polytopes_of_native_structures_give_is_checked(change, told):
    """Compiled operators index tables by these labels."""

    class Odd(ChainPolytopes):
        def build(self, i):
            return change(super().build(i))

    @hookimpl(tryfirst=True)
    def structsolve_polytope(space):
        return lambda layout: Odd(space.layout, layout.examples.offsets)

    plugin = types.ModuleType("other_polytopes")
    plugin.structsolve_polytope = structsolve_polytope
    with plugged(plugin), pytest.raises((TypeError, ValueError), match=told):
        StructuredSVM("chain", oracle="lp", max_iter=2).fit(X, Y)


def test_variables_kept_integral_may_be_numbers():
    polytope = ChainPolytopes(*_chain()).build(0)
    assert replace(polytope, integer=np.zeros(polytope.size)).integer.dtype == bool


def _chain():
    space, examples = get_structure("chain").make_space(X, Y)
    return space.layout, examples.offsets
